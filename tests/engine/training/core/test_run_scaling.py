"""What numbers a model is given: in training, in validation, when it is asked later, and when its run goes on."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine.events import ModelBuilt, Validated, Warned
from accel_engine.plan import Plan
from accel_engine.requests.revalidate import RevalidationRequest
from accel_engine.run.diagnostics import read
from accel_engine.trained.diagnose import revalidate

from ..conftest import Gym, Trained

SOURCE = """
import keras
from keras import layers, ops

class Tokens(layers.Layer):
    def __init__(self, classes):
        super().__init__()
        self.embedding = layers.Embedding(classes, classes)

    def call(self, x):
        return self.embedding(ops.cast(x, "int32"))

class Subclassed(keras.Model):
    def __init__(self, classes):
        super().__init__()
        self.embedding = layers.Embedding(classes, classes)

    def call(self, x):
        return self.embedding(x)[:, -1]

def compiled(model):
    model.compile(keras.optimizers.Adam(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model

def subclassed(classes):
    return compiled(Subclassed(classes))

def custom_layer(input_shape, classes):
    inputs = keras.Input(input_shape)
    return compiled(keras.Model(inputs, layers.Flatten()(Tokens(classes)(inputs)[:, -1:])))

class SubclassedGrid(keras.Model):
    def __init__(self, classes):
        super().__init__()
        self.tokens = Tokens(classes)

    def call(self, x):
        return self.tokens(x[:, -1, -1, 0])

def subclassed_grid(classes):
    return compiled(SubclassedGrid(classes))

def custom_layer_grid(input_shape, classes):
    inputs = keras.Input(input_shape)
    return compiled(keras.Model(inputs, layers.Flatten()(Tokens(classes)(inputs[:, -1, -1]))))

def functional(input_shape, classes):
    inputs = keras.Input(input_shape)
    last = layers.Lambda(lambda x: x[:, -1], output_shape=())(layers.Identity()(inputs))
    return compiled(keras.Model(inputs, layers.Embedding(classes, classes)(last)))

def pixels(input_shape, classes):
    inputs = keras.Input(input_shape)
    return compiled(keras.Model(inputs, layers.Dense(classes)(layers.Flatten()(inputs))))

def rescaled(input_shape, classes):
    inputs = keras.Input(input_shape)
    x = layers.Rescaling(1 / 255)(inputs)
    return compiled(keras.Model(inputs, layers.Dense(classes)(layers.Flatten()(x))))
"""

RNG = np.random.default_rng(0)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A user's file of models."""
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


def save(path: Path, **arrays: Any) -> str:
    np.savez(path, **arrays)
    return str(path)


@pytest.fixture
def images(tmp_path: Path) -> str:
    """Images of bytes whose class is how bright they are."""
    y = np.arange(200) % 2
    x = (RNG.integers(0, 100, (200, 9, 8)) + 150 * y[:, None, None]).astype(np.uint8)
    return save(tmp_path / "images.npz", x=x, y=y)


def scaling(trained: Trained) -> str:
    built: ModelBuilt = trained.all(ModelBuilt)[-1]
    return built.scaling


@pytest.mark.parametrize("function", ["subclassed_grid", "custom_layer_grid"])
def test_tokens_in_the_shape_of_images_reach_an_embedding_as_they_are(
    gym: Gym, tmp_path: Path, models: Path, function: str
) -> None:
    x = RNG.integers(0, 20, (400, 8, 8), np.uint8)
    data = save(tmp_path / "grid.npz", x=x, y=x[:, -1, -1])
    trained = gym.train(Plan(model=f"{models}:{function}", data=data, epochs=8, batch_size=20, xla="off"))
    assert trained.ended.metrics["validation_accuracy"] == 1.0
    assert scaling(trained) == "pixels not scaled: the model has the layer Embedding"


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        ("subclassed", "uint8"),
        ("custom_layer", "int64"),
        ("functional", "uint8"),
        pytest.param("subclassed", "int64", marks=pytest.mark.campaign),
        pytest.param("custom_layer", "uint8", marks=pytest.mark.campaign),
        pytest.param("functional", "int64", marks=pytest.mark.campaign),
    ],
)
def test_tokens_reach_an_embedding_as_they_are(
    gym: Gym, tmp_path: Path, models: Path, function: str, dtype: str
) -> None:
    x = RNG.integers(0, 50, (3000, 8))
    data = save(tmp_path / "tokens.npz", x=x.astype(dtype), y=x[:, -1])
    gym.steps = 50
    trained = gym.train(Plan(model=f"{models}:{function}", data=data, epochs=2, batch_size=50))
    assert trained.all(Validated)[-1].metrics["accuracy"] == 1.0
    assert scaling(trained) == "values not scaled"


@pytest.mark.parametrize(
    ("function", "scale", "factor", "words"),
    [
        ("pixels", "auto", 1 / 255, "pixels scaled by 1/255"),
        ("pixels", "none", 1.0, "pixels not scaled"),
        ("rescaled", "auto", 1.0, "pixels not scaled: the model has the layer Rescaling"),
        ("rescaled", "0-1", 1 / 255, "pixels scaled by 1/255"),
        pytest.param("pixels", "0-1", 1 / 255, "pixels scaled by 1/255", marks=pytest.mark.campaign),
        pytest.param("rescaled", "none", 1.0, "pixels not scaled", marks=pytest.mark.campaign),
    ],
)
def test_training_validation_and_later_questions_scale_alike_and_say_so(
    gym: Gym, models: Path, images: str, function: str, scale: str, factor: float, words: str
) -> None:
    plan = Plan(model=f"{models}:{function}", data=images, epochs=1, batch_size=20, scale=scale)
    trained = gym.train(plan)
    assert scaling(trained) == words
    found = read(trained.directory)
    assert found.input_spec is not None
    assert (found.input_spec.scale, found.input_spec.low, found.input_spec.high) == (factor, 0.0, 255.0)
    assert found.validation is not None

    # the model as it was saved gives what validation saw only if it is given the same numbers
    with np.load(images) as arrays:
        x = arrays["x"][..., np.newaxis]
    model = keras.models.load_model(trained.directory / "model.keras")
    rows = np.sort(np.random.default_rng(0).permutation(200)[:20])
    logits = model.predict(x[rows] * np.float32(factor), verbose=0)
    said = np.exp(logits - logits.max(axis=1, keepdims=True))
    said /= said.sum(axis=1, keepdims=True)
    for judged in found.validation.outputs[0].worst:
        assert judged.true_class_probability == pytest.approx(said[judged.row, judged.label], abs=1e-4)
    revalidate(RevalidationRequest(trained.directory))
    again = read(trained.directory).validation
    assert again is not None
    assert [judged.true_class_probability for judged in again.outputs[0].worst] == pytest.approx(
        [judged.true_class_probability for judged in found.validation.outputs[0].worst], abs=1e-4
    )


def test_a_second_scaling_is_said(gym: Gym, models: Path, images: str) -> None:
    trained = gym.train(Plan(model=f"{models}:rescaled", data=images, epochs=1, batch_size=20, scale="0-1"))
    told = [warned.message for warned in trained.all(Warned)]
    assert any("as set in the plan, although the model has the layer Rescaling" in message for message in told)
