"""What the process that watches a run does about its own trouble, and about a user's stop."""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from accel_engine import run
from accel_engine.errors import AccelError, DatabaseError, EngineMissingError, RunError
from accel_engine.events import EpochEnded, RunEnded
from accel_engine.keep_alive import memory_restart, watcher
from accel_engine.keep_alive.memory_restart import restart_with_less_memory
from accel_engine.keep_alive.restart import Restart
from accel_engine.keep_alive.watcher import MAX_RESTARTS, Restarts, Watcher
from accel_engine.places.own_process import set_place
from accel_engine.plan import Plan
from accel_engine.plan.memory_remedies import MemoryFacts
from accel_engine.process import detached, engine_process
from accel_engine.run import RunReader, RunWriter, Status, reopen
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import WATCHER_LOCK
from accel_engine.run.engine.commands import read_answer
from accel_engine.run.store.database import reading, writing
from accel_engine.run.store.meta import PlacedRun
from accel_engine.run.store.stored_events import last_event


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_TUI_RESTART_SECONDS", "0")
    monkeypatch.setattr(watcher, "POLL_SECONDS", 0.0)


@pytest.fixture
def directory(home: Path) -> Path:
    """A run whose engine never started."""
    directory = run.create(Plan(keep_alive="on"))
    lose(directory)
    return directory


@pytest.fixture
def watched(directory: Path) -> Iterator[Path]:
    """The same run, which has a process that watches it."""
    with WriterLock(directory, WATCHER_LOCK):
        yield directory


def lose(directory: Path) -> None:
    """Let a run have waited for its engine for too long."""
    with writing(directory) as database:
        database.set_meta(pending=0.0, process=None)


def status(directory: Path) -> Status:
    with closing(RunReader(directory)) as reader:
        return reader.info(watched=False).status


@pytest.mark.parametrize(
    "problem",
    [RunError("cannot start the engine: Cannot allocate memory"), EngineMissingError("TensorFlow is not installed")],
)
def test_a_restart_that_fails_counts_and_is_tried_again(
    directory: Path, monkeypatch: pytest.MonkeyPatch, problem: AccelError
) -> None:
    starts: list[Path] = []

    def fail(started: Path, _: object) -> NoReturn:
        starts.append(started)
        lose(started)
        raise problem

    with closing(RunWriter(directory)) as writer:
        writer.write_chunk(0, 1.0, 2.0, {"loss": np.ones(7, np.float32)})
        writer.write_event(EpochEnded(time=2.0, epoch=1, step=5, metrics={}, seconds=1.0))
    lose(directory)
    monkeypatch.setattr(engine_process, "start_engine", fail)
    Watcher(directory).watch()

    assert len(starts) == 5
    assert status(directory) is Status.FAILED
    with reading(directory) as database:
        ended = last_event(database, RunEnded)
    assert ended is not None
    assert (ended.steps, ended.epochs) == (7, 1)
    assert (directory / "log.txt").read_text().count(str(problem)) == 5


