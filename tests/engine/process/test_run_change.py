"""A run that is stopped for a change trains on if the change fails; an engine is a thread that stops it."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from accel_engine.errors import RunError
from accel_engine.events import Outcome, RunEnded
from accel_engine.plan import Plan
from accel_engine.process import run_change
from accel_engine.process.run_change import stopped
from accel_engine.run import RunReader, RunWriter, Status, create, send_command
from accel_engine.run.directory.checkpoint_files import write_checksums
from accel_engine.run.engine.commands import withdraw


@contextmanager
def engine(*, obeys: bool = True) -> Iterator[tuple[Path, list[str]]]:
    """A live run, and the commands that it has taken; it trains on if it does not obey."""
    directory, taken, over = create(Plan(model="mlp")), [], threading.Event()
    folder = directory / "checkpoints"
    folder.mkdir()
    (folder / "step-5.index").write_bytes(b"i")
    (folder / "step-5.data-00000-of-00001").write_bytes(b"d")
    write_checksums(folder, 5)
    with closing(RunWriter(directory)) as writer:
        writer.begin()

        def train() -> None:
            step = 0
            while not over.is_set():
                for command in writer.commands():
                    taken.append(command.name)
                    if obeys:
                        writer.answer(command, obeyed=True, answer="stopped")
                        writer.end(RunEnded(time=1.0, outcome=Outcome.STOPPED, steps=5, epochs=0, seconds=1.0))
                        return
                writer.write_chunk(step, float(step), step + 1.0, {"loss": np.ones(1, np.float32)})
                step += 1
                time.sleep(0.01)

        thread = threading.Thread(target=train)
        thread.start()
        try:
            yield directory, taken
        finally:
            over.set()
            thread.join()


def status(directory: Path) -> Status:
    with closing(RunReader(directory)) as reader:
        return reader.info().status


@pytest.mark.parametrize("error", [RunError, KeyboardInterrupt])
def test_a_run_whose_change_fails_is_continued(error: type[BaseException]) -> None:
    launched: list[Path] = []
    with engine() as (directory, _):
        with pytest.raises(error), stopped(directory, launched.append):
            raise error
        assert launched == [directory]
        assert status(directory) is Status.STARTING


def test_a_run_that_was_changed_is_not_continued_again() -> None:
    with engine() as (directory, _), stopped(directory, pytest.fail):
        pass


def test_a_stop_that_takes_too_long_is_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_change, "STOP_SECONDS", 0.1)
    with engine(obeys=False) as (directory, taken):
        with pytest.raises(RunError, match="the stop is withdrawn"), stopped(directory, pytest.fail):
            pytest.fail("it has not stopped")
        assert "stop" in taken
        assert status(directory) is Status.RUNNING
        with closing(RunWriter(directory)) as writer:
            assert writer.commands() == []


def test_an_ended_run_stays_as_it_is() -> None:
    with engine() as (directory, _):
        with stopped(directory, pytest.fail):
            pass
        with pytest.raises(ZeroDivisionError), stopped(directory, pytest.fail):
            raise ZeroDivisionError


def test_an_engine_finds_out_that_a_command_was_withdrawn() -> None:
    directory = create(Plan(model="mlp"))
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        number = send_command(directory, "stop")
        (command,) = writer.commands()
        assert not writer.is_withdrawn(command)
        assert withdraw(directory, number)
        assert writer.is_withdrawn(command)
