"""The files for SkyPilot and xpk: their fields and options, and what their commands run."""

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import convert

from accel_engine.errors import RunError, UsageError
from accel_engine.places import PlaceRequest, parse_place
from accel_engine.places.placed_runs import open_place, submit_plan, write_place_files
from accel_engine.places.written_places import WrittenPlace
from accel_engine.plan import Plan
from accel_engine.plan.plan_file import read_plan_file
from accel_engine.strategies.cluster_spec import ClusterSpec
from engine.deploy_folder.custom_kinds import kind, optional

ASKED = {"image": "registry.example.org/train:1", "volume": "runs:/mnt/my runs"}

ONE = Plan(model="mlp", data="digits")

TWO = ONE.replace(strategy="multi-worker", name="two: $(id) \"nodes\" 'x' 🙂")

TASK = kind(
    "Task",
    name=str,
    workdir=str,
    num_nodes=int,
    resources=kind(
        "Resources",
        accelerators=optional(str),
        cpus=str,
        memory=str,
        image_id=str,
        job_recovery=kind("JobRecovery", recover_on_exit_codes=list[int]),
    ),
    volumes=optional(dict[str, str]),
    run=str,
)
"""The fields of a task of SkyPilot that are written, with their types, from its YAML reference."""

XPK = {
    "--workload",
    "--cluster",
    "--device-type",
    "--num-nodes",
    "--base-docker-image",
    "--script-dir",
    "--storage",
    "--max-restarts",
    "--restart-on-exit-codes",
    "--termination-grace-period-seconds",
    "--command",
}
"""The options of ``xpk workload create`` that are written, from its reference."""


def place_of(text: str) -> WrittenPlace:
    name = parse_place(text)
    assert name is not None
    place = open_place(name)
    assert isinstance(place, WrittenPlace)
    return place


def written(folder: Path, plan: Plan, text: str, **asked: Any) -> Path:
    place, request = place_of(text), PlaceRequest(**ASKED | asked, write=str(folder / "files"))
    write_place_files(place, request, plan, place.describe(request))
    return folder / "files"


def task_of(folder: Path, plan: Plan, text: str, **asked: Any) -> dict[str, Any]:
    task: dict[str, Any] = yaml.safe_load((written(folder, plan, text, **asked) / "skypilot.yaml").read_text("utf-8"))
    convert(task, TASK, strict=True)
    return task


def options_of(folder: Path, plan: Plan, text: str, **asked: Any) -> dict[str, str]:
    """What ``xpk`` gets from its script."""
    files = written(folder, plan, text, **asked)
    told = ran(f"bash {shlex.quote(str(files / 'xpk.sh'))}", folder, "xpk")
    assert told["arguments"][:2] == ["workload", "create"]
    assert Path(told["folder"]) == files
    found = dict(each.split("=", 1) for each in told["arguments"][2:])
    assert found.keys() <= XPK
    return found


def ran(command: str, folder: Path, program: str, **environment: str) -> dict[str, Any]:
    """Run a command of a shell with a stand-in for a program, and return what that was given."""
    stand_in = folder / "bin" / program
    stand_in.parent.mkdir(exist_ok=True)
    told = folder / "told"
    stand_in.write_text(f'#!/bin/bash\nprintf "%s\\0" "$PWD" "$@" > {told}; env -0 > {told}.env\n')
    stand_in.chmod(0o755)
    path = f"{stand_in.parent}:/usr/bin:/bin"
    subprocess.run(["bash", "-c", command], env={"PATH": path, "HOME": "/home/a", **environment}, check=True)
    first, *arguments = told.read_text().split("\0")[:-1]
    variables = dict(each.split("=", 1) for each in Path(f"{told}.env").read_text().split("\0")[:-1])
    return {"folder": first, "arguments": arguments, "environment": variables}


def test_skypilot_starts_workers_that_find_each_other(tmp_path) -> None:
    task = task_of(tmp_path, TWO, "skypilot:A100", nodes=2, gpus=4, cpus=8, host_memory=16 << 10)

    resources = task["resources"]
    assert (task["num_nodes"], resources["accelerators"], resources["cpus"]) == (2, "A100:4", "8+")
    assert resources["memory"] == "18+"  # 16 GiB are 17.2 GB
    assert resources["image_id"] == "docker:registry.example.org/train:1"
    assert task["volumes"] == {"/mnt/my runs": "runs"}
    told = ran(task["run"], tmp_path, "python", SKYPILOT_NODE_IPS="10.0.0.1\n10.0.0.2", SKYPILOT_NODE_RANK="1")
    link = f"/mnt/my runs/jobs/{task['name']}"
    assert told["arguments"] == ["-m", "accel_engine.places", "start", link, "plan.json"]
    assert told["environment"]["ACCEL_TUI_HOME"] == "/mnt/my runs"
    cluster = ClusterSpec.find(told["environment"])
    assert cluster is not None
    assert (cluster.index, cluster.workers) == (1, ("10.0.0.1:12345", "10.0.0.2:12345"))
    assert Plan.from_mapping(read_plan_file(tmp_path / "files" / "plan.json").values) == TWO


