"""What a field of a plan needs of other fields: without it, the field would have no effect.

A plan with such a field is refused, and the form hides the field.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

from accel_engine.errors import FieldValue, PlanError, Words
from accel_engine.plan.fields import PlanFields
from accel_engine.plan.monitor import monitors_training

WITH_MOMENTUM = ("sgd", "rmsprop")
"""Optimizers with an argument ``momentum``."""

DECAYING = ("linear", "cosine", "exponential", "one-cycle")
"""Schedules that end at ``final_rate``."""

SMOOTHED = ("auto", "categorical_crossentropy", "binary_crossentropy")
"""Losses with an argument ``label_smoothing``."""


class NoEffectError(PlanError):
    """A field that has no effect without another one."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a field needs.

    Attributes:
        is_met: Whether a plan has it.
        what: What it is, in plain words: ``a schedule``.
        remedy: Fields to set, with which a plan has it.
    """

    is_met: Callable[[PlanFields], bool]
    what: str
    remedy: Words

    @property
    def words(self) -> Words:
        """The message of a plan that does not have it."""
        return (f"needs {self.what}: use ", *self.remedy)


def _choice(field: str, what: str, *values: str) -> Need:
    """The need of one of some values of a field, of which the first one is suggested."""
    return Need(lambda plan: getattr(plan, field) in values, what, (FieldValue(field, values[0]),))


_OF_SEVERAL_STEPS = Need(
    lambda plan: bool(plan.time or plan.window),
    "windows of a time series",
    (FieldValue("time"), " or ", FieldValue("window")),
)
_DROPS = _choice("schedule", "the schedule steps", "steps")
_VALIDATION_OR_TRAINING = FieldValue("validation", "epoch"), " or ", FieldValue("monitor", "loss")

NEEDS: Mapping[str, Need] = {
    "horizon": _OF_SEVERAL_STEPS,
    "group": _OF_SEVERAL_STEPS,
    "label_smoothing": _choice("loss", f"the loss {' or '.join(SMOOTHED[1:])}", *SMOOTHED[1:], "auto"),
    "monitor_mode": Need(lambda plan: bool(plan.monitor), "a monitor", (FieldValue("monitor", "validation_loss"),)),
    "momentum": _choice("optimizer", f"the optimizer {' or '.join(WITH_MOMENTUM)}", *WITH_MOMENTUM),
    "nesterov": Need(
        lambda plan: plan.optimizer == "sgd" and bool(plan.momentum),
        "the optimizer sgd with momentum",
        (FieldValue("optimizer", "sgd"), " and ", FieldValue("momentum", "0.9")),
    ),
    "warmup": Need(lambda plan: plan.schedule != "auto", "a schedule", (FieldValue("schedule", "cosine"),)),
    "final_rate": Need(
        lambda plan: plan.schedule in DECAYING,
        "a schedule other than constant and steps",
        (FieldValue("schedule", "cosine"),),
    ),
    "rate_drops": _DROPS,
    "rate_drop_factor": _DROPS,
    "unfreeze_epoch": Need(lambda plan: bool(plan.freeze), "frozen layers", (FieldValue("freeze", "all-but-head"),)),
    "remat_layers": _choice("remat", "rematerialization", "on"),
    "validation_every": _choice("validation", "validation during training", "epoch"),
    "validation_steps": _choice("validation", "validation", "epoch", "end"),
    "patience": Need(
        lambda plan: plan.validation == "epoch" or monitors_training(plan),
        "validation during training",
        _VALIDATION_OR_TRAINING,
    ),
    "min_delta": Need(
        lambda plan: plan.patience is not None or plan.restore_best == "on",
        "patience or restore best",
        (FieldValue("patience", "5"), " or ", FieldValue("restore_best", "on")),
    ),
    "restore_best": Need(
        lambda plan: plan.validation != "off" or monitors_training(plan), "validation", _VALIDATION_OR_TRAINING
    ),
    "isolate_workers": Need(lambda plan: plan.local_workers > 0, "local workers", (FieldValue("local_workers", "2"),)),
}
"""What fields need of others, by field."""


def need_errors(plan: PlanFields) -> Iterator[NoEffectError]:
    """Yield an error for each field that has a value, but no effect."""
    for name in ignored(plan):
        yield NoEffectError(name, getattr(plan, name), *NEEDS[name].words)


def ignored(plan: PlanFields) -> Iterator[str]:
    """Yield the fields that have a value, but no effect."""
    for item in fields(PlanFields):
        if item.name in NEEDS and getattr(plan, item.name) != item.default and not NEEDS[item.name].is_met(plan):
            yield item.name


def without_ignored(values: Mapping[str, Any], wanted: Container[str] = ()) -> dict[str, Any]:
    """Leave out the fields of a plan that have no effect.

    Args:
        values: Values by name; those of other names, and invalid ones, are kept.
        wanted: Fields to keep anyway, so that the plan is refused.
    """
    kept = dict(values)
    while dropped := [name for name in ignored(valid_fields(kept)) if name not in wanted]:
        for name in dropped:
            del kept[name]
    return kept


def valid_fields(values: Mapping[str, Any]) -> PlanFields:
    """The fields with valid values, each by itself; the others have their defaults."""
    valid: dict[str, Any] = {}
    for item in fields(PlanFields):
        if item.name in values:
            with suppress(PlanError):
                valid[item.name] = item.metadata["spec"].check(item.name, values[item.name])
    return PlanFields(**valid)
