"""What a change of a plan is for, and thus what is compared with and without it."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from accel_engine import strategies
from accel_engine.errors import AccelError, RunError
from accel_engine.events import DevicesFound
from accel_engine.plan import SPECS, USES, Plan, affecting
from accel_engine.plan.changed_plan import changed_plan
from accel_engine.run import RunInfo


class Quantity(StrEnum):
    """What is compared."""

    SPEED = "speed"
    MEMORY = "memory"
    LEARNING = "learning"
    INTERVALS = "intervals"


QUANTITIES = {
    name: Quantity(use.affects[0]) for name, use in USES.items() if use.affects and use.affects[0] in list(Quantity)
}
"""What a field is for; others change nothing in a step."""

OTHER_LOSS = affecting("loss")
"""Fields with which the loss is another function, so that its values cannot be compared."""

_DATA = affecting("data")

_OTHER_TRAINING_LOSS = OTHER_LOSS | {"augmentation"}
"""Fields with which the loss in training is higher by design."""


def trains_on_cpu(found: Sequence[DevicesFound]) -> bool:
    """Whether CPUs train a run, by the last of its events of this kind."""
    return bool(found) and all(device.kind == "cpu" for device in found[-1].devices)


def quantity_of(changes: Iterable[str], *, on_cpu: bool) -> Quantity:
    """What changed fields are for.

    A batch size changes the speed, also together with a learning rate that fits it. Micro-batches and recomputed
    activations save memory; on a CPU, micro-batches are for speed.

    Args:
        changes: Names of the changed fields.
        on_cpu: Whether CPUs train.

    Raises:
        RunError: The changes can have no effect that some steps show; why.
    """
    fields = [*changes]
    check_can_be_tried(fields)
    kinds = {QUANTITIES[name] for name in fields if name in QUANTITIES}
    if on_cpu and "micro_batches" in fields:
        kinds = (kinds - {Quantity.MEMORY}) | {Quantity.SPEED}
    if kinds == {Quantity.INTERVALS}:
        return Quantity.INTERVALS
    kinds -= {Quantity.INTERVALS}
    if "batch_size" in fields or kinds == {Quantity.SPEED}:
        return Quantity.SPEED
    return Quantity.LEARNING if Quantity.LEARNING in kinds else min(kinds, key=[*Quantity].index)


def judged_by(changes: Iterable[str], *, on_cpu: bool, purpose: Quantity | None = None) -> Quantity | None:
    """What tells whether a run does worse since fields were changed.

    Args:
        changes: Names of the changed fields.
        on_cpu: Whether CPUs train.
        purpose: What the finding is about that they cure; by default it follows from the fields.

    Returns:
        The speed, or the learning: its losses in training. ``None`` if only a failure tells: less memory may cost
        speed, and the losses of two functions, or of other data, cannot be compared.
    """
    fields = {*changes}
    if purpose is None:
        if fields & _DATA or not fields & QUANTITIES.keys():
            return None
        purpose = quantity_of(fields, on_cpu=on_cpu)
    match purpose:
        case Quantity.MEMORY:
            return None
        case Quantity.LEARNING:
            teaches = any(QUANTITIES.get(name) in (Quantity.LEARNING, Quantity.SPEED) for name in fields)
            can_compare = teaches and not fields & (_OTHER_TRAINING_LOSS | _DATA)
            return Quantity.LEARNING if can_compare else None
    return Quantity.SPEED


def check_trial(info: RunInfo, changes: Mapping[str, Any]) -> Plan:
    """Check that changes of a run's plan can be tried, as far as the run tells.

    Args:
        info: The run.
        changes: Fields of the plan, with their new values.

    Returns:
        The run's plan.

    Raises:
        AccelError: They cannot be tried, and why.
    """
    if not info.has_engine:
        raise RunError(f"run {info.id} was {info.made}: only a run of this program can be tried with other settings")
    if info.plan is None:
        raise RunError(f"the plan of run {info.id} cannot be read on this machine, so nothing can be tried")
    if strategies.find(info.plan.strategy).processes:
        raise RunError(f"strategy {info.plan.strategy} trains in several processes: only plans of one can be tried")
    check_can_be_tried(changes)
    if changed_plan(info.plan, changes).to_mapping() == info.plan.to_mapping():
        raise RunError("the run has these settings already")
    return info.plan


def reason_not_to_try(info: RunInfo, changes: Mapping[str, Any]) -> str:
    """Why changes of a run's plan cannot be tried, as far as the run tells; empty if they can."""
    try:
        check_trial(info, changes)
    except AccelError as error:
        return str(error)
    return ""


def check_can_be_tried(changes: Iterable[str]) -> None:
    """Check that some steps can show the effect of changed fields.

    Raises:
        RunError: They cannot; why.
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
