"""Prepares a trained model to be saved for other programs, for as long as it is saved."""

from collections.abc import Iterator
from contextlib import contextmanager

from keras.optimizers import schedules

from accel_engine.keras_support.optimizers import inner_optimizer
from accel_engine.private_names.keras_names import schedule_of
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.recipe.optimizer import CLIPPING_ARGUMENTS, clips_over_replicas
from accel_engine.training.core.recipe.rate_multiplier import MultipliedSchedule
from accel_engine.training.core.recipe.rate_schedule import JoinedSchedule

_OURS = (JoinedSchedule, MultipliedSchedule)


@contextmanager
def averages_as_weights(assembly: Assembly) -> Iterator[None]:
    """Replace the weights by their moving averages, where the optimizer has them, as ``fit`` does at its end."""
    pairs = assembly.averages
    before = [variable.numpy() for variable, _ in pairs]
    with assembly.strategy.scope():
        for variable, average in pairs:
            variable.assign(average)
    try:
        yield
    finally:
        with assembly.strategy.scope():
            for (variable, _), value in zip(pairs, before, strict=True):
                variable.assign(value)


@contextmanager
def portable_optimizer(assembly: Assembly) -> Iterator[None]:
    """Give the optimizer settings with which any program can load it.

    A schedule of ours is replaced by its present rate, and the limit of clipped gradients is that of all replicas.
    """
    optimizer = inner_optimizer(assembly.model.optimizer)
    schedule = schedule_of(optimizer)
    limits = {name: getattr(optimizer, name, None) for name in CLIPPING_ARGUMENTS}
    if isinstance(schedule, _OURS):
        rate = float(schedule(optimizer.iterations))
        optimizer.learning_rate = schedules.PolynomialDecay(rate, 1, end_learning_rate=rate)
    if clips_over_replicas(assembly.plan, assembly.replicas):
        _set(optimizer, {name: value and value * assembly.replicas for name, value in limits.items()})
    try:
        yield
    finally:
        if isinstance(schedule, _OURS):
            optimizer.learning_rate = schedule
        _set(optimizer, limits)


def _set(optimizer: object, values: dict[str, float | None]) -> None:
    for name, value in values.items():
        if hasattr(optimizer, name):
            setattr(optimizer, name, value)
