"""What a run is busy with, in words."""

from dataclasses import replace
from pathlib import Path

import pytest

from accel_engine.events import Outcome, Phase, PhaseChanged, RunEnded, RunStarted, WorkCounted
from accel_engine.run import RunInfo, Status
from accel_engine.run.directory.disk_problem import DiskProblem
from accel_tui.run_state.pace import StepRate
from accel_tui.run_state.state import RunState
from accel_tui.widgets.run.phase_line import phase, phase_progress
from accel_tui.widgets.styled_text import plain_spans


def state(status: Status, current: Phase | None = None, detail: str = "") -> RunState:
    info = RunInfo("k7m2", Path("k7m2"), None, {}, created=0.0, host="h", pid=1, status=status)
    entered = PhaseChanged(time=100.0, phase=current, detail=detail) if current else None
    return RunState(info=info, phase=entered)


@pytest.mark.parametrize("current", list(Phase))
def test_every_phase_is_said(current: Phase) -> None:
    words = plain_spans(phase(state(Status.RUNNING, current, "some detail"), now=165.0))
    assert current in words
    assert ("1:05" in words) is (current is not Phase.TRAINING)  # training's is the run's, in the line below
    assert "some detail" in words


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_is_said_with_its_time(outcome: Outcome) -> None:
    ended = RunEnded(time=9.0, outcome=outcome, steps=1, epochs=0, seconds=83.0, steps_per_second=1.0, metrics={})
    words = plain_spans(phase(replace(state(Status(outcome), Phase.TRAINING), ended=ended), now=165.0))
    assert outcome in words
    assert "1:23" in words
    assert "training" not in words


def test_a_short_phase_has_no_time_and_neither_has_one_to_come() -> None:
    for now in (101.5, 5.0):
        assert ":" not in plain_spans(phase(state(Status.RUNNING, Phase.TRACING), now=now))


def test_lost_is_said_whatever_the_engine_did_last() -> None:
    assert "lost" in plain_spans(phase(state(Status.LOST, Phase.TRAINING), now=165.0))


def test_a_run_that_is_taken_up_again_is_starting_whatever_its_end_was() -> None:
    ended = RunEnded(
        time=9.0, outcome=Outcome.STOPPED, steps=1, epochs=0, seconds=1.0, steps_per_second=1.0, metrics={}
    )
    started = RunStarted(time=1.0, run="k7m2", name="", plan={}, first_step=0, pid=1, host="h", versions={})
    words = plain_spans(phase(replace(state(Status.STARTING, Phase.TRAINING), started=started, ended=ended), now=165.0))
    assert "starting" in words


def test_the_use_of_the_devices_is_said_after_the_rates() -> None:
    step_rate = StepRate(recent=((100, 10.0),))
    work = WorkCounted(time=1.0, flops=2e9, peak=80e9)
    said = [plain_spans(pair) for pair in phase_progress(RunState(step_rate=step_rate, work=work))]
    assert said == ["10.0 steps/s", "20.0 GFLOP/s", "MFU 25%"]
    said = [plain_spans(pair) for pair in phase_progress(RunState(step_rate=step_rate, work=replace(work, peak=None)))]
    assert said == ["10.0 steps/s", "20.0 GFLOP/s"]


@pytest.mark.parametrize("current", [None, Phase.TRAINING, Phase.CHECKPOINTING])
def test_a_wait_for_the_disk_is_said_whatever_the_run_does(current: Phase | None) -> None:
    waiting = state(Status.RUNNING, current)
    assert waiting.info is not None
    waiting = replace(waiting, info=replace(waiting.info, waiting=DiskProblem.FULL))
    assert plain_spans(phase(waiting, now=165.0)) == "‖ disk full: waiting for space"
    assert plain_spans(phase(waiting, now=165.0, brief=True)) == "‖ disk full: waiting for space"


def test_a_wait_for_the_disk_has_no_rate_and_no_remaining_time() -> None:
    running = replace(state(Status.RUNNING, Phase.TRAINING), step_rate=StepRate(recent=((100, 10.0),)))
    assert running.steps_per_second == 10.0
    assert running.info is not None
    waiting = replace(running, info=replace(running.info, waiting=DiskProblem.FULL))
    assert (waiting.steps_per_second, waiting.remaining) == (None, None)
    assert not any("steps/s" in plain_spans(pair) for pair in phase_progress(waiting))
