"""Cures are tried beside a run, applied to it, and taken back."""

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from accel_engine import run
from accel_engine.advice.cures.apply_cure import Method, apply, undo
from accel_engine.events import CommandAnswered, Outcome, PlanChanged, RunEnded
from accel_engine.measure.plan_trials import PlanTrials
from accel_engine.measure.trial_process import TrialCancelledError
from accel_engine.measure.trial_statistics import LEAST_ROUNDS
from accel_engine.plan import Plan
from accel_engine.process.engine_process import start_engine
from accel_engine.race.cure_race import CureProgress, CureRace, try_cure
from accel_engine.requests.try_plan import TrialStart
from accel_engine.run import RunReader, RunWriter, Status, send_command
from accel_engine.run.directory.run_paths import latest_checkpoint

from .record import read, status, steps

Engines = list["subprocess.Popen[str]"]

LIVE = Plan(epochs=100_000, last_batch="drop", validation="off", xla="off", optimizer="sgd", learning_rate=0.01)

SLEEPING = """
import time

import keras
import tensorflow as tf

class Sleep(keras.layers.Layer):
    def call(self, x):
        slept = tf.numpy_function(lambda: time.sleep(0.01) or 1.0, [], tf.float64)
        with tf.control_dependencies([slept]):
            return tf.identity(x)

def build(input_shape, classes):
    hidden = [keras.layers.Flatten(), Sleep(), keras.layers.Dense(classes, activation="softmax")]
    return keras.Sequential([keras.Input(input_shape), *hidden])
"""
"""A model that leaves the processor to others."""


def no_progress(_: object) -> None:
    """Nobody watches."""


def left_behind(home: Path) -> list[Path]:
    """Directories of trials."""
    return [*(home / "runs").glob(".trial-*")]


@pytest.mark.parametrize("cures", ["speed", pytest.param("learning", marks=pytest.mark.campaign)])
def test_a_cure_is_measured(home: Path, cures: str) -> None:
    directory = run.create(Plan(model="mlp", epochs=2, batch_size=8, learning_rate=1e-5))
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        writer.end(RunEnded(time=1.0, outcome=Outcome.FINISHED, steps=0, epochs=2, seconds=1.0))
    before = [path.stat().st_mtime_ns for path in sorted(directory.rglob("*"))]

    def tried(**changes: object) -> CureRace:
        return try_cure(directory, changes, no_progress, seconds=1.0, should_stop=lambda: False)

    if cures == "speed":
        speed = tried(batch_size=512)
        without, cure = speed.results
        assert cure.between is not None
        assert cure.examples_per_second is not None
        assert 0 < cure.between[0] <= cure.examples_per_second <= cure.between[1]
        assert without.examples_per_second
        assert "from the initial weights" in speed.how
    else:
        helps = tried(learning_rate=0.001)
        planned, cured = (each.learned for each in helps.results)
        assert helps.is_better
        assert planned
        assert cured
        assert cured.between
        assert cured.metric.endswith("loss")
        assert cured.value <= cured.between[1] < planned.value
    assert [path.stat().st_mtime_ns for path in sorted(directory.rglob("*"))] == before
    assert left_behind(home) == []


def test_plans_take_turns_until_one_is_killed(home: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def build(input_shape, classes):\n    raise ValueError('no layers')\n")
    plan = Plan(model="mlp")
    with PlanTrials([TrialStart(plan), TrialStart(plan.replace(model=f"{tmp_path}/broken.py:build"))]) as trials:
        trials.wait_ready()
        first, second = trials.trials
        assert second.problem is not None
        assert not second.problem.out_of_memory
        assert "no layers" in str(second.problem)
        assert trials.usable == [first]
        trials.take_turns(0.0)
        assert len(first.turns) == LEAST_ROUNDS
        assert first.ready.global_batch == 64
        low, high = first.examples_per_second_between
        assert 0 < low <= first.examples_per_second <= high
        os.kill(first.process.pid, signal.SIGKILL)
        trials.take_turns(0.0)
        assert first.problem is not None
        assert first.problem.out_of_memory
    assert left_behind(home) == []


def test_a_live_run_is_paused_for_a_trial_and_gets_its_plan_back_when_a_cure_is_undone(
    engines: Engines, home: Path, tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    (tmp_path / "sleeping.py").write_text(SLEEPING)
    directory = run.create(LIVE.replace(model=f"{tmp_path}/sleeping.py:build"))
    engines.append(start_engine(directory))
    wait_until(lambda: latest_checkpoint(directory), "a checkpoint")
    check_that_a_cancelled_trial_resumes(directory, wait_until)
    assert left_behind(home) == []
    wait_until(lambda: steps(directory) > 100, "steps")

    applied = apply(directory, {"learning_rate": 0.02}, finding="rate-low")
    assert (applied.method, applied.process) == (Method.COMMAND, None)
    undone = undo(directory)
    assert (undone.method, undone.changes) == (Method.COMMAND, {"learning_rate": pytest.approx(0.01)})
    answers = [event for event in read(directory)[0] if isinstance(event, CommandAnswered)][2:]
    why = [("advice rate-low", "cure"), ("undo of advice rate-low", "undo")]
    assert [(event.reason, event.purpose) for event in answers] == why

    applied = apply(directory, {"clip_norm": 1.0}, finding="spikes")
    engines.append(applied.process)
    assert applied.method is Method.CONTINUED
    wait_until(lambda: status(directory) is Status.RUNNING, "the run")
    with closing(RunReader(directory)) as reader:
        assert reader.info().plan_values["clip_norm"] == 1.0
    undone = undo(directory)
    engines.append(undone.process)
    assert (undone.method, undone.changes) == (Method.CONTINUED, {"clip_norm": None})
    changed = [event for event in read(directory)[0] if isinstance(event, PlanChanged)]
    assert [event.reason for event in changed] == ["advice spikes", "undo of advice spikes"]
    wait_until(lambda: steps(directory) > changed[-1].step + 100, "steps without it")
    send_command(directory, "stop_now")
    wait_until(lambda: not status(directory).live, "the end")


def check_that_a_cancelled_trial_resumes(directory: Path, wait_until: Callable[..., None]) -> None:
    children = {each.pid for each in psutil.Process().children()}
    seen: list[Status] = []

    def watch(progress: CureProgress) -> None:
        if "paused meanwhile" in progress.detail:
            seen.append(status(directory))

    with pytest.raises(TrialCancelledError):
        try_cure(directory, {"clip_norm": 1.0}, watch, should_stop=lambda: bool(seen))
    assert seen == [Status.PAUSED]
    wait_until(lambda: status(directory) is Status.RUNNING, "the run")
    assert {each.pid for each in psutil.Process().children()} == children
    pause, resume = (event for event in read(directory)[0] if isinstance(event, CommandAnswered))
    assert (pause.command, resume.command, pause.step) == ("pause", "resume", resume.step)
