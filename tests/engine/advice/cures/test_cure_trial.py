"""Which plans are tried for which changes, and what a trial says; without engines."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accel_engine.advice.cures import cure_task as tasks
from accel_engine.advice.cures.cure_kinds import Quantity
from accel_engine.advice.cures.cure_results import interval_result, learning_result, step_result
from accel_engine.advice.cures.cure_task import CureTask, cure_task
from accel_engine.advice.cures.interval_trial import IntervalTrial
from accel_engine.advice.cures.learning_trial import LearningTrial
from accel_engine.errors import AccelError
from accel_engine.events import DevicesFound, TensorFlowDevice, XlaTried
from accel_engine.measure.trial_process import TrialFailedError
from accel_engine.measure.trial_statistics import compare_losses, compare_rates
from accel_engine.plan import Plan
from accel_engine.requests.try_plan import TrialStart
from accel_engine.run import RunInfo, Status
from example_events import model_built

ON_CPU = DevicesFound(time=0.0, devices=(TensorFlowDevice("CPU:0", "cpu"),), strategy="OneDeviceStrategy")
XLA = XlaTried(time=1.0, step=9, xla=True, plain=1.0, compiled=2.0, remembered=False)


def run_of(plan: Plan | None = None, status: Status = Status.STOPPED, **others: Any) -> RunInfo:
    plan = plan or Plan(model="mlp")
    return RunInfo("k3fp", Path("k3fp"), plan, plan.to_mapping(), 0.0, "here", 1, status, **others)


@pytest.fixture(autouse=True)
def checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run has a checkpoint."""
    monkeypatch.setattr(tasks, "latest_checkpoint", lambda _: 23)


@pytest.mark.parametrize(
    ("changes", "status", "step", "quantity"),
    [
        ({"learning_rate": 0.01}, Status.RUNNING, 23, Quantity.LEARNING),
        ({"learning_rate": 0.01}, Status.FINISHED, 0, Quantity.LEARNING),
        ({"micro_batches": 2}, Status.FINISHED, 23, Quantity.SPEED),
        ({"batch_size": 128}, Status.STOPPED, 0, Quantity.SPEED),
        ({"optimizer": "sgd"}, Status.STOPPED, 0, Quantity.LEARNING),
        ({"remat": "on"}, Status.STOPPED, 23, Quantity.MEMORY),
        ({"validation_every": "2 epochs"}, Status.STOPPED, 23, Quantity.INTERVALS),
    ],
)
def test_a_trial_starts_where_the_run_would_go_on(
    changes: dict[str, Any], status: Status, step: int, quantity: Quantity
) -> None:
    task = cure_task(run_of(status=status), [ON_CPU], changes)
    assert (task.before.step, task.after.step, task.quantity) == (step, step, quantity)
    assert task.before.run == (Path("k3fp") if step else None)
    assert task.after.plan == task.before.plan.replace(**changes)
    assert task.start == ("from the checkpoint of step 23" if step else "from the initial weights")


def test_the_mode_of_the_run_is_kept_unless_it_is_changed() -> None:
    task = cure_task(run_of(), [ON_CPU, XLA], {"learning_rate": 0.01})
    assert (task.before.plan.xla, task.after.plan.xla) == ("on", "on")
    task = cure_task(run_of(), [ON_CPU, XLA], {"xla": "off"})
    assert (task.before.plan.xla, task.after.plan.xla) == ("on", "off")
    task = cure_task(run_of(Plan(model="mlp", xla="off")), [ON_CPU], {"xla": "auto"})
    assert (task.before.plan.xla, task.after.plan.xla) == ("off", "on")


def test_a_finding_says_what_is_compared() -> None:
    assert cure_task(run_of(), [ON_CPU], {"batch_size": 8}, Quantity.LEARNING).quantity is Quantity.LEARNING
    every = {"checkpoint_every": "9 epochs"}
    assert cure_task(run_of(), [ON_CPU], every, Quantity.SPEED).quantity is Quantity.INTERVALS


def test_weights_of_classes_are_judged_by_a_metric_that_counts_each_class_the_same() -> None:
    events = [ON_CPU, model_built(task="classification")]
    task = cure_task(run_of(), events, {"class_weight": ("balanced",)})
    assert task.balanced_metric == "f1_score"
    assert task.before.plan.metrics == task.after.plan.metrics == ("f1_score",)
    assert cure_task(run_of(), events, {"label_smoothing": 0.1}).before.plan.metrics == ()


