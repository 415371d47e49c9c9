"""Predictions for image files with the model of a run's last checkpoint."""

import textwrap
from contextlib import closing
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine import data
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Split
from accel_engine.errors import DataError, ModelError, RunError
from accel_engine.plan import Plan
from accel_engine.run.connection import connect
from accel_engine.run.diagnostics import InputSpec
from accel_engine.training.evaluation.inference import classify_images, dataset_of, example_of

from ..conftest import Gym

PLAN = Plan(model="cnn", epochs=1, batch_size=100)


def write(path: Path, pixels: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tf.io.encode_png(pixels).numpy())
    return path


@pytest.mark.parametrize("old", [False, True])
def test_predictions_equal_those_of_the_saved_model(gym: Gym, tmp_path: Path, old: bool) -> None:
    trained = gym.train_once(PLAN)
    if old:  # a run of a program that kept nothing of its inside
        with closing(connect(trained.directory)) as connection:
            connection.execute("DROP TABLE main.inside")
    validation = data.load("digits", DataOptions()).validation
    assert validation is not None
    files = [write(tmp_path / f"{row}.png", validation.inputs[row]) for row in range(3)]
    told = classify_images(trained.directory, files, 10)
    model = keras.models.load_model(trained.directory / "model.keras")
    expected = model.predict(validation.inputs[:3] / 255, verbose=0)
    assert told["step"] == 15
    for image, probabilities in zip(told["images"], expected, strict=True):
        assert (image["notes"], image["problem"]) == ([], "")
        assert [name for name, _ in image["choices"]] == [str(each) for each in np.argsort(-probabilities)]
        np.testing.assert_allclose([share for _, share in image["choices"]], np.sort(probabilities)[::-1], atol=1e-5)


def test_a_folder_of_images_has_class_names_and_a_size(gym: Gym, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for value, name in enumerate(("cat", "dog")):
        for index in range(20):
            low = 150 * value
            write(tmp_path / "pets" / name / f"{index}.png", rng.integers(low, low + 100, (9, 8, 3)).astype(np.uint8))
    plan = Plan(model="mlp", data=str(tmp_path / "pets"), epochs=20, batch_size=8, image_size="8x8", validation="end")
    trained = gym.train(plan)
    told = classify_images(trained.directory, [tmp_path / "pets" / "dog" / "3.png", tmp_path / "missing.png"], 1)
    first, second = told["images"]
    assert [name for name, _ in first["choices"]] == ["dog"]
    assert first["notes"] == ["resized from 9x8 to 8x8"]
    assert second["problem"].startswith("cannot read the image")


@pytest.mark.parametrize(
    ("intake", "black", "white"),
    [
        (InputSpec((4, 4, 1), (), 1 / 255, 0.0, 255.0, True), 0, 255),
        (InputSpec((4, 4, 3), (), 1.0, -1.0, 1.0, False), -1.0, 1.0),
        (InputSpec((4, 4, 4), (), 1 / 65535, 0.0, 65535.0, False), 0.0, 65535.0),
        (InputSpec((4, 4, 1), (), 1.0, 0.0, 1.0, True), 0, 1),
    ],
)
def test_an_image_is_resized_and_scaled_like_the_data(
    tmp_path: Path, intake: InputSpec, black: float, white: float
) -> None:
    pixels = np.zeros((8, 8, 3), np.uint8)
    pixels[:, 4:] = 255
    x, notes = example_of(write(tmp_path / "half.png", pixels), intake)
    assert x.shape == intake.shape
    assert (x[0, 0, 0], x[0, 3, 0]) == (black, white)
    assert "resized from 8x8 to 4x4" in notes
    assert any("pixels scaled to" in note for note in notes) == ((black, white) != (0, 255))


@pytest.mark.parametrize(("integers", "dtype", "high"), [(True, np.uint8, 255), (False, np.float32, 1)])
def test_what_is_known_of_the_data_has_no_examples(integers: bool, dtype: type, high: float) -> None:
    known = dataset_of(InputSpec((4, 4, 1), ("a", "b"), 1 / high, 0.0, high, integers))

    assert isinstance(known.train, Split)
    assert (known.train.inputs.shape, known.train.targets.shape) == ((0, 4, 4, 1), (0,))
    assert known.train.inputs.dtype == dtype
    assert (known.classes, known.task) == (2, "classification")


def test_colour_is_converted_to_grayscale_with_a_note(tmp_path: Path) -> None:
    colour = np.full((4, 4, 3), (100, 200, 50), np.uint8)
    x, notes = example_of(write(tmp_path / "colour.png", colour), InputSpec((4, 4, 1), (), 1 / 255, 0.0, 255.0, True))
    assert set(x.reshape(-1).tolist()) == {153}
    assert notes == ["converted to grayscale"]


def test_files_that_are_not_images_are_named(tmp_path: Path) -> None:
    (tmp_path / "words.png").write_text("words")
    with pytest.raises(DataError, match=r"cannot read the image .*words.png: not a valid PNG, JPEG, GIF or BMP file"):
        example_of(tmp_path / "words.png", InputSpec((4, 4, 1), (), 1 / 255, 0.0, 255.0, True))


def test_a_run_of_other_data_does_not_take_images(gym: Gym, tmp_path: Path) -> None:
    trained = gym.train(Plan(model="mlp", data="synthetic:20:3:500", epochs=1))
    with pytest.raises(DataError, match=r"does not take images: .*20"):
        classify_images(trained.directory, [tmp_path / "any.png"], 1)


SOURCE = """
import keras

class Own(keras.Sequential):
    def train_step(self, data):
        return super().train_step(data)

def build(input_shape, classes):
    model = Own([keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense({units})])
    model.compile("sgd", "mse")
    return model
"""


def test_a_changed_model_or_one_that_is_not_a_classifier_is_rejected(gym: Gym, tmp_path: Path) -> None:
    source = tmp_path / "own.py"
    source.write_text(textwrap.dedent(SOURCE.format(units="1")))
    trained = gym.train(PLAN.replace(model=f"{source}:build", data="synthetic:6x6x1:3:300", batch_size=50))
    assert not trained.ended.reason, trained.ended.reason
    with pytest.raises(ModelError, match="not a classifier"):
        classify_images(trained.directory, [], 1)
    source.write_text(textwrap.dedent(SOURCE.format(units="30")))  # Python sees a change within a second by the size
    with pytest.raises(RunError, match="does not fit the model"):
        classify_images(trained.directory, [], 1)
