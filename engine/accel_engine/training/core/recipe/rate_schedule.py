"""Builds a plan's learning-rate schedule from Keras' own schedules, and multiplies learning rates by a factor."""

from typing import Any

import keras
from keras.optimizers import schedules

from accel_engine.errors import FieldValue, PlanError
from accel_engine.keras_support.optimizers import every_optimizer, has_constant_rate, read_rate, schedule_name
from accel_engine.plan import Plan
from accel_engine.plan.fit_checks import wrong_drops, wrong_warmup
from accel_engine.plan.interval import drop_steps, warmup_steps
from accel_engine.private_names.keras_names import schedule_of

EXPONENTIAL_END = 0.01
"""Where an exponential schedule ends, as a share of the highest rate, unless the plan says otherwise."""

ONE_CYCLE_START = 1 / 25
"""Where a one-cycle schedule starts, as a share of its highest rate; as in fastai and PyTorch."""


class JoinedSchedule(schedules.LearningRateSchedule):  # type: ignore[misc]  # Keras has no types
    """Follows one schedule for some steps, and then another one from its beginning.

    Args:
        first: The first schedule.
        steps: Its number of steps.
        second: The second schedule.
    """

    def __init__(
        self, first: schedules.LearningRateSchedule, steps: int, second: schedules.LearningRateSchedule
    ) -> None:
        self.first, self.steps, self.second = first, steps, second

    def __call__(self, step: Any) -> Any:
        """The learning rate of a step."""
        step = keras.ops.cast(step, "float32")
        return keras.ops.where(
            step < self.steps, self.first(step), self.second(keras.ops.maximum(step - self.steps, 0))
        )

    @property
    def description(self) -> str:
        """Its description for the user."""
        return f"warm-up, then {type(self.second).__name__}"

    def get_config(self) -> dict[str, Any]:
        """The arguments, for Keras."""
        return {"first": self.first, "steps": self.steps, "second": self.second}


def make_schedule(plan: Plan, highest: float, total_steps: int) -> schedules.LearningRateSchedule | float:
    """The learning rate of a plan with a ``schedule``.

    Args:
        plan: The plan.
        highest: The highest learning rate, after the warm-up.
        total_steps: Steps of all epochs; 0 if they are unknown.

    Returns:
        A schedule, or ``highest`` if the rate is constant.

    Raises:
        PlanError: The schedule depends on the number of steps, which is unknown; or its warm-up or its drops do not
            fit the steps.
    """
    by_share = [each for each in plan.rate_drops if each.endswith("%")] if plan.schedule == "steps" else []
    needs_total = plan.schedule not in ("constant", "steps") or by_share or 0 < plan.warmup < 1
    if needs_total and not total_steps:
        reason = "depends on the number of steps, which is unknown for this stream: set "
        raise PlanError("schedule", plan.schedule, reason, FieldValue("steps_per_epoch"))
    warmup = warmup_steps(plan, total_steps)
    if total_steps and (wrong := wrong_warmup(warmup, total_steps)):
        raise PlanError("warmup", plan.warmup, *wrong)
    return _schedule(plan, highest, total_steps, warmup)


def _schedule(plan: Plan, highest: float, total_steps: int, warmup: int) -> schedules.LearningRateSchedule | float:
    left = total_steps - warmup
    if plan.schedule == "one-cycle":
        start = highest * ONE_CYCLE_START
        # Up along a cosine: Keras' formula takes an alpha above 1.
        rise = schedules.CosineDecay(start, max(warmup, 1), alpha=1 / ONE_CYCLE_START)
        return JoinedSchedule(rise, warmup, schedules.CosineDecay(highest, left, alpha=plan.final_rate or 0.0))
    if plan.schedule == "cosine" and warmup:
        return schedules.CosineDecay(
            0.0, left, alpha=plan.final_rate or 0.0, warmup_target=highest, warmup_steps=warmup
        )
    rise = schedules.PolynomialDecay(0.0, max(warmup, 1), end_learning_rate=highest, power=1.0)
    if plan.schedule == "constant":
        return rise if warmup else highest
    after = _decay(plan, highest, left, warmup, total_steps)
    return JoinedSchedule(rise, warmup, after) if warmup else after


def _decay(plan: Plan, highest: float, steps: int, warmup: int, total_steps: int) -> schedules.LearningRateSchedule:
    """The schedule after the warm-up."""
    match plan.schedule:
        case "linear":
            return schedules.PolynomialDecay(highest, steps, end_learning_rate=highest * (plan.final_rate or 0.0))
        case "exponential":
            return schedules.ExponentialDecay(highest, steps, plan.final_rate or EXPONENTIAL_END)
        case "steps":
            if reason := wrong_drops(plan, warmup, total_steps):
                raise PlanError("rate_drops", plan.rate_drops, reason)
            boundaries = [drop - warmup for drop in drop_steps(plan, total_steps)]
            rates = [highest * plan.rate_drop_factor**number for number in range(len(boundaries) + 1)]
            return schedules.PiecewiseConstantDecay(boundaries, rates)
    return schedules.CosineDecay(highest, steps, alpha=plan.final_rate or 0.0)


class MultipliedSchedule(schedules.LearningRateSchedule):  # type: ignore[misc]  # Keras has no types
    """Follows another schedule, at a multiple of its rate.

    Args:
        schedule: The other schedule.
        factor: The multiple.
        description: For the user.
    """

    def __init__(self, schedule: schedules.LearningRateSchedule, factor: float, description: str) -> None:
        self.schedule, self.factor, self.description = schedule, factor, description

    def __call__(self, step: Any) -> Any:
        """The learning rate of a step."""
        return self.factor * self.schedule(step)

    def get_config(self) -> dict[str, Any]:
        """The arguments, for Keras."""
        return {"schedule": self.schedule, "factor": self.factor, "description": self.description}


def multiply_rates(model: Any, factor: float) -> None:
    """Multiply the learning rates of all optimizers of a model, of schedules at all steps."""
    if factor == 1:
        return
    multiply_constant_rates(model, factor)
    for optimizer in every_optimizer(model):
        if schedule := schedule_of(optimizer):
            description = f"{schedule_name(optimizer)} times {factor:g}"
            optimizer.learning_rate = MultipliedSchedule(schedule, factor, description)


def multiply_constant_rates(model: Any, factor: float) -> None:
    """Multiply the learning rates that are variables; schedules stay."""
    for optimizer in every_optimizer(model):
        if has_constant_rate(optimizer):
            optimizer.learning_rate = float(read_rate(optimizer)) * factor
