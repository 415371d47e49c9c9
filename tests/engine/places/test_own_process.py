"""What a place's engine starts on its machines: whose run it is, and whether that starts again."""

import json
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest

from accel_engine import clock
from accel_engine.errors import RunError, UsageError
from accel_engine.events import Outcome, RunEnded, RunStarted
from accel_engine.keep_alive.watcher import MAX_RESTARTS
from accel_engine.places import own_process
from accel_engine.places.own_process import (
    is_to_start_again,
    judged,
    may_start_again,
    own_directory,
    restart_of,
    set_place,
)
from accel_engine.plan import Plan
from accel_engine.run import RunInfo, RunReader, RunWriter, Status, create, reopen
from accel_engine.run.store.meta import PlacedRun
from accel_engine.run_queue import queue

PLAN = Plan(model="mlp", data="digits")

KEPT = PLAN.replace(keep_alive="on")


def worker(index: int) -> dict[str, str]:
    """The environment of one of two processes."""
    cluster = {"worker": ["localhost:1", "127.0.0.1:2"]}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})}


@pytest.fixture
def placed() -> Callable[..., Path]:
    """Make a run that a place has started, and end it."""

    def make(plan: Plan = PLAN, outcome: Outcome | None = None, *, temporary: bool = False) -> Path:
        directory = create(plan, queued=True)
        set_place(directory, PlacedRun("slurm", "7"))
        if outcome is not None:
            end(directory, outcome, temporary=temporary)
        return directory

    return make


def end(directory: Path, outcome: Outcome, *, temporary: bool = False) -> None:
    writer = RunWriter(directory)
    writer.begin()
    time = clock.now()
    ended = RunEnded(time=time, outcome=outcome, steps=0, epochs=0, seconds=1.0, reason="SIGTERM", temporary=temporary)
    writer.end(ended)


def info_of(directory: Path) -> RunInfo:
    with closing(RunReader(directory, steps=False)) as reader:
        return reader.info(watched=False)


def test_the_first_process_has_the_run_and_others_have_theirs_in_it(placed) -> None:
    directory = placed()

    assert own_directory(directory, environment={}) == directory
    assert own_directory(directory, environment=worker(0)) == directory
    other = own_directory(directory, environment=worker(1))
    assert other == directory / "workers" / "1"
    assert info_of(other).plan == info_of(directory).plan


def test_a_process_tells_that_the_first_one_is_late_before_it_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where the node of the first one pulls its image, for longer than the others."""
    monkeypatch.setattr(own_process, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(own_process, "NAMES_SECONDS", 0.0)
    (tmp_path / "plan.json").write_text(PLAN.to_json())
    with pytest.raises(RunError, match="is it on a shared disk"):
        own_directory(tmp_path / "run", tmp_path / "plan.json", worker(1))
    monkeypatch.setattr(own_process, "NAMES_SECONDS", 600.0)
    monkeypatch.setattr(own_process, "time", Mock(wraps=time, sleep=lambda _: create_first()))

    def create_first() -> None:
        if not (tmp_path / "run").exists():
            (tmp_path / "run").symlink_to(create(PLAN, queued=True))

    assert own_directory(tmp_path / "run", tmp_path / "plan.json", worker(1)).name == "1"
    assert "is it on a shared disk?" in capsys.readouterr().out


def test_a_run_that_the_system_has_stopped_starts_again(placed) -> None:
    directory = placed(outcome=Outcome.STOPPED, temporary=True)

    assert may_start_again(directory)
    assert is_to_start_again(directory)
    found = info_of(directory)
    assert found.status is Status.QUEUED
    assert found.place == PlacedRun("slurm", "7", restarts=1, reason="the system has stopped it: SIGTERM")
    assert is_to_start_again(directory)  # nobody has started it meanwhile
    assert own_directory(directory, environment={}) == directory
    restart = restart_of(directory)
    assert restart is not None
    assert (restart.reason, restart.action) == ("the system has stopped it: SIGTERM", "slurm has started it again")


@pytest.mark.parametrize(
    ("plan", "outcome", "temporary", "again", "status"),
    [
        (PLAN, Outcome.FINISHED, False, False, 0),
        (PLAN, Outcome.STOPPED, False, False, 0),  # a user did
        (PLAN, Outcome.FAILED, True, False, 1),  # such as a lost worker
        (KEPT, Outcome.FAILED, True, True, 0),
        (KEPT, Outcome.FAILED, False, False, 1),  # it would fail again
    ],
)
def test_only_what_may_be_temporary_starts_again(placed, plan, outcome, temporary, again, status) -> None:
    directory = placed(plan, outcome, temporary=temporary)

    assert is_to_start_again(directory) is again
    if not again:
        assert judged(directory) == status
        if not temporary:
            assert own_directory(directory, environment={}) is None
            assert own_directory(directory, environment=worker(1)) is None


def test_a_run_that_is_continued_here_is_not_at_its_place_any_more(placed) -> None:
    directory = placed(outcome=Outcome.STOPPED)
    reopen(directory, PLAN)
    assert info_of(directory).place is None


def test_a_lost_run_that_its_place_starts_again_stays_there(placed) -> None:
    directory = placed()
    with closing(RunWriter(directory)) as writer:
        who = {"run": directory.name, "name": "", "pid": 1, "host": "x", "versions": {}}
        writer.begin(RunStarted(time=clock.now(), plan={}, first_step=0, **who))
    assert info_of(directory).status is Status.LOST

    assert own_directory(directory, environment={}) == directory

    assert info_of(directory).place == PlacedRun("slurm", "7")


def test_a_run_that_waits_at_a_place_is_not_queued_here(placed) -> None:
    with pytest.raises(UsageError, match="waits at slurm, which starts it"):
        queue.release(placed().name)


def test_after_too_many_starts_without_a_checkpoint_it_ends(placed) -> None:
    directory = placed()
    for _ in range(MAX_RESTARTS):
        end(directory, Outcome.STOPPED, temporary=True)
        assert is_to_start_again(directory)
    end(directory, Outcome.STOPPED, temporary=True)

    assert not is_to_start_again(directory)


def test_the_first_process_makes_the_run_of_a_plan_file(tmp_path) -> None:
    plan, link = tmp_path / "plan.json", tmp_path / "jobs" / "a"
    plan.write_text('{"model": "mlp", "data": "digits", "epochs": 3}')

    own = own_directory(link, plan, worker(0))

    assert own is not None
    assert link.resolve() == own
    found = info_of(own).plan
    assert found is not None
    assert found.epochs == 3
    assert own_directory(link, plan, worker(1)) == own / "workers" / "1"
    assert own_directory(link, plan, worker(0)) == own  # the same run again


def test_a_directory_that_a_machine_does_not_see_is_named(tmp_path) -> None:
    with pytest.raises(UsageError, match="its directory must be the same on all machines of the place"):
        own_directory(tmp_path / "elsewhere", environment={})


def test_a_run_that_another_process_trains_is_not_trained_twice(placed) -> None:
    directory = placed()
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        with pytest.raises(RunError, match="is running: another process trains it"):
            own_directory(directory, environment={})
