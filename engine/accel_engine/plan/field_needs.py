"""What a field of a plan needs of other fields: without it, the field would have no effect.

A plan with such a field is refused, the form hides the field, and the plan of an older run loses it.
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


@dataclass(frozen=True, slots=True)
class Need:
    """What a field needs.

    Attributes:
        is_met: Whether a plan has it.
        words: What would be right.
    """

    is_met: Callable[[PlanFields], bool]
    words: Words


def _needs(is_met: Callable[[PlanFields], bool], *alternatives: FieldValue) -> Need:
    words = [part for each in alternatives for part in (" or ", each)]
    return Need(is_met, ("needs ", *words[1:]))


def _choice(field: str, first: str, *others: str) -> Need:
    """The need of one of some values of a field."""
    listed = "".join(f"{' or' if other == others[-1] else ','} {other}" for other in others)
    return Need(lambda plan: getattr(plan, field) in (first, *others), ("needs ", FieldValue(field, first), listed))


_OF_SEVERAL_STEPS = _needs(lambda plan: bool(plan.time or plan.window), FieldValue("time"), FieldValue("window"))
_DROPS = _choice("schedule", "steps")

NEEDS: Mapping[str, Need] = {
    "horizon": _OF_SEVERAL_STEPS,
    "group": _OF_SEVERAL_STEPS,
    "label_smoothing": _choice("loss", *SMOOTHED[1:], "auto"),
    "monitor_mode": _needs(lambda plan: bool(plan.monitor), FieldValue("monitor")),
    "momentum": _choice("optimizer", *WITH_MOMENTUM),
    "nesterov": Need(
        lambda plan: plan.optimizer == "sgd" and bool(plan.momentum),
        ("needs ", FieldValue("optimizer", "sgd"), " and ", FieldValue("momentum")),
    ),
    "warmup": _needs(lambda plan: plan.schedule != "auto", FieldValue("schedule", "constant")),
    "final_rate": _choice("schedule", *DECAYING),
    "rate_drops": _DROPS,
    "rate_drop_factor": _DROPS,
    "unfreeze_epoch": _needs(lambda plan: bool(plan.freeze), FieldValue("freeze")),
    "validation_every": _choice("validation", "epoch"),
    "validation_steps": _choice("validation", "epoch", "end"),
    "patience": _needs(
        lambda plan: plan.validation == "epoch" or monitors_training(plan),
        FieldValue("validation", "epoch"),
        FieldValue("monitor", "loss"),
    ),
    "min_delta": _needs(
        lambda plan: plan.patience is not None or plan.restore_best == "on",
        FieldValue("patience"),
        FieldValue("restore_best", "on"),
    ),
    "restore_best": _needs(
        lambda plan: plan.validation != "off" or monitors_training(plan),
        FieldValue("validation", "epoch"),
        FieldValue("monitor", "loss"),
    ),
    "force": _choice("precision", "mixed_float16"),
}
"""What fields need of others, by field."""


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
    while dropped := [name for name in ignored(_valid_fields(kept)) if name not in wanted]:
        for name in dropped:
            del kept[name]
    return kept


def _valid_fields(values: Mapping[str, Any]) -> PlanFields:
    """The fields with valid values; the others have their defaults."""
    valid: dict[str, Any] = {}
    for item in fields(PlanFields):
        if item.name in values:
            with suppress(PlanError):
                valid[item.name] = item.metadata["spec"].check(item.name, values[item.name])
    return PlanFields(**valid)
