import json

import pytest

from accel_engine.errors import UsageError
from accel_engine.strategies.cluster_spec import ClusterSpec, expand_counts, expand_hosts


def config(role: str, index: int, **cluster: list[str]) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})}


def test_without_a_cluster_a_process_is_alone() -> None:
    assert ClusterSpec.find({}) is None
    assert ClusterSpec.find(config("worker", 0, worker=["a:1"])) is None
    assert ClusterSpec.find({"SLURM_NTASKS": "1", "SLURM_PROCID": "0"}) is None


def test_workers_come_from_tf_config() -> None:
    found = ClusterSpec.find(config("worker", 1, worker=["a:1", "b:2"]))
    assert found is not None
    assert (found.name, found.chief, found.peers) == ("worker 1", False, {"worker 0": "a:1"})
    assert ClusterSpec.find({"TF_CONFIG": found.to_tf_config()}) == found


def test_a_chief_without_parameter_servers_is_the_first_worker() -> None:
    found = ClusterSpec.find(config("worker", 0, chief=["a:1"], worker=["b:2"]))
    assert found is not None
    assert (found.workers, found.index, found.chief) == (("a:1", "b:2"), 1, False)


def test_with_parameter_servers_the_chief_only_coordinates() -> None:
    found = ClusterSpec.find(config("chief", 0, chief=["a:1"], worker=["b:2", "c:3"], ps=["d:4"]))
    assert found is not None
    assert (found.name, found.chief) == ("coordinator", True)
    assert found.peers == {"worker 0": "b:2", "worker 1": "c:3", "parameter server 0": "d:4"}
    assert ClusterSpec.find({"TF_CONFIG": found.to_tf_config()}) == found
    assert [(part.name, part.run_directory_name) for part in found.processes] == [
        ("coordinator", "0"),
        ("worker 0", "0"),
        ("worker 1", "1"),
        ("parameter server 0", "ps0"),
    ]
    for part in found.processes[1:]:
        assert ClusterSpec.find({"TF_CONFIG": part.to_tf_config()}) == part
        assert (part.serves, part.peers) == (True, {"coordinator": "a:1"})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "TF_CONFIG is invalid"),
        ('{"cluster": {"worker": ["a:1"]}}', "TF_CONFIG is invalid"),
        ('{"cluster": [], "task": {"type": "worker", "index": 0}}', "TF_CONFIG is invalid"),
        ('{"cluster": {"wroker": ["a:1"]}, "task": {"type": "worker", "index": 0}}', "'wroker'; known: chief, worker"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 3}}', "worker 3.*no such task"),
        ('{"cluster": {"worker": ["a"]}, "task": {"type": "worker", "index": 0}}', "'a': use HOST:PORT"),
        ('{"cluster": {"worker": ["a..1:1"]}, "task": {"type": "worker", "index": 0}}', "'a..1:1': use HOST:PORT"),
        ('{"cluster": {"worker": ["a:65536"]}, "task": {"type": "worker", "index": 0}}', "'a:65536': use HOST:PORT"),
    ],
)
def test_an_invalid_tf_config_is_explained(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        ClusterSpec.find({"TF_CONFIG": text})


SLURM = {
    "SLURM_NTASKS": "3",
    "SLURM_PROCID": "2",
    "SLURM_JOB_ID": "4001",
    "SLURM_STEP_ID": "0",
    "SLURM_JOB_NODELIST": "gpu[01-02]",
    "SLURM_TASKS_PER_NODE": "2,1",
}


def test_workers_come_from_slurm() -> None:
    found = ClusterSpec.find(SLURM)
    assert found is not None
    assert found.workers == ("gpu01:12593", "gpu01:12594", "gpu02:12593")
    assert (found.name, found.source) == ("worker 2", "Slurm")


@pytest.mark.parametrize(
    ("node", "local", "workers"),
    [
        ("1", "0", ("gpu01:12593", "gpu01:12594", "gpu02:12593")),  # --distribution block
        ("0", "1", ("gpu01:12593", "gpu02:12593", "gpu01:12594")),  # --distribution cyclic
    ],
)
def test_a_task_is_where_slurm_says(node: str, local: str, workers: tuple[str, ...]) -> None:
    found = ClusterSpec.find(SLURM | {"SLURM_NODEID": node, "SLURM_LOCALID": local})
    assert found is not None
    assert found.workers == workers


def test_a_distribution_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match="task 2 is task 1 of node 1: only --distribution block, cyclic and plane"):
        ClusterSpec.find(SLURM | {"SLURM_NODEID": "1", "SLURM_LOCALID": "1"})


