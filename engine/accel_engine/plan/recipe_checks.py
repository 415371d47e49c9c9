"""Checks fields of a plan that depend on each other, without the model or the data."""

from collections.abc import Iterator

from accel_engine.errors import FieldValue, PlanError
from accel_engine.plan.fields import PlanFields
from accel_engine.plan.interval import parse_duration, parse_interval

WITH_MOMENTUM = ("sgd", "rmsprop")
"""Optimizers with an argument ``momentum``."""

CLIPPING = ("clip_norm", "global_clip_norm", "clip_value")
"""Fields that clip gradients; Keras takes one of them."""

DECAYING = ("linear", "cosine", "exponential", "one-cycle")
"""Schedules that end at ``final_rate``."""

SMOOTHED = ("auto", "categorical_crossentropy", "binary_crossentropy")
"""Losses with an argument ``label_smoothing``."""


def contradictions(plan: PlanFields) -> Iterator[PlanError]:
    """Yield an error for each field that contradicts another one, or has parts that are invalid."""
    yield from _optimizer_errors(plan)
    yield from _schedule_errors(plan)
    yield from _stopping_errors(plan)
    yield from _interval_errors(plan)
    if plan.label_smoothing and plan.loss not in SMOOTHED:
        reason = f"{plan.loss} has no label smoothing: use "
        yield PlanError("label_smoothing", plan.label_smoothing, reason, FieldValue("loss", "categorical_crossentropy"))
    if plan.unfreeze_epoch is not None and not plan.freeze:
        yield PlanError("unfreeze_epoch", plan.unfreeze_epoch, "no layer is frozen: set ", FieldValue("freeze"))


def _optimizer_errors(plan: PlanFields) -> Iterator[PlanError]:
    clipped = [name for name in CLIPPING if getattr(plan, name) is not None]
    for name in clipped[1:]:
        yield PlanError(name, getattr(plan, name), "gradients are clipped once: leave out ", FieldValue(clipped[0]))
    if plan.momentum is not None and plan.optimizer not in WITH_MOMENTUM:
        chosen = "the optimizer of the model" if plan.optimizer == "auto" else plan.optimizer
        reason = f"is of {' and '.join(WITH_MOMENTUM)}, not of {chosen}: use "
        yield PlanError("momentum", plan.momentum, reason, FieldValue("optimizer", "sgd"))
    if plan.ema_momentum is not None and plan.strategy == "central-storage":
        reason = "central-storage keeps no averages of weights: use "
        yield PlanError("ema_momentum", plan.ema_momentum, reason, FieldValue("strategy", "mirrored"))
    if plan.nesterov == "on" and (plan.optimizer != "sgd" or not plan.momentum):
        words = "needs ", FieldValue("optimizer", "sgd"), " and ", FieldValue("momentum")
        yield PlanError("nesterov", plan.nesterov, *words)


def _schedule_errors(plan: PlanFields) -> Iterator[PlanError]:
    if plan.warmup and plan.schedule == "auto":
        yield PlanError("warmup", plan.warmup, "needs a schedule: add ", FieldValue("schedule", "constant"))
    if plan.warmup >= 1 and plan.warmup != int(plan.warmup):
        yield PlanError("warmup", plan.warmup, "must be a whole number of steps, or a share below 1")
    if plan.final_rate is not None and plan.schedule not in DECAYING:
        reason = f"is of the schedules {', '.join(DECAYING)}, not of {plan.schedule}"
        yield PlanError("final_rate", plan.final_rate, reason)
    if plan.schedule == "exponential" and plan.final_rate == 0:
        yield PlanError("final_rate", plan.final_rate, "must be above 0 for an exponential schedule")
    if plan.schedule == "steps":
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


def _stopping_errors(plan: PlanFields) -> Iterator[PlanError]:
    of_training = plan.monitor and not plan.monitor.startswith(("validation_", "val_"))
    if of_training:
        return
    for name in ("patience", "restore_best"):
        value = getattr(plan, name)
        if value in (None, "off"):
            continue
        if plan.validation == "off":
            yield PlanError(name, value, "needs validation: leave out ", FieldValue("validation", "off"))
        elif name == "patience" and plan.validation == "end":
            yield PlanError(
                name, value, "needs validations during training: leave out ", FieldValue("validation", "end")
            )


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
