"""What changes of a plan are for, and which plans are raced to try them; without engines."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_engine.advice.cures import cure_task as tasks
from accel_engine.advice.cures.cure_task import (
    QUANTITIES,
    Quantity,
    check_can_be_tried,
    cure_task,
    quantity_of,
    reason_not_to_try,
)
from accel_engine.errors import AccelError, RunError
from accel_engine.events import DevicesFound, TensorFlowDevice, XlaTried
from accel_engine.plan import SPECS, Plan
from accel_engine.run import RunInfo, Status
from accel_engine.run.directory.run_paths import hosts_directory
from accel_engine.run.history.history import History, fold
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
    ],
)
def test_a_trial_starts_where_the_run_would_go_on(
    changes: dict[str, Any], status: Status, step: int, quantity: Quantity
) -> None:
    task = cure_task(run_of(status=status), fold(History(), [ON_CPU]), changes)
    assert (task.before.step, task.after.step, task.quantity) == (step, step, quantity)
    assert task.before.run == (Path("k3fp") if step else None)
    assert task.after.plan == task.before.plan.replace(**changes)
    assert task.start == ("from the checkpoint of step 23" if step else "from the initial weights")


def test_the_mode_of_the_run_is_kept_unless_it_is_changed() -> None:
    task = cure_task(run_of(), fold(History(), [ON_CPU, XLA]), {"learning_rate": 0.01})
    assert (task.before.plan.xla, task.after.plan.xla) == ("on", "on")
    task = cure_task(run_of(), fold(History(), [ON_CPU, XLA]), {"xla": "off"})
    assert (task.before.plan.xla, task.after.plan.xla) == ("on", "off")
    task = cure_task(run_of(Plan(model="mlp", xla="off")), fold(History(), [ON_CPU]), {"xla": "auto"})
    assert (task.before.plan.xla, task.after.plan.xla) == ("off", "on")


def test_a_finding_says_what_is_compared() -> None:
    assert (
        cure_task(run_of(), fold(History(), [ON_CPU]), {"batch_size": 8}, Quantity.LEARNING).quantity
        is Quantity.LEARNING
    )


def test_weights_of_classes_are_judged_by_a_metric_that_counts_each_class_the_same() -> None:
    events = [ON_CPU, model_built(task="classification")]
    task = cure_task(run_of(), fold(History(), events), {"class_weight": ("balanced",)})
    assert task.balanced_metric == "f1_score"
    assert task.before.plan.metrics == task.after.plan.metrics == ("f1_score",)
    assert cure_task(run_of(), fold(History(), events), {"label_smoothing": 0.1}).before.plan.metrics == ()


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
        cure_task(info, fold(History(), [ON_CPU]), changes)


def test_a_run_of_a_host_is_tried_there() -> None:
    info = replace(run_of(), id="gpu1:k3fp", directory=hosts_directory() / "gpu1" / "runs" / "k3fp")
    assert "is on gpu1: this machine has no checkpoint of it" in reason_not_to_try(info, {"batch_size": 128})


def test_the_table_has_fields_of_the_plan() -> None:
    assert set(QUANTITIES) <= set(SPECS)


@pytest.mark.parametrize(
    ("changes", "on_cpu", "quantity"),
    [
        (["xla"], True, Quantity.SPEED),
        (["learning_rate"], True, Quantity.LEARNING),
        (["remat"], True, Quantity.MEMORY),
        (["micro_batches"], False, Quantity.MEMORY),
        (["micro_batches"], True, Quantity.SPEED),
        (["batch_size", "learning_rate"], False, Quantity.SPEED),
        (["remat", "xla"], False, Quantity.SPEED),
        (["learning_rate", "checkpoint_every"], False, Quantity.LEARNING),
        (["scale"], False, Quantity.LEARNING),
        (["xla", "checkpoint_every"], False, Quantity.SPEED),
    ],
)
def test_what_is_compared_follows_from_the_fields(changes: list[str], on_cpu: bool, quantity: Quantity) -> None:
    assert quantity_of(changes, on_cpu=on_cpu) is quantity


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([], "changes no field"),
        (["loss_rate"], "no field loss_rate"),
        (["patience"], "--patience changes nothing within a step"),
        (["validation_every", "checkpoint_every"], "--checkpoint-every changes nothing within a step"),
        (["data", "learning_rate"], "changes the examples"),
    ],
)
def test_what_no_step_can_show_is_refused(changes: list[str], words: str) -> None:
    with pytest.raises(RunError, match=words):
        check_can_be_tried(changes)
