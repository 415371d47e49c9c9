"""The purpose of a change of a plan, and the race of two plans that tries it: which plans, from which step."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from accel_engine import strategies
from accel_engine.advice.finding import Category
from accel_engine.devices import detect
from accel_engine.errors import AccelError, RunError
from accel_engine.plan import SPECS, USES, Plan, affecting, resolved_plan
from accel_engine.plan.changed_plan import changed_plan, with_planned_rate
from accel_engine.requests.try_plan import TrialStart
from accel_engine.run import RunInfo, Status
from accel_engine.run.directory.run_paths import check_is_here, latest_checkpoint
from accel_engine.run.history.history import History
from accel_engine.run.runs.plan_changes import CHANGEABLE


class Quantity(StrEnum):
    """The quantity that a trial compares."""

    SPEED = "speed"
    MEMORY = "memory"
    LEARNING = "learning"


QUANTITIES = {
    name: Quantity(use.affects[0]) for name, use in USES.items() if use.affects and use.affects[0] in list(Quantity)
}
"""What a field is for; others change nothing in a step."""

PURPOSES = {Category.SPEED: Quantity.SPEED, Category.MEMORY: Quantity.MEMORY, Category.QUALITY: Quantity.LEARNING}
"""What is compared of a run with a cure, by the trouble that it cures."""

_OTHER_LOSS = affecting("loss")
"""Fields with which the loss is another function, so that its values cannot be compared."""

_DATA = affecting("data")

BALANCED = "f1_score"
"""The metric by which weights of classes are judged: accuracy falls by design where rare classes count more."""


@dataclass(frozen=True, slots=True)
class CureTask:
    """The two plans that race, and what of them is compared."""

    before: TrialStart
    """Without the changes."""
    after: TrialStart
    """With them."""
    quantity: Quantity
    """The quantity that is compared."""
    changes: Mapping[str, Any]
    """The changes."""
    balanced_metric: str = ""
    """A metric to compare that counts each class the same; empty if classes matter by their number."""

    @property
    def start(self) -> str:
        """Where both begin, in words."""
        return f"from the checkpoint of step {self.before.step:,}" if self.before.step else "from the initial weights"

    @property
    def by_loss(self) -> bool:
        """Whether both plans have the same loss, so that its values can be compared."""
        return not _OTHER_LOSS & self.changes.keys()


def cure_task(
    info: RunInfo, history: History, changes: Mapping[str, Any], quantity: Quantity | None = None
) -> CureTask:
    """The plans of a trial.

    Args:
        info: The run.
        history: What follows from its events.
        changes: Fields of the plan, with their new values; a learning rate is the one that the optimizer gets.
        quantity: What is compared; by default it follows from the changed fields.

    Raises:
        AccelError: The changes cannot be tried; the message says why.
    """
    plan = _check_trial(info, changes)
    built, found = history.built, history.devices
    on_cpu = found is not None and all(device.kind == "cpu" for device in found.devices)
    quantity = quantity or quantity_of(changes, on_cpu=on_cpu)
    balanced = BALANCED if "class_weight" in changes and built and built.task == "classification" else ""
    before = _measuring(history.autotuned_plan(plan), balanced)
    after = _with(before, with_planned_rate(changes, before, built.replicas if built else 1))
    if after.to_mapping() == before.to_mapping():
        raise RunError("the run has these settings already")
    step = _first_step(info, changes, quantity)
    run = info.directory if step else None
    return CureTask(TrialStart(before, step, run), TrialStart(after, step, run), quantity, changes, balanced)


def quantity_of(changes: Collection[str], *, on_cpu: bool) -> Quantity:
    """The quantity that changed fields are meant to improve.

    A batch size changes the speed, also together with a learning rate that fits it. Micro-batches and recomputed
    activations save memory; on a CPU, micro-batches are for speed.

    Args:
        changes: Names of the changed fields, of which some change a step.
        on_cpu: Whether CPUs train.
    """
    kinds = {
        Quantity.SPEED if on_cpu and name == "micro_batches" else QUANTITIES[name]
        for name in changes
        if name in QUANTITIES
    }
    if "batch_size" in changes or Quantity.LEARNING not in kinds:
        return min(kinds, key=[*Quantity].index)
    return Quantity.LEARNING


def _check_trial(info: RunInfo, changes: Mapping[str, Any]) -> Plan:
    """Check that changes of a run's plan can be tried, as far as the run's plan tells.

    Args:
        info: The run.
        changes: Fields of the plan, with their new values.

    Returns:
        The run's plan.

    Raises:
        AccelError: The run is on a host, the plan trains in several processes, or the changes have no effect that a
            trial can show.
    """
    plan = info.require_plan("only a run of this program can be tried with other settings")
    check_is_here(info.directory, "this machine has no checkpoint of it: use accel-tui advise --try there")
    if strategies.find(plan.strategy).processes:
        raise RunError(f"strategy {plan.strategy} trains in several processes: only plans of one can be tried")
    check_can_be_tried(changes)
    if changed_plan(plan, changes).to_mapping() == plan.to_mapping():
        raise RunError("the run has these settings already")
    return plan


def reason_not_to_try(info: RunInfo, changes: Mapping[str, Any]) -> str:
    """Why changes of a run's plan cannot be tried, as far as the run tells; empty if they can."""
    try:
        _check_trial(info, changes)
    except AccelError as error:
        return str(error)
    return ""


def check_can_be_tried(changes: Iterable[str]) -> None:
    """Check that some steps can show the effect of changed fields.

    Raises:
        RunError: There is no such field, or the fields change the examples or nothing within a step.
    """
    names = [*changes]
    if not names:
        raise RunError("this cure changes no field of the plan, so it cannot be tried")
    if unknown := [name for name in names if name not in SPECS]:
        raise RunError(f"a plan has no field {unknown[0]}")
    options = ", ".join(f"--{name.replace('_', '-')}" for name in names)
    if any(name in _DATA for name in names):
        raise RunError(
            f"{options} changes the examples, so results with and without it cannot be compared: start a new run"
        )
    if not any(name in QUANTITIES for name in names):
        raise RunError(
            f"{options} changes nothing within a step, so a trial of some seconds cannot show its effect: apply it"
        )


def _measuring(plan: Plan, metric: str) -> Plan:
    return plan.replace(metrics=(*plan.metrics, metric)) if metric and metric not in plan.metrics else plan


def _with(plan: Plan, changes: Mapping[str, Any]) -> Plan:
    """A plan with changes, checked on this machine; ``xla`` ``auto`` is what autotuning would try, ``on``."""
    tried = {**changes, **({"xla": "on"} if changes.get("xla") == "auto" else {})}
    return resolved_plan.resolve_to_train(changed_plan(plan, tried), detect().devices, chosen=tried).plan


def _first_step(info: RunInfo, changes: Mapping[str, Any], quantity: Quantity) -> int:
    """The step of the checkpoint to start from, if the run could continue so; 0 for the initial weights."""
    if not CHANGEABLE.issuperset(changes):
        return 0
    if quantity is Quantity.LEARNING and info.status is Status.FINISHED:
        return 0
    return latest_checkpoint(info.directory)
