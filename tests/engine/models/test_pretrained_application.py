"""ImageNet models take pixels as Keras' ``preprocess_input`` prepares them; their weights come from a stand-in."""

import inspect
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine.errors import ModelError
from accel_engine.models.applications import APPLICATIONS
from accel_engine.models.pretrained_application import build_pretrained, preprocess
from accel_engine.models.traits import preprocessing
from accel_engine.private_names.keras_names import replaced_get_file

PIXELS = np.random.default_rng(0).integers(0, 256, (2, 4, 4, 3)).astype(np.float32)


def own_preprocessing(name: str) -> Any:
    """The ``preprocess_input`` of an application."""
    return sys.modules[getattr(keras.applications, name).__module__].preprocess_input


@pytest.mark.parametrize("name", [entry.name for entry in APPLICATIONS])
def test_pixels_are_prepared_as_by_preprocess_input(name: str) -> None:
    application = getattr(keras.applications, name)
    wanted = own_preprocessing(name)(PIXELS.copy())
    if "include_preprocessing" in inspect.signature(application).parameters or name.startswith("EfficientNet"):
        np.testing.assert_array_equal(wanted, PIXELS)  # the application does it
        return
    inputs = keras.Input((4, 4, 3))
    prepared = keras.Model(inputs, preprocess(name, inputs)).predict(PIXELS, verbose=0)
    np.testing.assert_allclose(prepared, wanted, atol=2e-5)


def test_the_weights_are_loaded_into_the_application_and_not_into_the_head(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    application = keras.applications.MobileNetV3Small
    source = application(include_top=False, weights=None, input_shape=(32, 32, 3), pooling="avg")
    source.save_weights(tmp_path / "small.weights.h5")
    asked = []

    def fake(fname: str, origin: str, **options: Any) -> str:
        asked.append((fname, origin))
        return str(tmp_path / "small.weights.h5")

    monkeypatch.setattr("keras.src.utils.file_utils.get_file", fake)

    model = build_pretrained("MobileNetV3Small", (32, 32, 1), 10, download=True)
    base = model.get_layer("MobileNetV3Small")
    for ours, theirs in zip(base.get_weights(), source.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert asked[0][1].startswith("https://storage.googleapis.com/")
    assert model.output_shape == (None, 10)
    assert preprocessing(model) == "Rescaling"  # so pixels arrive as they are
    gray = PIXELS[..., :1].repeat(8, 1).repeat(8, 2)
    features = source.predict(gray.repeat(3, -1), verbose=0)
    probe = keras.Model(model.inputs, model.get_layer("logits").input)
    np.testing.assert_allclose(probe.predict(gray, verbose=0), features, atol=1e-5)

    monkeypatch.setattr("keras.src.utils.file_utils.get_file", None)  # not called
    assert len(build_pretrained("MobileNetV3Small", (32, 32, 1), 10, download=False).weights) == len(model.weights)


def test_without_a_network_the_error_says_where_to_put_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))

    def offline(get_file: Any, *arguments: Any, **options: Any) -> str:
        raise OSError("URL fetch failure: Name or service not known")

    with replaced_get_file(offline), pytest.raises(ModelError, match="ImageNet weights of MobileNetV3Small") as caught:
        build_pretrained("MobileNetV3Small", (32, 32, 3), 10, download=True)

    message = str(caught.value)
    assert "URL fetch failure" in message
    assert f"copy it to {tmp_path}/models/weights_mobilenet_v3_small" in message
    assert "download https://storage.googleapis.com/" in message
