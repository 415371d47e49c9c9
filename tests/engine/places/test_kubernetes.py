"""Runs on Kubernetes: the manifests, and what ``kubectl`` is asked, on a stand-in for it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import convert

from accel_engine.errors import UsageError
from accel_engine.places import PlaceRequest, parse_place
from accel_engine.places.kubernetes import Kubernetes
from accel_engine.places.placed_runs import open_place, submit_plan, write_place_files
from accel_engine.plan import Plan
from accel_engine.strategies.cluster_spec import ClusterSpec
from engine.deploy_folder.custom_kinds import kind, optional

ASKED = {"image": "registry.example.org/train:1", "volume": "runs"}

TWO = Plan(model="mlp", data="digits", strategy="multi-worker", name="two: $(id) \"nodes\" 'x' 🙂")

JOB_SET = kind(
    "JobSet",
    apiVersion=str,
    kind=str,
    metadata=kind(
        "Named", name=str, namespace=optional(str), labels=optional(dict[str, str]), annotations=dict[str, str]
    ),
    spec=kind(
        "JobSetSpec",
        failurePolicy=kind(
            "FailurePolicy",
            maxRestarts=int,
            rules=list[kind("Rule", name=str, action=str, onJobFailureReasons=list[str])],
        ),
        network=kind("Network", enableDNSHostnames=bool, publishNotReadyAddresses=bool),
        replicatedJobs=list[kind("ReplicatedJob", name=str, replicas=int, template=dict[str, Any])],
    ),
)
"""The fields of ``jobset.x-k8s.io/v1alpha2`` that are written, with their types, from its API reference."""


def place_of(text: str) -> Kubernetes:
    name = parse_place(text)
    assert name is not None
    place = open_place(name)
    assert isinstance(place, Kubernetes)
    return place


def written(folder: Path, plan: Plan, text: str = "kubernetes:lab/ml", **asked: Any) -> dict[str, Any]:
    place, request = place_of(text), PlaceRequest(**ASKED | asked, write=str(folder / "files"))
    write_place_files(place, request, plan, place.describe(request))
    return {path.name: yaml.safe_load(path.read_text("utf-8")) for path in (folder / "files").glob("*.yaml")}


def pod_of(job_set: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return pod


def test_workers_find_each_other_by_the_names_of_pods(tmp_path) -> None:
    job_set = written(tmp_path, TWO, nodes=2, gpus=4, local_queue="gpus", node_selector=("pool=a",))["jobset.yaml"]

    convert(job_set, JOB_SET, strict=True)
    name = job_set["metadata"]["name"]
    assert job_set["metadata"]["namespace"] == "ml"
    assert job_set["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "gpus"}
    job, pod = job_set["spec"]["replicatedJobs"][0]["template"]["spec"], pod_of(job_set)
    assert (job["parallelism"], job["completions"], job["completionMode"]) == (2, 2, "Indexed")
    environment = {each["name"]: each for each in pod["containers"][0]["env"]}
    assert list(environment).index("TASK_INDEX") < list(environment).index("TF_CONFIG")  # which refers to it
    cluster = ClusterSpec.find({"TF_CONFIG": environment["TF_CONFIG"]["value"].replace("$(TASK_INDEX)", "1")})
    assert cluster is not None
    assert cluster.index == 1
    assert cluster.workers == (f"{name}-worker-0-0.{name}:12345", f"{name}-worker-0-1.{name}:12345")
    assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 4
    assert pod["nodeSelector"] == {"pool": "a"}
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}} in pod["volumes"]


def test_the_pods_read_the_plan_from_a_config_map(tmp_path) -> None:
    found = written(tmp_path, TWO, nodes=2)

    pod, config = pod_of(found["jobset.yaml"]), found["plan.yaml"]
    assert Plan.from_mapping(json.loads(config["data"]["plan.json"])) == TWO
    assert {"name": "plan", "configMap": {"name": config["metadata"]["name"]}} in pod["volumes"]
    command = pod["containers"][0]["command"]
    link = f"/accel-tui/jobs/{found['jobset.yaml']['metadata']['name']}"
    assert command == ["python", "-m", "accel_engine.places", "start", link, "/etc/accel-tui/plan.json"]


def test_a_tpu_of_gke_is_asked_for_by_its_topology(tmp_path) -> None:
    plan = Plan(model="mlp", data="digits", strategy="tpu")
    pod = pod_of(written(tmp_path, plan, tpu_topology="tpu-v5-lite-podslice:2x4")["jobset.yaml"])

    assert pod["nodeSelector"] == {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "2x4",
    }
    assert pod["containers"][0]["resources"]["limits"]["google.com/tpu"] == 8


def test_kubernetes_takes_the_manifests(tmp_path) -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="`make container` installs kubernetes-validate")
    found = written(tmp_path, TWO, nodes=2, gpus=1)
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}}
    job["spec"] = found["jobset.yaml"]["spec"]["replicatedJobs"][0]["template"]["spec"]

    for each in (job, found["plan.yaml"]):
        validator.validate(each, "1.33", strict=True)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"image": ""}, "--on kubernetes needs --image"),
        ({"walltime": 60.0}, "kubernetes has no --walltime: it has --nodes, "),
        ({"volume": ""}, r"--on kubernetes needs --volume CLAIM\[:PATH\]"),
        ({"tpu_topology": "tpu-v5-lite-podslice:4x4"}, "a slice of several machines is not started here"),
        ({"tpu_topology": "tpu-v5-lite-podslice:1x1", "gpus": 1}, "--gpus and --tpu-topology exclude each other"),
    ],
)
def test_what_pods_need_is_asked_for(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        place_of("kubernetes").describe(PlaceRequest(**ASKED | asked))


def test_data_that_pods_do_not_see_is_refused(tmp_path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,label\n" + "".join(f"{row},{row % 2}\n" for row in range(40)))
    plan = Plan(model="mlp", data=str(table))
    with pytest.raises(UsageError, match=r"table\.csv is not on the volume, which pods have at /accel-tui"):
        written(tmp_path, plan)
    assert "jobset.yaml" in written(tmp_path, plan, volume=f"runs:{tmp_path}")


def test_a_job_set_is_applied_after_its_plan(kubectl) -> None:
    place, request = place_of("kubernetes:lab/ml"), PlaceRequest(**ASKED, nodes=2)

    job = submit_plan(place, request, TWO, place.describe(request))

    kinds = [yaml.safe_load(text)["kind"] for text in kubectl.known["applied"]]
    assert kinds == ["ConfigMap", "JobSet"]
    assert yaml.safe_load(kubectl.known["applied"][1])["metadata"]["name"] == job
    assert ["--context=lab", "--namespace=ml", "apply", "--filename", "-"] in kubectl.known["asked"]
    place.cancel(job)
    assert kubectl.known["asked"][-1] == ["--context=lab", "--namespace=ml", "delete", "jobset", job, "--wait=false"]


def test_a_job_set_that_has_ended_gives_way_to_the_next_of_its_run(kubectl) -> None:
    kubectl.set(jobset=conditions("Completed", "jobset completed"))
    place, request = place_of("kubernetes"), PlaceRequest(**ASKED, nodes=2)
    submit_plan(place, request, TWO, place.describe(request))
    assert [yaml.safe_load(text)["kind"] for text in kubectl.known["applied"]] == ["ConfigMap", "JobSet"]


def test_a_job_set_that_runs_is_not_deleted(kubectl) -> None:
    kubectl.set(jobset={"spec": {}, "status": {}})
    place, request = place_of("kubernetes"), PlaceRequest(**ASKED, nodes=2)
    names = {submit_plan(place, request, TWO.replace(name="long " * 20), place.describe(request)) for _ in range(2)}
    assert not any("delete" in asked for asked in kubectl.known["asked"])
    assert len(names) == 2
    assert max(map(len, names)) <= 40


PENDING = {
    "items": [{"status": {"phase": "Pending", "conditions": [{"message": "0/3 nodes: 3 Insufficient nvidia.com/gpu"}]}}]
}


def conditions(kind: str, message: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True", "message": message}]}}


@pytest.mark.parametrize(
    ("job_set", "pods", "state"),
    [
        ({"spec": {"suspend": True}}, {}, (True, False, "the JobSet j waits for Kueue")),
        (conditions("Failed", "jobset failed"), {}, (False, False, "the JobSet j is failed: jobset failed")),
        ({"spec": {}}, {"items": []}, (False, True, "the JobSet j starts its pods")),
        ({"spec": {}}, PENDING, (False, True, "pods of the JobSet j wait: 0/3 nodes: 3 Insufficient nvidia.com/gpu")),
        (None, {}, (False, False, "there is no JobSet j any more")),
        ({"spec": 3, "status": []}, {"items": 5}, (False, True, "the JobSet j starts its pods")),
    ],
)
def test_what_a_job_set_waits_for_is_said(kubectl, job_set, pods, state) -> None:
    kubectl.set(**({} if job_set is None else {"jobset": job_set}), pods=pods)
    found = place_of("kubernetes").state("j")
    assert (found.waits, found.runs, found.reason) == state


def test_the_log_goes_on_where_it_ended(kubectl) -> None:
    place = place_of("kubernetes")
    assert place.log_command("j", 0.5)[-1] == "--since-time=1970-01-01T00:00:00.500000+00:00"
    assert "--follow" in place.log_command("j")
    kubectl.set(jobset=conditions("Completed", ""))
    assert place.state("j").is_complete
    kubectl.set(jobset=conditions("Failed", ""))
    assert not place.state("j").is_complete


def test_a_volume_that_is_mounted_here_has_the_run(tmp_path, home) -> None:
    request = PlaceRequest(image="x", volume=f"runs:{tmp_path}")
    assert place_of("kubernetes").has_run_here(request)
    assert not place_of("kubernetes").has_run_here(PlaceRequest(image="x", volume="runs:/nowhere"))
    assert not place_of("kubernetes").has_run_here(PlaceRequest(image="x", volume="runs"))
