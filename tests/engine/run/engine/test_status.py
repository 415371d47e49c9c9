import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

import damaged_runs
from accel_engine import clock
from accel_engine.clock import boot_seconds
from accel_engine.errors import RunError
from accel_engine.events import Outcome, Phase, PhaseChanged, RunEnded, RunStarted
from accel_engine.json_values import encode
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, Status, create, list_runs
from accel_engine.run.engine.process_identity import ProcessIdentity, machine_id
from accel_engine.run.engine.status import START_SECONDS
from accel_engine.run.runs.creation import assign_process
from recorded_run import execute, put, started

ENGINE = """
import signal, sys
from pathlib import Path
from accel_engine.run import RunWriter
writer = RunWriter(Path(sys.argv[1]))
writer.begin()
print("begun", flush=True)
signal.pause()
"""


@pytest.fixture
def engine(directory: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that has taken the run up and goes on living."""
    process = subprocess.Popen(
        [sys.executable, "-c", ENGINE, str(directory)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    yield process
    process.kill()
    process.communicate()


def ended(outcome: Outcome, at: float = 9.0) -> RunEnded:
    return RunEnded(time=at, outcome=outcome, steps=1, epochs=0, seconds=1.0, steps_per_second=0.0, metrics={})


def test_run_waits_for_an_engine_for_a_while_and_then_counts_as_lost(directory: Path, reader: RunReader) -> None:
    assert reader.info().status is Status.STARTING
    put(directory, pending=boot_seconds() - START_SECONDS - 1)
    assert reader.info().status is Status.LOST


def test_run_handed_to_a_living_engine_is_starting_however_long_it_takes(directory: Path, reader: RunReader) -> None:
    assign_process(directory, os.getpid())
    put(directory, pending=boot_seconds() - 1000)
    assert reader.info().status is Status.STARTING


def test_run_handed_to_an_engine_that_is_gone_is_lost(directory: Path, reader: RunReader) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assign_process(directory, process.pid)
    assert reader.info().status is Status.LOST


@pytest.mark.parametrize("outcome", list(Outcome))
def test_ended_run_tells_its_outcome_though_its_process_lives(
    directory: Path, writer: RunWriter, reader: RunReader, outcome: Outcome
) -> None:
    writer.begin()
    writer.write_event(started(run=directory.name))
    writer.write_event(ended(outcome))
    assert reader.info().status == outcome
    assert not reader.info().status.live


@pytest.mark.parametrize(
    "fields",
    [{"steps_per_second": 1.7e308, "metrics": {"loss": 1.7e308}}, {"reason": 70_000 * "x"}, {"seconds": math.inf}],
)
def test_extreme_values_of_its_end_hide_no_outcome(
    directory: Path, writer: RunWriter, reader: RunReader, fields: dict[str, Any]
) -> None:
    writer.begin(started(run=directory.name))
    writer.end(replace(ended(Outcome.FINISHED), **fields))
    assert reader.info().status is Status.FINISHED
    assert [type(event) for event in reader.poll().events] == [RunStarted, RunEnded]
    assert math.isfinite(list_runs()[0].seconds)


def test_a_damaged_end_is_an_error(directory: Path, writer: RunWriter, reader: RunReader) -> None:
    writer.begin(started(run=directory.name))
    writer.end(ended(Outcome.FINISHED))
    execute(directory, "UPDATE event SET body = json_set(body, '$.steps', 'many') WHERE kind = 'run_ended'")
    with pytest.raises(RunError, match="row 2 of the table event"):
        reader.info()


def test_run_taken_up_again_is_running(directory: Path, writer: RunWriter, reader: RunReader) -> None:
    writer.begin()
    writer.write_event(ended(Outcome.STOPPED))
    writer.write_event(started(run=directory.name))
    assert reader.info().status is Status.RUNNING
    assert reader.info().status.live


def test_a_paused_run_is_paused_until_it_goes_on_ends_or_is_lost(
    directory: Path, writer: RunWriter, reader: RunReader
) -> None:
    writer.begin()
    writer.write_event(started(run=directory.name))
    writer.write_event(PhaseChanged(time=2.0, phase=Phase.PAUSED))
    assert reader.info().status is Status.PAUSED
    assert reader.info().status.live
    writer.write_event(PhaseChanged(time=3.0, phase=Phase.TRAINING))
    assert reader.info().status is Status.RUNNING
    writer.write_event(PhaseChanged(time=4.0, phase=Phase.PAUSED))
    writer.write_event(ended(Outcome.STOPPED))
    assert reader.info().status is Status.STOPPED
    writer.write_event(started(run=directory.name))
    assert reader.info().status is Status.RUNNING


def test_killed_engine_leaves_a_lost_run(
    engine: "subprocess.Popen[str]", directory: Path, reader: RunReader, wait_until: Callable[..., None]
) -> None:
    assert reader.info().status is Status.RUNNING
    engine.send_signal(signal.SIGKILL)
    # Not reaped yet: a zombie is as dead as can be.
    wait_until(lambda: reader.info().status is Status.LOST, "the run to count as lost")
    engine.wait()
    assert reader.info().status is Status.LOST


def test_stopped_process_is_alive(engine: "subprocess.Popen[str]", reader: RunReader) -> None:
    engine.send_signal(signal.SIGSTOP)
    assert reader.info().status is Status.RUNNING
    engine.send_signal(signal.SIGCONT)


def test_number_that_went_to_another_process_is_not_the_engine(directory: Path, reader: RunReader) -> None:
    assign_process(directory, os.getpid())
    put(directory, process=encode(replace(ProcessIdentity.of(os.getpid()), started=1.0)))
    assert reader.info().status is Status.LOST


def test_run_handed_over_in_a_container_is_starting_for_a_while(directory: Path, reader: RunReader) -> None:
    """Its engine's number means nothing here: it belongs to another pid namespace."""
    assign_process(directory, os.getpid())
    put(directory, process=encode(replace(ProcessIdentity.of(os.getpid()), namespace="pid:[1]", pid=1 << 30)))
    assert reader.info().status is Status.STARTING
    put(directory, pending=boot_seconds() - START_SECONDS - 1)
    assert reader.info().status is Status.LOST


def test_run_that_waited_when_the_machine_was_booted_again_is_lost(directory: Path, reader: RunReader) -> None:
    put(directory, machine="another boot")
    assert reader.info().status is Status.LOST
    put(directory, machine=machine_id(), pending=boot_seconds() + 1000)
    assert reader.info().status is Status.LOST


@pytest.mark.parametrize("step", [-3600.0, -3.0, 3.0, 3600.0])
def test_a_step_of_the_clock_changes_the_status_of_no_run(
    engine: "subprocess.Popen[str]", reader: RunReader, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    """NTP, a suspended machine, or a container's /proc/stat with another btime: psutil's times of starts move, too."""
    waiting, lost = create(Plan()), create(Plan())
    assign_process(waiting, os.getpid())
    with closing(RunWriter(lost)) as writer:
        writer.begin()
    wall, created = time.time, psutil.Process.create_time
    monkeypatch.setattr("time.time", lambda: wall() + step)
    monkeypatch.setattr("psutil.Process.create_time", lambda process: created(process) + step)

    assert {run.directory: run.status for run in list_runs()} == {
        reader.directory: Status.RUNNING,
        waiting: Status.STARTING,
        lost: Status.LOST,
    }


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_who_looks_after_a_step_of_the_clock_sees_the_time_of_the_run_s_own_events(
    writer: RunWriter, reader: RunReader, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    writer.begin()
    began = clock.now()
    monkeypatch.setattr(clock, "OFFSET", clock.OFFSET + step)  # as in a program that was started after the step
    assert 0 <= reader.info().now() - began < 600
    put(reader.directory, machine="another")
    assert abs(reader.info().now() - began - step) < 600


def test_engine_that_ends_while_its_run_is_looked_at_is_not_called_lost(
    directory: Path, writer: RunWriter, reader: RunReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.begin()

    def ends_now(directory: Path) -> bool:
        writer.end(ended(Outcome.FINISHED))
        return False

    monkeypatch.setattr("accel_engine.run.directory.lock.is_locked", ends_now)
    assert reader.info().status is Status.FINISHED


@pytest.mark.parametrize(("column", "value"), [("body", "{"), ("body", b"\0"), ("time", "later")])
def test_a_run_whose_end_is_damaged_says_so(column: str, value: object) -> None:
    run = damaged_runs.record()
    damaged_runs.change(run, f"UPDATE event SET {column} = ? WHERE kind = 'run_ended'", value)
    with closing(RunReader(run)) as reader, pytest.raises(RunError, match="row 34 of the table event"):
        reader.info()


def test_a_run_without_an_end_is_lost() -> None:
    run = damaged_runs.record()
    damaged_runs.change(run, "DELETE FROM event WHERE kind = 'run_ended'")
    with closing(RunReader(run)) as reader:
        assert reader.info().status is Status.LOST
