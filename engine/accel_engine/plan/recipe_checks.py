"""Checks fields of a plan that depend on each other, without the model or the data."""

from collections.abc import Iterator

from accel_engine.errors import FieldValue, PlanError
from accel_engine.plan.field_needs import need_errors
from accel_engine.plan.fields import PlanFields
from accel_engine.plan.interval import parse_duration, parse_interval

CLIPPING = ("clip_norm", "global_clip_norm", "clip_value")
"""Fields that clip gradients; Keras takes one of them."""


def recipe_errors(plan: PlanFields) -> Iterator[PlanError]:
    """Yield an error for each field that contradicts another one, or has parts that are invalid."""
    yield from _optimizer_errors(plan)
    yield from _schedule_errors(plan)
    yield from _interval_errors(plan)
    if plan.skip_steps and plan.strategy == "parameter-server":
        yield PlanError("skip_steps", plan.skip_steps, "parameter-server takes steps in no order: leave it empty")
    if not all(each.strip().isdecimal() for each in plan.skip_steps):
        yield PlanError("skip_steps", plan.skip_steps, "must be numbers of steps, counted from 0, e.g. 120,348")
    yield from need_errors(plan)


def _optimizer_errors(plan: PlanFields) -> Iterator[PlanError]:
    clipped = [name for name in CLIPPING if getattr(plan, name) is not None]
    for name in clipped[1:]:
        yield PlanError(name, getattr(plan, name), "gradients are clipped once: leave out ", FieldValue(clipped[0]))
    if plan.ema_momentum is not None and plan.strategy == "central-storage":
        reason = "central-storage keeps no averages of weights: use "
        yield PlanError("ema_momentum", plan.ema_momentum, reason, FieldValue("strategy", "mirrored"))


def _schedule_errors(plan: PlanFields) -> Iterator[PlanError]:
    if plan.warmup >= 1 and plan.warmup != int(plan.warmup):
        yield PlanError("warmup", plan.warmup, "must be a whole number of steps, or a share of all steps below 100%")
    if plan.schedule == "exponential" and plan.final_rate == 0:
        yield PlanError("final_rate", plan.final_rate, "must be above 0 for an exponential schedule")
    if plan.schedule == "steps" or plan.rate_drops:
        yield from _drop_errors(plan)


def _drop_errors(plan: PlanFields) -> Iterator[PlanError]:
    try:
        drops = [parse_drop(each) for each in plan.rate_drops]
    except ValueError:
        yield PlanError(
            "rate_drops", plan.rate_drops, "must be steps or shares of all steps, e.g. 1000,2000 or 50%,75%"
        )
        return
    if not drops or len({share for _, share in drops}) > 1 or drops != sorted(set(drops)):
        yield PlanError("rate_drops", plan.rate_drops, "must be steps, or shares of all steps, that increase")


def parse_drop(text: str) -> tuple[float, bool]:
    """Parse one of ``rate_drops``; returns its number, and whether it is a share of all steps.

    Raises:
        ValueError: It is neither a positive number of steps nor a share between 0 and 100 %.
    """
    text = text.strip()
    if text.endswith("%"):
        share = float(text[:-1]) / 100
        if not 0 < share < 1:
            raise ValueError(text)
        return share, True
    if int(text) < 1:
        raise ValueError(text)
    return int(text), False


def _interval_errors(plan: PlanFields) -> Iterator[PlanError]:
    for name, automatic in (("validation_every", ""), ("checkpoint_every", "auto")):
        try:
            if (text := getattr(plan, name)) != automatic:
                parse_interval(name, text)
        except PlanError as error:
            yield error
    try:
        if plan.time_limit:
            parse_duration("time_limit", plan.time_limit)
    except PlanError as error:
        yield error