def test_skypilot_without_a_volume_keeps_the_run_on_its_machine(tmp_path) -> None:
    task = task_of(tmp_path, ONE, "skypilot", volume="")

    assert "volumes" not in task
    assert "accelerators" not in task["resources"]
    told = ran(task["run"], tmp_path, "python")
    assert told["environment"]["ACCEL_TUI_HOME"] == "/home/a/accel-tui"
    assert "TF_CONFIG" not in told["environment"]


def test_xpk_starts_workers_that_find_each_other(tmp_path) -> None:
    found = options_of(tmp_path, TWO, "xpk:lab/h100-80gb-8", nodes=2)

    name = found["--workload"]
    assert len(name) <= 40
    assert (found["--cluster"], found["--device-type"], found["--num-nodes"]) == ("lab", "h100-80gb-8", "2")
    assert (found["--storage"], found["--script-dir"]) == ("runs", ".")
    told = ran(found["--command"], tmp_path, "python", JOB_COMPLETION_INDEX="1")
    assert told["arguments"] == ["-m", "accel_engine.places", "start", f"/mnt/my runs/jobs/{name}", "plan.json"]
    assert told["environment"]["ACCEL_TUI_PLACE"] == "xpk:lab/h100-80gb-8"
    cluster = ClusterSpec.find(told["environment"])
    assert cluster is not None
    assert cluster.index == 1
    assert cluster.workers == (f"{name}-slice-job-0-0.{name}:12345", f"{name}-slice-job-0-1.{name}:12345")


def test_xpk_takes_a_tpu_of_one_machine(tmp_path) -> None:
    plan = ONE.replace(strategy="tpu")
    found = options_of(tmp_path, plan, "xpk:lab/v6e-4")

    assert found["--device-type"] == "v6e-4"
    assert "--num-nodes" not in found
    assert "TF_CONFIG" not in found["--command"]


@pytest.mark.parametrize(
    ("text", "asked", "told"),
    [
        ("skypilot", {"write": ""}, "--on skypilot only writes files: --write FOLDER"),
        ("xpk:lab/l4-1", {"write": ""}, "--on xpk only writes files: --write FOLDER"),
        ("skypilot", {"image": ""}, "--on skypilot needs --image"),
        ("skypilot", {"gpus": 2}, "--gpus: name the GPU, as --on skypilot:A100"),
        ("skypilot:tpu-v6e-8", {}, "'tpu-v6e-8' is not a GPU of SkyPilot"),
        ("skypilot", {"volume": "", "nodes": 2}, "several machines need --volume"),
        ("skypilot", {"walltime": 60.0}, "skypilot has no --walltime: it has --nodes, --gpus"),
        ("skypilot", {"place_options": ("--qos=high",)}, "skypilot has no --place-option"),
        ("xpk:lab/l4-1", {"gpus": 1}, "xpk:lab/l4-1 has no --gpus"),
        ("xpk:lab", {}, "xpk:lab names no cluster and device type"),
        ("xpk:lab/l4-1", {"volume": "runs"}, "--on xpk needs --volume STORAGE:PATH"),
        ("xpk:lab/v5litepod-16", {}, "'v5litepod-16' is neither GPUs"),
        ("xpk:lab/v6e-4", {"nodes": 2}, "only machines with GPUs train together, not v6e-4"),
    ],
)
def test_what_the_files_cannot_say_is_refused(text: str, asked: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        place_of(text).describe(PlaceRequest(**ASKED | {"write": "files"} | asked))


def test_a_name_of_xpk_needs_a_cluster() -> None:
    with pytest.raises(UsageError, match="the place 'xpk' lacks what it names: xpk:CLUSTER/DEVICE"):
        parse_place("xpk")


def test_nothing_is_submitted_or_asked(tmp_path) -> None:
    place, request = place_of("skypilot"), PlaceRequest(**ASKED, write=str(tmp_path))
    with pytest.raises(UsageError, match="only writes files"):
        submit_plan(place, request, ONE, place.describe(request))
    for ask in (place.state, place.cancel):
        with pytest.raises(RunError, match="not asked here"):
            ask("job")