@pytest.mark.parametrize(
    ("info", "changes", "words"),
    [
        (run_of(script="python train.py"), {"xla": "on"}, "was recorded by a script: only a run of this program"),
        (run_of(Plan(strategy="multi-worker", local_workers=2)), {"xla": "on"}, "several processes"),
        (run_of(Plan(model="mlp", xla="off")), {"xla": "off"}, "has these settings already"),
        (run_of(), {"batch_size": 0}, "at least 1"),
        (run_of(), {"patience": 3}, "apply it"),
        (run_of(), {"momentum": 0.9}, "needs the optimizer sgd or rmsprop"),
    ],
)
def test_what_cannot_be_tried_says_why(info: RunInfo, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(AccelError, match=words):
        cure_task(info, [ON_CPU], changes)


def trial(rate: float, memory: float | None = 1e9, problem: TrialFailedError | None = None) -> Any:
    rates = [rate * (1 + 0.01 * number) for number in range(8)]
    return SimpleNamespace(
        examples_per_second=rate,
        rates=rates,
        turns=rates,
        memory=memory,
        problem=problem,
        ready=SimpleNamespace(compile_seconds=1.0),
        compared_with=lambda other: compare_rates(other.rates, rates),
    )


def task(quantity: Quantity) -> CureTask:
    return CureTask(TrialStart(Plan(), 23, Path("k3fp")), TrialStart(Plan(), 23, Path("k3fp")), quantity, {})


def test_a_speed_result_is_in_examples_a_second() -> None:
    found = step_result(trial(100.0), trial(200.0), task(Quantity.SPEED))
    assert (found.before, found.after, found.unit, found.better) == (100.0, 200.0, "examples/s", True)
    assert found.text == (
        "200 examples/s with the changes, 100 without: faster, 2.00 to 2.00 times as fast. 8 rounds in turns, from "
        "the checkpoint of step 23; compiled in 1.0 and 1.0 s"
    )
    slower = step_result(trial(200.0), trial(100.0), task(Quantity.SPEED))
    assert not slower.better
    assert "slower" in slower.text
    assert "no difference" in step_result(trial(100.0), trial(101.0), task(Quantity.SPEED)).text


def test_a_memory_result_is_the_peak_and_out_of_memory_is_one() -> None:
    found = step_result(trial(100.0, 4e9), trial(80.0, 2e9), task(Quantity.MEMORY))
    assert (found.before, found.after, found.unit, found.better) == (4.0, 2.0, "GB", True)
    assert "slower" in found.text
    full = TrialFailedError("out of memory", out_of_memory=True)
    found = step_result(trial(1.0, problem=full), trial(80.0, 2e9), task(Quantity.MEMORY))
    assert (found.before, found.after, found.better) == (math.inf, 2.0, True)
    assert "2.00 GB with the changes, out of memory without" in found.text
    found = step_result(trial(1.0, problem=full), trial(1.0, problem=full), task(Quantity.MEMORY))
    assert not found.better
    with pytest.raises(AccelError, match="with the changes cannot be tried: out of memory"):
        step_result(trial(1.0), trial(1.0, problem=full), task(Quantity.SPEED))


def test_a_learning_result_is_the_metric() -> None:
    comparison = compare_losses([1.0, 1.1, 1.2], [0.5, 0.6, 0.7])
    found = learning_result(LearningTrial("validation loss", 1.1, 0.6, comparison, 80), task(Quantity.LEARNING))
    assert (found.unit, found.better) == ("validation loss", True)
    assert found.low <= found.after <= found.high < found.before
    assert "After 80 steps from the checkpoint of step 23, in 3 orders of the examples" in found.text
    harm = compare_losses([0.5, 0.6, 0.7], [1.0, 1.1, 1.2])
    found = learning_result(LearningTrial("validation loss", 0.6, 1.1, harm, 80), task(Quantity.LEARNING))
    assert not found.better
    assert "1.1 with the changes, 0.6 without: worse" in found.text


def test_a_result_of_intervals_says_what_it_was_computed_from() -> None:
    comparison = compare_rates([10.0] * 8, [12.0] * 8)
    found = interval_result(IntervalTrial(640.0, comparison, 20.0, 1.5, 0.25))
    assert (found.before, found.after, found.better) == (640.0, pytest.approx(768.0), True)
    assert "Computed from 8 rounds: 20 steps/s, a validation in 1.5 s, a checkpoint in 0.25 s" in found.text
