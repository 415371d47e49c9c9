"""The parts of a run of many workers."""

import os
import shutil
import socket
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.events import Worker, WorkersMet
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, create, find_run, list_runs
from accel_engine.run.directory.checkpoint_files import write_checksums
from accel_engine.run.directory.run_paths import checkpoint_steps
from accel_engine.run.runs.creation import create_recorded, create_worker
from accel_engine.run.runs.worker_runs import link, path_of, run_to_continue, worker_runs_of
from accel_engine.strategies.cluster_spec import ClusterSpec
from recorded_run import started

PLAN = Plan(strategy="multi-worker")
ADDRESSES = ("node1:2222", "node2:2222")


def begin(directory: Path, worker: str = "", chief: str = "") -> Path:
    """Let this process take a run up, as a worker of a chief's run that it may have met."""
    with closing(RunWriter(directory)) as writer:
        writer.begin(
            started(run=directory.name, worker=worker),
        )
        if chief:
            runs = zip(("worker 0", "worker 1"), ADDRESSES, (chief, directory.name), strict=True)
            workers = tuple(Worker(name, at, at[:5], run) for name, at, run in runs)
            writer.write_event(WorkersMet(time=2.0, workers=workers, reduction="ring"))
    return directory


def environment(index: int) -> dict[str, str]:
    return {"TF_CONFIG": ClusterSpec(ADDRESSES, index=index).to_tf_config()}


@pytest.fixture
def chief() -> Path:
    return begin(create(PLAN))


def test_a_whole_run_has_no_parts_and_is_no_part(chief: Path) -> None:
    assert worker_runs_of(chief) == {}
    assert list_runs()[0].membership is None
    assert run_to_continue(chief, {}) == chief


def test_parts_are_listed_in_the_order_of_their_numbers(chief: Path) -> None:
    for place in ("ps0", "10", "2"):
        create_worker(chief, place, PLAN)
    assert list(worker_runs_of(chief)) == ["worker 2", "worker 10", "parameter server 0"]
    assert path_of(worker_runs_of(chief)["worker 2"]) == f"{chief.name}/workers/2"
    assert path_of(chief) == chief.name


def test_a_part_that_is_elsewhere_is_found_from_the_chief_s_run_where_both_see_the_same_files(chief: Path) -> None:
    part = begin(create(PLAN), "worker 1", chief.name)
    assert link(part, chief.name, socket.gethostname(), 1)
    assert link(part, chief.name, socket.gethostname(), 1), "when it is resumed, too"
    assert worker_runs_of(chief)["worker 1"].resolve() == part.resolve()
    assert not os.path.isabs(os.readlink(chief / "workers" / "1")), "the chief may see these files elsewhere"
    with closing(RunReader(worker_runs_of(chief)["worker 1"])) as reader:
        assert reader.info().plan_values["strategy"] == "multi-worker"


def test_a_part_is_not_linked_into_another_run_of_that_id_nor_over_another_part(chief: Path) -> None:
    part = begin(create(PLAN), "worker 1", chief.name)
    assert not link(part, chief.name, "another-machine", 1)
    assert not link(part, "abcd-not-here", socket.gethostname(), 1)
    assert worker_runs_of(chief) == {}
    kept = create_worker(chief, "1", PLAN)
    assert not link(part, chief.name, socket.gethostname(), 1)
    assert not kept.is_symlink()
    assert link(kept, chief.name, socket.gethostname(), 1), "what is within the run needs no link"
    assert not kept.is_symlink()


def test_a_new_part_of_a_run_that_has_trained_continues_from_the_chief_s_checkpoints(chief: Path) -> None:
    (chief / "checkpoints").mkdir()
    for step in (23, 46):
        (chief / "checkpoints" / f"step-{step}.index").write_bytes(b"index")
        write_checksums(chief / "checkpoints", step)
    part = begin(create_worker(chief, "1", PLAN))
    assert checkpoint_steps(part) == [23, 46]
    assert checkpoint_steps(create_worker(chief, "ps0", Plan(strategy="parameter-server"))) == []
    shutil.rmtree(part / "checkpoints")
    assert checkpoint_steps(create_worker(chief, "1", PLAN)) == [], "which are lost, as all workers are told"


def test_a_part_is_listed_as_what_it_is_and_is_not_the_last_run(chief: Path) -> None:
    part = begin(create(PLAN), "worker 1", chief.name)
    alone = begin(create(PLAN), "worker 1")
    memberships = {run.directory: str(run.membership or "") for run in list_runs()}
    assert memberships == {chief: "", part: f"worker 1 of {chief.name}", alone: "worker 1"}
    assert find_run("last") == alone, "no other run stands for it here"
    (alone / "run.db").unlink()
    assert find_run("last") == chief


def test_a_part_does_not_go_on_alone(chief: Path) -> None:
    part = begin(create(PLAN), "worker 1", chief.name)
    with pytest.raises(RunError, match=f"worker 1 of {chief.name} and cannot continue alone: continue {chief.name} on"):
        run_to_continue(part, {})
    with pytest.raises(RunError, match="cannot continue alone"):
        run_to_continue(part, environment(0))
    assert run_to_continue(part, environment(1)) == part
    with pytest.raises(RunError, match="continue the chief's run on"):
        run_to_continue(begin(create(PLAN), "worker 1"), {})
    local = begin(create_worker(chief, "1", PLAN), "worker 1", chief.name)
    with pytest.raises(RunError, match=f"this is worker 1 of run {chief.name}: continue {chief.name}, with all"):
        run_to_continue(local, {})


def test_a_worker_that_names_the_chief_s_run_goes_on_with_its_own_part(chief: Path) -> None:
    part = begin(create(PLAN), "worker 1", chief.name)
    assert run_to_continue(chief, environment(1)) == chief
    link(part, chief.name, socket.gethostname(), 1)
    assert run_to_continue(chief, environment(1)) == part
    assert run_to_continue(chief, environment(0)) == chief


def test_the_run_of_a_script_is_continued_by_the_script() -> None:
    recorded = create_recorded({"name": "x", "model": "", "data": ""}, "python train.py")
    with pytest.raises(RunError, match=r"only the script can continue it: run python train\.py"):
        run_to_continue(recorded, {})
