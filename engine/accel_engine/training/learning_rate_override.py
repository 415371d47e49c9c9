"""Gives the optimizer of an assembly any learning rate for each step, in place of the plan's."""

from typing import Any

import tensorflow as tf
from keras.optimizers import schedules

from accel_engine.errors import RunError
from accel_engine.keras_support.optimizers import has_constant_rate, inner_optimizer, optimizer_name, schedule_name
from accel_engine.plan import Plan
from accel_engine.private_names.keras_names import schedule_of
from accel_engine.training.core.assembly import Assembly


class _GivenRate(schedules.LearningRateSchedule):  # type: ignore[misc]  # Keras has no types
    """The rate of the next update, whatever its number.

    Args:
        variable: Has the rate.
    """

    def __init__(self, variable: tf.Variable) -> None:
        self._variable = variable

    def __call__(self, step: Any) -> Any:
        return tf.convert_to_tensor(self._variable)


class LearningRateOverride:
    """Sets the learning rate of an assembly's optimizer.

    A constant rate is a variable of the optimizer, which a checkpoint restores. A schedule is replaced until
    :meth:`end`; steps have to be traced again after the replacement and after the end.

    Args:
        assembly: Model and optimizer.

    Raises:
        RunError: The learning rate of the optimizer cannot be set; the message says why.
    """

    def __init__(self, assembly: Assembly) -> None:
        _check(assembly)
        self._optimizer = inner_optimizer(assembly.optimizer)
        self._schedule = schedule_of(self._optimizer)
        self._variable: tf.Variable | None = None
        if self._schedule is not None:
            with assembly.strategy.scope():
                self._variable = tf.Variable(0.0, dtype=tf.float32, trainable=False)
            self._optimizer.learning_rate = _GivenRate(self._variable)

    @property
    def replaces_schedule(self) -> bool:
        """Whether the optimizer has a schedule, which is replaced meanwhile."""
        return self._schedule is not None

    def set(self, rate: float) -> None:
        """Set the rate of the next steps."""
        if self._variable is None:
            self._optimizer.learning_rate = rate
        else:
            self._variable.assign(rate)

    def end(self) -> None:
        """Give the optimizer its schedule again; a constant rate does not change."""
        if self._schedule is not None:
            self._optimizer.learning_rate = self._schedule


def _check(assembly: Assembly) -> None:
    """Raise an error unless the learning rate of an assembly's optimizer can be set."""
    optimizer, plan = assembly.optimizer, assembly.plan
    if optimizer is None:
        raise RunError("the model's custom train_step has several optimizers, whose learning rates only it can set")
    inner = inner_optimizer(optimizer)
    if not has_constant_rate(inner) and schedule_of(inner) is None:
        raise RunError(f"the learning rate of {optimizer_name(inner)} is a custom function, and cannot be set")
    if schedule_of(inner) is not None and _is_models_own(plan):
        raise RunError(
            f"the model's optimizer has the schedule {schedule_name(inner)}, which ignores --learning-rate: replace it "
            "with --schedule constant, or another one"
        )


def _is_models_own(plan: Plan) -> bool:
    """Whether a schedule belongs to the compiled model, not to the plan."""
    return plan.schedule == "auto"
