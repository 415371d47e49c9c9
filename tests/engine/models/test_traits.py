import keras
import pytest
from keras import layers, ops

from accel_engine.keras_support.model_structure import has_custom_train_step
from accel_engine.models.traits import preprocessing, returns_logits

SHAPE = (8, 8, 3)


def sequential(*parts: keras.Layer) -> keras.Model:
    return keras.Sequential([keras.Input(SHAPE), *parts])


class Subclassed(keras.Model):
    def __init__(self, activation: str | None = None, *, rescales: bool = False) -> None:
        super().__init__()
        self.rescale = layers.Rescaling(1 / 255) if rescales else layers.Identity()
        self.flatten = layers.Flatten()
        self.dense = layers.Dense(3, activation=activation)

    def call(self, x: keras.KerasTensor) -> keras.KerasTensor:
        return self.dense(self.flatten(self.rescale(x)))


def built(model: keras.Model) -> keras.Model:
    model(keras.KerasTensor((None, *SHAPE)))
    return model


def arithmetic() -> keras.Model:
    inputs = keras.Input(SHAPE)
    return keras.Model(inputs, layers.Flatten()(inputs / 127.5 - 1))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (lambda: sequential(layers.Conv2D(4, 3), layers.Rescaling(1 / 255)), ""),
        (lambda: sequential(layers.Rescaling(1 / 255), layers.Conv2D(4, 3)), "Rescaling"),
        (lambda: sequential(layers.RandomFlip(), layers.Resizing(4, 4), layers.Normalization()), "Normalization"),
        (lambda: sequential(keras.Sequential([layers.RandomFlip()]), layers.Flatten(), layers.Dense(3)), ""),
        (
            lambda: sequential(keras.Sequential([layers.Rescaling(1 / 255), layers.Flatten()]), layers.Dense(3)),
            "Rescaling",
        ),
        (lambda: sequential(layers.Lambda(lambda x: x / 255), layers.Flatten()), "Lambda"),
        (lambda: sequential(layers.BatchNormalization(), layers.Flatten()), ""),
        (arithmetic, "TrueDivide"),
        (lambda: built(Subclassed(rescales=True)), "Rescaling"),
        (lambda: built(Subclassed()), ""),
    ],
)
def test_preprocessing_layers_are_detected(model, expected: str) -> None:
    assert preprocessing(model()) == expected


def functional(end) -> keras.Model:
    inputs = keras.Input(SHAPE)
    return keras.Model(inputs, end(layers.Dense(3)(layers.Flatten()(inputs))))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (lambda: sequential(layers.Flatten(), layers.Dense(3)), True),
        (lambda: sequential(layers.Flatten(), layers.Dense(3, activation="softmax")), False),
        (lambda: sequential(layers.Flatten(), layers.Dense(1, activation="sigmoid")), False),
        (lambda: sequential(layers.Flatten(), layers.Dense(3), layers.Softmax()), False),
        (lambda: sequential(layers.Flatten(), layers.Dense(3), layers.Activation("softmax")), False),
        (lambda: sequential(layers.Conv2D(3, 8, activation="softmax"), layers.Reshape((3,))), False),
        (lambda: sequential(layers.Conv2D(3, 8), layers.Reshape((3,))), True),
        (lambda: sequential(keras.Sequential([layers.Flatten(), layers.Dense(3, activation="softmax")])), False),
        (lambda: functional(ops.softmax), False),
        (lambda: functional(ops.relu), True),
        (lambda: built(Subclassed("softmax")), False),
        (lambda: built(Subclassed()), True),
    ],
)
def test_logits_are_distinguished_from_probabilities(model, expected: bool) -> None:
    assert returns_logits(model()) is expected


def test_a_custom_train_step_is_detected() -> None:
    class Own(keras.Sequential):
        def train_step(self, data: object) -> dict[str, float]:
            return {}

    assert has_custom_train_step(Own())
    assert not has_custom_train_step(built(Subclassed()))
    assert not has_custom_train_step(sequential(layers.Flatten()))
    patched = sequential(layers.Flatten())
    patched.train_step = lambda data: {}
    assert has_custom_train_step(patched)
