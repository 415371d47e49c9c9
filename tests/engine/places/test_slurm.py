"""Runs by Slurm, on stand-ins for its programs; ``make cluster`` runs the real ones."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from accel_engine.devices.device_types import Device
from accel_engine.errors import AccelError, PlanError, RunError, UsageError
from accel_engine.events import RunEnded
from accel_engine.places import PlaceRequest, parse_place, placed_runs, slurm_jobs
from accel_engine.places.placed_runs import cluster_environment, open_place, submit, write_place_files
from accel_engine.places.slurm import Slurm
from accel_engine.plan import Plan
from accel_engine.process.start_run import prepare_run
from accel_engine.run import Status, list_runs
from accel_engine.run.engine.status import read_info
from accel_engine.run.store.database import reading
from accel_engine.run.store.stored_events import last_event
from accel_engine.run_queue import queue

PLAN = Plan(model="mlp", data="digits")

TWO = Plan(model="mlp", data="digits", strategy="multi-worker")


@pytest.fixture(autouse=True)
def _always_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placed_runs, "ASK_SECONDS", -1.0)
    monkeypatch.setattr(slurm_jobs, "RECENT_SECONDS", -1.0)


def devices_of(text: str, **asked: object) -> list[str]:
    name = parse_place(text)
    assert name is not None
    return [device.id for device in open_place(name).describe(PlaceRequest(**asked))]


def start(text: str, plan: Plan, **asked: object) -> Path:
    name, request = parse_place(text), PlaceRequest(**asked)
    assert name is not None
    place = open_place(name)
    devices: Sequence[Device] = place.describe(request)
    environment = cluster_environment(request.nodes or 1)
    return submit(
        place, request, plan, devices, lambda: prepare_run(plan, devices, queued=True, environment=environment)
    )


def status_of(directory: Path) -> Status:
    with reading(directory) as database:
        return read_info(database).status


def test_a_partition_has_the_gpus_of_its_best_nodes(slurm) -> None:
    assert devices_of("slurm") == ["cpu:0"]
    assert devices_of("slurm:gpu") == ["cpu:0", "gpu:0", "gpu:1", "gpu:2", "gpu:3"]
    assert devices_of("slurm:gpu", gpus=1) == ["cpu:0", "gpu:0"]


@pytest.mark.parametrize(
    ("place", "asked", "told"),
    [
        ("slurm:gpus", {}, "Slurm has no partition 'gpus' here; did you mean gpu"),
        ("slurm:gpu", {"gpus": 8}, "--gpus 8: no node of the partition gpu has more than 4"),
        ("slurm:gpu", {"nodes": 5}, "--nodes 5: the partition gpu has 4"),
        ("slurm", {"image": "foo"}, "slurm has no --image: it has --nodes, --gpus, --cpus, --host-memory, --walltime"),
        ("slurm:old", {}, "the partition old is drain"),
    ],
)
def test_what_a_cluster_does_not_have_is_refused(slurm, place: str, asked: dict[str, int], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        devices_of(place, **asked)


def test_without_slurm_its_package_is_named(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        UsageError, match="sinfo is not installed here: Slurm's client, on a cluster's login nodes, has it"
    ):
        devices_of("slurm")


def test_the_script_says_what_the_run_needs(slurm, tmp_path) -> None:
    directory = start("slurm:gpu", TWO, nodes=2, gpus=2, walltime=5400.0, place_options=("--account=my lab",))

    script = slurm.known["script"]
    assert script == (directory / "job.sh").read_text()
    lines = script.splitlines()
    for option in (
        "--nodes=2",
        "--ntasks-per-node=1",
        "--partition=gpu",
        "--gres=gpu:2",
        "--cpus-per-task=16",  # of a node's 32, the share of its 4 GPUs
        "--mem=8192M",
        "--time=90",
        "--requeue",
        "--signal=TERM@120",
    ):
        assert f"#SBATCH {option}" in lines
    assert "#SBATCH --account='my lab'" in lines
    assert f"accel_engine.places start {directory}" in script
    assert subprocess.run(["bash", "-n", str(directory / "job.sh")], check=False).returncode == 0


def test_a_plan_on_the_cpu_asks_for_no_gpu(slurm) -> None:
    start("slurm:gpu", PLAN.replace(devices=("cpu:0",), time_limit="2h"))

    script = slurm.known["script"]
    assert "--gres" not in script
    assert "#SBATCH --time=130" in script  # and ten minutes for start and end


@pytest.mark.parametrize(
    ("plan", "asked", "told"),
    [
        (PLAN, {"nodes": 2}, "trains on one machine: 2 machines .--nodes. take --strategy multi-worker"),
        (TWO, {}, "takes several machines: give --nodes 2"),
        (Plan(strategy="parameter-server"), {"nodes": 2}, "is started by accel-tui cluster on each machine"),
        (PLAN.replace(devices=("gpu:3",)), {"gpus": 2}, "no device gpu:3; available: cpu:0, gpu:0, gpu:1"),
    ],
)
def test_a_plan_that_does_not_fit_makes_no_run(slurm, plan: Plan, asked: dict[str, int], told: str) -> None:
    with pytest.raises(PlanError, match=told):
        start("slurm:gpu", plan, **asked)
    assert list_runs() == []


@pytest.mark.parametrize("wrong", ["account", "--array=1-4", "--wrap=id", "--output=x", "--a\n#SBATCH=b"])
def test_options_that_would_break_the_script_are_refused(slurm, wrong: str) -> None:
    with pytest.raises(UsageError, match="sbatch"):
        start("slurm:gpu", PLAN, place_options=(wrong,))
    assert list_runs() == []


def test_a_working_directory_that_was_removed_leaves_no_run(slurm, tmp_path, monkeypatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(UsageError, match="the working directory was removed"):
        start("slurm:gpu", PLAN)
    assert list_runs() == []


def test_a_job_that_slurm_does_not_take_leaves_no_run(slurm) -> None:
    slurm.set(refuses="Invalid account or account/partition combination specified")
    with pytest.raises(RunError, match=r"sbatch.*Batch job submission failed: Invalid account"):
        start("slurm:gpu", PLAN)
    assert list_runs() == []


def test_a_run_whose_command_is_interrupted_while_slurm_takes_it_is_no_more(slurm, monkeypatch) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(Slurm, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        start("slurm:gpu", PLAN)
    assert list_runs() == []


def test_a_run_that_waits_says_where_and_why(slurm) -> None:
    directory = start("slurm:gpu", PLAN)
    slurm.set_job("5", T="PENDING", r="Resources", P="gpu", N="", i="5", before=1)
    slurm.set_job("6", T="PENDING", r="Priority", P="gpu", N="", i="6_[1-4]", before=2)

    assert status_of(directory) is Status.QUEUED
    expected = "job 7 of Slurm waits, 3 of 3 in gpu, jobs of higher priority come first (Priority)"
    assert queue.why_waits(directory.name) == expected
    slurm.set_job("7", T="RUNNING", N="gpu01")
    assert queue.why_waits(directory.name) == "job 7 of Slurm runs on gpu01: the engine starts"


def test_a_run_that_is_cancelled_is_taken_from_slurm(slurm) -> None:
    directory = start("slurm:gpu", PLAN)

    queue.cancel(directory.name)

    assert slurm.known["jobs"]["7"]["T"] == "CANCELLED"
    assert status_of(directory) is Status.STOPPED


def test_a_job_that_ends_before_its_engine_has_failed(slurm) -> None:
    directory = start("slurm:gpu", PLAN)
    slurm.set_job("7", T="FAILED", r="NonZeroExitCode", exit="127")

    queue.why_waits(directory.name)

    assert status_of(directory) is Status.FAILED
    with reading(directory) as database:
        ended = last_event(database, RunEnded)
    assert ended is not None
    assert "job 7 of Slurm is failed, its script failed (NonZeroExitCode), exit status 127 before" in ended.reason


def test_an_old_answer_does_not_end_a_run(slurm, monkeypatch) -> None:
    directory = start("slurm:gpu", PLAN)
    monkeypatch.setattr(placed_runs, "ASK_SECONDS", 1000.0)
    slurm.set_job("7", T="FAILED", r="NonZeroExitCode", exit="127")
    with reading(directory) as database:
        placed = read_info(database).place
    assert placed is not None
    assert placed_runs.state_of(placed, newest=True).is_over
    slurm.set_job("7", T="PENDING", r="Priority", N="")

    assert "waits" in queue.why_waits(directory.name)
    assert status_of(directory) is Status.QUEUED


def test_a_run_is_not_lost_because_slurm_does_not_answer(slurm) -> None:
    directory = start("slurm:gpu", PLAN)
    (slurm.folder / "squeue").write_text(
        "#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1\n"
    )
    (slurm.folder / "scontrol").write_text(
        "#!/bin/sh\necho 'Unable to contact slurm controller (connect failure)' >&2; exit 1\n"
    )

    assert "Unable to contact slurm controller" in queue.why_waits(directory.name)
    assert status_of(directory) is Status.QUEUED


def test_only_the_files_are_written(slurm, tmp_path) -> None:
    name = parse_place("slurm:gpu")
    assert name is not None
    place, request = open_place(name), PlaceRequest(nodes=2, gpus=1, write=str(tmp_path / "job's"))
    place.describe(request)

    names = write_place_files(place, request, TWO, place.describe(request))

    assert names == ["job.sh", "plan.json"]
    assert list_runs() == []
    script = (tmp_path / "job's/job.sh").read_text()
    assert subprocess.run(["bash", "-n", str(tmp_path / "job's/job.sh")], check=False).returncode == 0
    assert "places start '" in script
    assert all(word[0] != "sbatch" for word in slurm.known["asked"])
    with pytest.raises(UsageError, match="was written before"):
        write_place_files(place, request, TWO, place.describe(request))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("slurn", "there is no place 'slurn'; did you mean slurm?"),
        ("slurm:", "the place 'slurm:' lacks what it names: slurm"),
        ("here:x", "there is no place 'here:x'"),
        ("hosts", "lacks what it names: hosts:HOST,HOST"),
    ],
)
def test_names_of_no_place_are_refused(text: str, told: str) -> None:
    with pytest.raises(AccelError) as refused:
        parse_place(text)
    assert told in str(refused.value)
    assert refused.value.exit_status == 2


def test_here_is_this_machine() -> None:
    assert parse_place("here") is None
