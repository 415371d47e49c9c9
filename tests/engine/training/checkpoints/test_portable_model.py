"""A trained model while it is saved for other programs, and afterwards."""

from typing import Any

import keras
import numpy as np
import pytest

from accel_engine.keras_support.optimizers import inner_optimizer
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.private_names.keras_names import schedule_of
from accel_engine.training.checkpoints.portable_model import averages_as_weights, portable_optimizer
from accel_engine.training.core.assembly import Assembly, assemble
from accel_engine.training.core.recipe.rate_schedule import JoinedSchedule

PLAN = Plan(model="mlp", batch_size=64, epochs=2, optimizer="sgd", learning_rate=0.1, validation="off")


def made(**fields: Any) -> Assembly:
    plan = PLAN.replace(**fields)
    return assemble(resolve(plan), tuple(f"CPU:{index}" for index in range(plan.virtual_cpus)), None)


def test_the_weights_are_their_averages_while_they_are_saved() -> None:
    assembly = made(ema_momentum=0.9)
    weights = [variable for variable, _ in assembly.averages]
    for number, (variable, average) in enumerate(assembly.averages):
        variable.assign(np.full(variable.shape, 2.0 * number))
        average.assign(np.full(variable.shape, 2.0 * number + 1))

    def save() -> None:
        with averages_as_weights(assembly):
            assert [float(np.ravel(weight)[0]) for weight in weights] == [1.0, 3.0, 5.0, 7.0]
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        save()
    assert [float(np.ravel(weight)[0]) for weight in weights] == [0.0, 2.0, 4.0, 6.0]


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_a_schedule_of_our_own_is_its_present_rate_while_it_is_saved(precision: str) -> None:
    assembly = made(schedule="linear", warmup=0.25, precision=precision)
    inner = inner_optimizer(assembly.model.optimizer)
    inner.iterations.assign(20)
    ours, rate = schedule_of(inner), float(inner.learning_rate)
    assert isinstance(ours, JoinedSchedule)
    assert 0 < rate < 0.1

    with portable_optimizer(assembly):
        saved = schedule_of(inner)
        assert type(saved) is keras.optimizers.schedules.PolynomialDecay
        assert [float(saved(step)) for step in (0, 20, 1000)] == pytest.approx([rate] * 3)
        assert saved.get_config()["decay_steps"] == 1  # which Keras divides by

    assert schedule_of(inner) is ours


def test_a_schedule_of_keras_and_a_constant_rate_are_saved_as_they_are() -> None:
    for fields in ({"schedule": "cosine"}, {}):
        assembly = made(**fields)
        before = schedule_of(assembly.model.optimizer)
        with portable_optimizer(assembly):
            assert schedule_of(assembly.model.optimizer) is before
            assert float(assembly.model.optimizer.learning_rate) == pytest.approx(0.1)


LIMITS = {"clip_norm": "clipnorm", "global_clip_norm": "global_clipnorm", "clip_value": "clipvalue"}


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("field", LIMITS)
def test_the_saved_limit_of_gradients_is_that_of_all_replicas(field: str, replicas: int) -> None:
    spread = {"strategy": "mirrored", "virtual_cpus": 2} if replicas == 2 else {}
    assembly = made(**{field: 3.0}, **spread)
    optimizer = assembly.model.optimizer

    def limits() -> dict[str, float | None]:
        return {name: getattr(optimizer, name) for name in LIMITS.values()}

    before = limits()
    assert before[LIMITS[field]] == 3.0 / replicas
    with portable_optimizer(assembly):
        assert limits() == before | {LIMITS[field]: 3.0}
    assert limits() == before
