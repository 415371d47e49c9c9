import math
import re
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine import models
from accel_engine.errors import ModelError, PlanError
from accel_engine.keras_support.model_structure import has_custom_train_step
from accel_engine.models.build import build
from accel_engine.models.model_files import SAVED_MODEL, is_saved_model
from accel_engine.models.traits import preprocessing, returns_logits

from .descriptions import labelled


def trainable(model: keras.Model) -> int:
    return sum(math.prod(weight.shape) for weight in model.trainable_weights)


def batch_normalised(kernel: int, inputs: int, outputs: int) -> int:
    """Number of weights of a convolution without bias and of its batch normalization."""
    return kernel * kernel * inputs * outputs + 2 * outputs


def test_mlp_is_784_128_10() -> None:
    model = build("mlp", labelled((28, 28, 1), 10))
    assert model.count_params() == (784 * 128 + 128) + (128 * 10 + 10) == 101_770
    assert [type(layer).__name__ for layer in model.layers] == ["Flatten", "Dense", "Dense"]


def test_fashion_cnn_is_the_published_network() -> None:
    model = build("fashion-cnn", labelled((28, 28, 1), 10))
    assert [type(layer).__name__ for layer in model.layers] == ["Conv2D", "MaxPooling2D", "ReLU", "Flatten", "Dense"]
    convolution, pooling = model.layers[:2]
    assert convolution.activation is keras.activations.linear
    assert (convolution.kernel_size, convolution.padding) == ((3, 3), "valid")
    assert (pooling.pool_size, pooling.strides) == ((2, 2), (2, 2))
    assert model.count_params() == (9 * 64 + 64) + (13 * 13 * 64 * 10 + 10) == 108_810


def test_resnet20_has_twenty_layers_and_0_27_million_weights() -> None:
    model = build("resnet20", labelled((32, 32, 3), 10))
    by_hand = batch_normalised(3, 3, 16) + 6 * batch_normalised(3, 16, 16)
    by_hand += batch_normalised(3, 16, 32) + 5 * batch_normalised(3, 32, 32)
    by_hand += batch_normalised(3, 32, 64) + 5 * batch_normalised(3, 64, 64)
    by_hand += 64 * 10 + 10
    assert trainable(model) == by_hand == 269_722
    assert sum(isinstance(layer, keras.layers.Conv2D | keras.layers.Dense) for layer in model.layers) == 20


def test_resnet20_halves_odd_sizes_alike_on_both_paths() -> None:
    assert build("resnet20", labelled((29, 31, 1), 4)).output_shape == (None, 4)


@pytest.mark.parametrize("name", ["mlp", "cnn", "fashion-cnn", "resnet20", "MobileNetV2", "EfficientNetB0"])
def test_catalogue_entries_match_their_models(name: str) -> None:
    entry = models.CATALOGUE[name]
    shape = (entry.minimum_size or 5, entry.minimum_size or 7, 3)
    with tf.Graph().as_default():  # declares weights and makes none, as for describing a plan
        model = build(name, labelled(shape, 7))
        assert not model.compiled
        assert bool(preprocessing(model)) == entry.preprocesses
        assert model.output_shape == (None, 7)
        assert not returns_logits(model)
        assert not has_custom_train_step(model)
    keras.backend.clear_session()


def test_every_application_of_this_keras_is_listed_and_has_a_builder() -> None:
    made_by_keras = {name for name in dir(keras.applications) if name[0].isupper()}
    listed = {entry.name for entry in models.APPLICATIONS}
    assert listed == made_by_keras
    from accel_engine.models import keras_application

    assert all(callable(getattr(keras_application, name)) for name in listed)
    with pytest.raises(AttributeError, match="NoSuchNet"):
        _ = keras_application.NoSuchNet


def test_probabilities_are_float32_under_mixed_precision() -> None:
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        for name in ("mlp", "cnn", "fashion-cnn", "resnet20", "MobileNet"):
            with tf.Graph().as_default():
                assert build(name, labelled((32, 32, 3), 5)).outputs[0].dtype == "float32"
    finally:
        keras.config.set_dtype_policy("float32")
        keras.backend.clear_session()


@pytest.mark.parametrize("name", ["mlp", "cnn", "fashion-cnn"])
def test_outputs_are_probabilities(name: str) -> None:
    outputs = build(name, labelled((8, 8, 1), 3))(np.random.default_rng(0).random((4, 8, 8, 1), np.float32)).numpy()
    assert outputs.shape == (4, 3)
    np.testing.assert_allclose(outputs.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        (
            "cnn",
            (784,),
            "model cnn takes images of at least 8x8; the data has 784, not images (height, width, channels)",
        ),
        ("cnn", (4, 4, 1), "model cnn takes images of at least 8x8; the data has 4x4x1"),
        ("MobileNetV2", (8, 8, 1), "model MobileNetV2 takes images of at least 32x32; the data has 8x8x1"),
    ],
)
def test_data_that_does_not_fit_is_explained(name: str, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(ModelError, match=f"^{re.escape(words)}$"):
        build(name, labelled(shape, 10))


def test_files_that_are_no_model_of_keras_are_refused_with_the_way_to_convert_them(tmp_path: Path) -> None:
    for name in ("m.h5", "m.weights.h5", "m.tflite", "notes.txt"):
        (tmp_path / name).write_text("")
    assert models.find(f"{tmp_path}/m.h5") == models.UserModel("m", "saved", f"{tmp_path}/m.h5")
    for name, reason in (
        ("m.weights.h5", "with model.save('FILE.keras'); or give FILE.py:FUNCTION with --initial-weights"),
        ("m.tflite", "a TFLite model has no Keras layers any more"),
        ("notes.txt", "must be a name, FILE.keras, FILE.h5"),
    ):
        with pytest.raises(PlanError, match=re.escape(reason)) as raised:
            models.find(f"{tmp_path}/{name}")
        assert "did you mean" not in str(raised.value)


def test_a_directory_is_a_saved_model_by_its_own_file_or_those_of_its_versions(tmp_path: Path) -> None:
    for name in ("own", "versions/2", "run/exported"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / SAVED_MODEL).write_text("")
    assert is_saved_model(tmp_path / "own")
    assert is_saved_model(tmp_path / "versions")
    assert not is_saved_model(tmp_path / "run")  # into which somebody has exported the model
