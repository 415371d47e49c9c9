"""Multiplies the learning rates of a model's optimizers by a factor, whether they are constant or follow a schedule."""

from typing import Any

from keras.optimizers import schedules

from accel_engine.keras_support.optimizers import every_optimizer, has_constant_rate, read_rate, schedule_name
from accel_engine.private_names.keras_names import schedule_of


class MultipliedSchedule(schedules.LearningRateSchedule):  # type: ignore[misc]  # Keras has no types
    """Follows another schedule, at a multiple of its rate.

    Args:
        schedule: The other schedule.
        factor: The multiple.
        description: What it is, for the user.
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
    """Multiply the learning rates of all optimizers of a model, those of schedules at all steps."""
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
