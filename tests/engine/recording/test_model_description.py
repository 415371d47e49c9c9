"""What a run says of a script's model; what cannot be read is unknown."""

from types import SimpleNamespace
from typing import Any

import keras
import pytest

from accel_engine.events import ModelBuilt
from accel_engine.recording import model_description

from .conftest import tiny


class _DefaultStrategy:
    """As TensorFlow names the one that nobody chose."""


class MirroredStrategy:
    num_replicas_in_sync = 2


def built(model: Any, batch: int | None = 8) -> ModelBuilt:
    return model_description.model_built(model, epochs=1, steps=None, batch=batch, series=())


@pytest.mark.parametrize(
    ("strategy", "name"),
    [(None, "default"), (_DefaultStrategy(), "default"), (MirroredStrategy(), "MirroredStrategy")],
)
def test_a_strategy_has_a_name_if_the_user_chose_it(strategy: object, name: str) -> None:
    assert model_description.strategy(SimpleNamespace(distribute_strategy=strategy)) == name


@pytest.mark.parametrize(("strategy", "replicas"), [(None, 1), (MirroredStrategy(), 2)])
def test_each_replica_has_its_share_of_the_batch(strategy: object, replicas: int) -> None:
    model = SimpleNamespace(distribute_strategy=strategy)

    assert (built(model).replicas, built(model).per_replica_batch) == (replicas, 8 // replicas)
    assert built(model, None).per_replica_batch is None


@pytest.mark.parametrize(
    ("shape", "known"), [((None, 3, 4), (3, 4)), ((None, None, 4), None), ([(None, 3), (None, 4)], None), ((), None)]
)
def test_the_shape_of_an_input_is_known_if_all_its_sides_are(shape: object, known: object) -> None:
    assert built(SimpleNamespace(input_shape=shape)).input_shape == known


def test_several_optimizers_are_named_with_their_attributes() -> None:
    model = tiny()
    model.optimizer.build(model.trainable_variables)
    assert built(model).optimizer == "SGD"

    model.g_optimizer = keras.optimizers.Adam()
    model.g_optimizer.build(model.trainable_variables)

    assert built(model).optimizer in ("SGD (optimizer), Adam (g_optimizer)", "Adam (g_optimizer), SGD (optimizer)")
