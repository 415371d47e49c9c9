import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.events import Outcome, RunEnded
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, Status, send_command
from accel_engine.run.directory.run_paths import LOCK
from accel_engine.run.runs.creation import assign_process, reopen
from accel_engine.run.runs.removal import remove
from recorded_run import put

ENGINE = """
import sys
from pathlib import Path
from accel_engine.errors import RunError
from accel_engine.run import RunWriter
writer = RunWriter(Path(sys.argv[1]))
try:
    writer.begin()
except RunError as error:
    print(error, flush=True)
else:
    print("begun", flush=True)
    for line in sys.stdin:
        try:
            writer.heartbeat()
            print("beat", flush=True)
        except RunError as error:
            print(error, flush=True)
"""


class OtherEngine:
    """A process that tries to take a run up."""

    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", ENGINE, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.said = self.read()

    def read(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def beat(self) -> str:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.read()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def beating(directory: Path, writer: RunWriter, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A run that looks as if another machine, whose locks are not seen here, were training it."""
    writer.begin()
    monkeypatch.setattr(writer, "check_directory", lambda: None)  # on its machine, the lock is there
    (directory / LOCK).unlink()
    put(directory, machine="another", host="elsewhere")
    over = threading.Event()

    def beat() -> None:
        while not over.wait(0.2):
            writer.heartbeat()

    thread = threading.Thread(target=beat)
    thread.start()
    yield directory
    over.set()
    thread.join()


def test_a_second_process_cannot_take_up_a_run(directory: Path, writer: RunWriter, reader: RunReader) -> None:
    writer.begin()
    with closing(OtherEngine(directory)) as other:
        assert other.said == f"run {directory.name} is already being trained by process {os.getpid()}"
    assert reader.info().pid == os.getpid()
    writer.heartbeat()
    send_command(directory, "stop")
    assert [command.name for command in writer.commands()] == ["stop"]


def test_a_second_process_cannot_take_up_a_run_even_where_all_that_is_written_of_the_first_is_wrong(
    directory: Path, writer: RunWriter
) -> None:
    writer.begin()
    put(directory, process="", pid=1 << 30, machine="another boot", heartbeat=0.0)
    with closing(OtherEngine(directory)) as other:
        assert other.said.endswith("already being trained by process 1073741824")


def test_a_dead_engine_s_run_is_taken_up_at_once(directory: Path, writer: RunWriter) -> None:
    with closing(OtherEngine(directory)) as other:
        assert other.said == "begun"
        with pytest.raises(RunError, match=f"already being trained by process {other.process.pid}"):
            writer.begin()
        assert other.beat() == "beat"
    reopen(directory, Plan())
    writer.begin()


def test_an_engine_may_be_handed_a_run_while_the_one_before_closes_it(directory: Path, writer: RunWriter) -> None:
    writer.begin()
    writer.write_event(
        RunEnded(time=9.0, outcome=Outcome.STOPPED, steps=0, epochs=0, seconds=1.0, steps_per_second=0.0, metrics={})
    )
    reopen(directory, Plan())
    timer = threading.Timer(0.2, writer.close)
    timer.start()
    with closing(OtherEngine(directory)) as other:
        assert other.said == "begun"
    timer.join()


def test_a_writer_whose_run_was_taken_over_writes_no_more(directory: Path, writer: RunWriter) -> None:
    writer.begin()
    writer.heartbeat()
    (directory / LOCK).unlink()  # somebody cleans up
    with closing(OtherEngine(directory)) as other:
        assert other.said == "begun"
        assert other.beat() == "beat"  # it copies its log into the file
        with pytest.raises(RunError, match="another process has taken over"):
            writer.heartbeat()
        assert other.beat() == "beat"


@pytest.mark.parametrize("act", [remove, lambda directory: reopen(directory, Plan())])
def test_a_run_whose_heartbeat_moves_elsewhere_is_left_alone(  # type: ignore[no-untyped-def]
    beating: Path, act, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accel_engine.run.engine.status.SILENCE_SECONDS", 0.0)  # as where its clock is wrong
    with pytest.raises(RunError, match="another machine: its heartbeat changes"):
        act(beating)
    assert beating.is_dir()


def test_a_run_that_another_machine_left_is_taken_up(
    directory: Path, writer: RunWriter, reader: RunReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accel_engine.run.engine.ownership.WATCH_SECONDS", 0.01)
    writer.begin()
    writer.close()
    put(directory, machine="another", host="elsewhere", written=0.0)
    assert reader.info().status is Status.LOST
    reopen(directory, Plan())
    assign_process(directory, os.getpid())
    assert reader.info().status is Status.STARTING


def test_a_run_that_another_machine_writes_looks_live_even_where_its_lock_is_not_seen(
    beating: Path, reader: RunReader
) -> None:
    assert reader.info().status is Status.RUNNING
    with pytest.raises(RunError, match="already being trained"):
        reopen(beating, Plan())