def test_a_process_that_the_system_cannot_start_is_an_error_of_the_run(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(detached.subprocess, "Popen", fail)
    with pytest.raises(RunError, match=r"cannot start the engine of run .*: Cannot allocate memory"):
        engine_process.start_engine(directory)


def test_a_locked_database_does_not_end_the_watching(watched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number = run.send_command(watched, "stop")
    reading, failed = watcher.reading, []

    @contextmanager
    def locked_once(path: Path) -> Iterator[object]:
        if not failed:
            failed.append(path)
            raise DatabaseError("database is locked")
        with reading(path) as database:
            yield database

    monkeypatch.setattr(watcher, "reading", locked_once)
    Watcher(watched).watch()
    assert failed
    assert read_answer(watched, number) == (True, "stopped: the engine is not started again")

    failed.clear()
    monkeypatch.setattr(watcher, "PATIENCE_SECONDS", -1.0)
    with pytest.raises(DatabaseError):
        Watcher(watched).watch()


def test_a_stop_while_workers_exit_is_obeyed(watched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[int] = []

    def still_held(_: Path) -> bool:
        if not numbers:
            numbers.append(run.send_command(watched, "stop"))
        return True

    monkeypatch.setattr(watcher, "worker_runs_of", lambda _: {1: watched})
    monkeypatch.setattr(watcher, "is_locked", still_held)
    Watcher(watched).watch()

    assert status(watched) is Status.LOST
    assert read_answer(watched, *numbers) == (True, "stopped: the engine is not started again")


def test_an_engine_that_a_follower_starts_sees_the_gpus_of_the_lost_one(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1"}
    with closing(RunWriter(directory)) as writer:
        writer.write_memory_facts(MemoryFacts(batch=64, can_split=True, variables=gpus))
    environments: list[Mapping[str, str]] = []
    monkeypatch.setattr(memory_restart, "was_killed_for_memory", lambda _: True)
    monkeypatch.setattr(engine_process, "start_engine", lambda _, environment: environments.append(environment))
    lose(directory)
    assert restart_with_less_memory(directory)
    (environment,) = environments
    assert {name: environment[name] for name in gpus} == gpus


def test_only_one_follower_starts_a_killed_run(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(RunWriter(directory)) as writer:
        writer.write_memory_facts(MemoryFacts(batch=64, can_split=True))
    starts: list[Path] = []

    def another_was_first(path: Path, plan: Plan) -> NoReturn:
        reopen(path, plan)
        reopen(path, plan)
        raise AssertionError

    monkeypatch.setattr(memory_restart, "was_killed_for_memory", lambda _: True)
    monkeypatch.setattr(engine_process, "start_engine", lambda path, _: starts.append(path))
    monkeypatch.setattr(memory_restart, "reopen", another_was_first)
    assert restart_with_less_memory(directory)
    assert not starts
    assert status(directory) is Status.STARTING

    monkeypatch.setattr(memory_restart, "was_killed_for_memory", lambda _: False)
    assert restart_with_less_memory(directory)
    assert not starts
    lose(directory)
    assert not restart_with_less_memory(directory)

    monkeypatch.setattr(memory_restart, "was_killed_for_memory", lambda _: True)
    monkeypatch.setattr(memory_restart, "reopen", reopen)
    assert restart_with_less_memory(directory)
    assert starts == [directory]


def test_a_follower_starts_no_run_of_a_place_here(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(RunWriter(directory)) as writer:
        writer.write_memory_facts(MemoryFacts(batch=64, can_split=True))
    lose(directory)
    set_place(directory, PlacedRun("slurm", "7"))
    monkeypatch.setattr(memory_restart, "was_killed_for_memory", lambda _: True)
    monkeypatch.setattr(engine_process, "start_engine", pytest.fail)
    assert not restart_with_less_memory(directory)
    assert status(directory) is Status.LOST


def test_pauses_grow_until_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACCEL_TUI_RESTART_SECONDS")
    restarts = Restarts()

    assert [restarts.next_pause(0) for _ in range(MAX_RESTARTS + 1)] == [1.0, 2.0, 4.0, 8.0, 16.0, None]


def test_a_newer_checkpoint_starts_the_count_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACCEL_TUI_RESTART_SECONDS")
    restarts = Restarts()

    assert [restarts.next_pause(step) for step in (0, 0, 100, 100, 90, 200)] == [1.0, 2.0, 1.0, 2.0, 4.0, 1.0]


def test_the_longest_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_TUI_RESTART_SECONDS", "200")
    restarts = Restarts()

    assert [restarts.next_pause(0) for _ in range(2)] == [200.0, 300.0]


def test_a_new_engine_is_told_once_why_it_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    restart = Restart("engine lost", 120, "the engine exited", "started again", {"remat": "on"})
    assert Restart.take() is None
    for name, value in restart.environment.items():
        monkeypatch.setenv(name, value)

    assert Restart.take() == restart
    assert not restart.environment.keys() & os.environ.keys()
    event = restart.event(100)
    assert (event.trouble, event.step, event.failed_step, event.changes) == ("engine lost", 100, 120, {"remat": "on"})