def test_tasks_in_planes_are_where_slurm_says() -> None:
    counts = {"SLURM_NTASKS": "6", "SLURM_TASKS_PER_NODE": "4,2", "SLURM_DIST_PLANESIZE": "2"}
    # Two tasks of the first node, the two of the second, and the other two of the first.
    hosts = ("gpu01:12593", "gpu01:12594", "gpu02:12593", "gpu02:12594", "gpu01:12595", "gpu01:12596")
    found = ClusterSpec.find(SLURM | counts | {"SLURM_PROCID": "4", "SLURM_NODEID": "0", "SLURM_LOCALID": "2"})
    assert found is not None
    assert found.workers == hosts


def test_ports_that_slurm_has_reserved_are_taken() -> None:
    found = ClusterSpec.find(SLURM | {"SLURM_STEP_RESV_PORTS": "23000-23001"})
    assert found is not None
    assert found.workers == ("gpu01:23000", "gpu01:23001", "gpu02:23000")


def test_more_tasks_of_a_node_than_ports_are_refused() -> None:
    counts = {"SLURM_NTASKS": "10", "SLURM_TASKS_PER_NODE": "9,1"}
    with pytest.raises(UsageError, match="9 tasks of a node have 8 ports"):
        ClusterSpec.find(SLURM | counts)


def test_tasks_of_a_node_that_see_the_same_gpus_are_refused() -> None:
    gpus = {"SLURM_GPUS_ON_NODE": "4", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    with pytest.raises(UsageError, match="2 tasks of a node see the same GPUs: give each its own with srun --gpus-per"):
        ClusterSpec.find(SLURM | gpus)
    assert ClusterSpec.find(SLURM | gpus | {"CUDA_VISIBLE_DEVICES": "2,3"}) is not None
    assert ClusterSpec.find(SLURM | gpus | {"SLURM_GPUS_PER_TASK": "2"}) is not None


def test_two_steps_of_a_job_have_other_ports() -> None:
    first, second = (ClusterSpec.find(SLURM | {"SLURM_STEP_ID": step}) for step in "01")
    assert first is not None
    assert second is not None
    assert not set(first.workers) & set(second.workers)


def test_the_batch_shell_of_a_job_does_not_wait_for_tasks_that_nobody_starts() -> None:
    assert ClusterSpec.find({name: value for name, value in SLURM.items() if name != "SLURM_STEP_ID"}) is None


def test_incomplete_slurm_variables_are_reported() -> None:
    with pytest.raises(UsageError, match="SLURM_JOB_NODELIST"):
        ClusterSpec.find({"SLURM_NTASKS": "2", "SLURM_PROCID": "0", "SLURM_STEP_ID": "0"})


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        ("n[1-3,7],x", ["n1", "n2", "n3", "n7", "x"]),
        ("n[08-11]-ib", ["n08-ib", "n09-ib", "n10-ib", "n11-ib"]),
    ],
)
def test_slurms_list_of_hosts_is_expanded(text: str, hosts: list[str]) -> None:
    assert expand_hosts(text) == hosts


def test_slurms_tasks_per_node_are_expanded() -> None:
    assert expand_counts("2(x3),1") == [2, 2, 2, 1]
