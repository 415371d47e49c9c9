"""Builds models of ``keras.applications`` for their ImageNet weights: with their preprocessing and a new head.

A model takes pixels from 0 to 255, as they are in a file, and prepares them as the application's ``preprocess_input``
does, with its own layers.
"""

import inspect
import os
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import keras
from keras import layers

from accel_engine.errors import ModelError
from accel_engine.private_names.keras_names import replaced_get_file
from accel_engine.user_code import reason

HEAD = "logits"
"""Name of the new layer, with an output for each class."""

_MEAN = (0.485, 0.456, 0.406)
_DEVIATION = (0.229, 0.224, 0.225)
"""Mean and standard deviation of ImageNet's pixels in [0, 1], red, green and blue; as in ``keras.applications``."""

_CAFFE_MEAN = (123.68, 116.779, 103.939)
"""Mean of ImageNet's pixels from 0 to 255, red, green and blue."""


def build_pretrained(name: str, input_shape: tuple[int | None, ...], classes: int, *, download: bool) -> keras.Model:
    """Build a classifier for ImageNet weights, from pixels ``[batch, height, width, channels]`` of 0 to 255.

    Args:
        name: The name of the function in ``keras.applications``.
        input_shape: ``(height, width, channels)`` with 1 or 3 channels; one is repeated to three.
        classes: Number of classes.
        download: Whether to load the weights, which Keras downloads if it has not yet; otherwise they are random.

    Returns:
        An uncompiled model of probabilities, float32 ``[batch, classes]``. The application is its last layer but the
        head.

    Raises:
        ModelError: The weights cannot be loaded.
    """
    height, width, channels = input_shape
    application = getattr(keras.applications, name)
    inputs = keras.Input(input_shape)
    pixels = layers.Concatenate(name="rgb")([inputs] * 3) if channels == 1 else inputs
    included = "include_preprocessing" in inspect.signature(application).parameters or name.startswith("EfficientNet")
    prepared = pixels if included else preprocess(name, pixels)
    base = _base(application, name, (height, width, 3), download=download)
    logits = layers.Dense(classes, name=HEAD)(base(prepared))
    probabilities = layers.Softmax(dtype="float32", name="probabilities")(logits)
    return keras.Model(inputs, probabilities, name=name)


def preprocess(name: str, pixels: Any) -> Any:
    """Prepare pixels from 0 to 255 as the ``preprocess_input`` of an application does, with layers.

    In float32 also under mixed precision.

    Args:
        name: An application without preprocessing layers.
        pixels: A symbolic tensor with three channels.
    """
    if name.startswith("DenseNet"):
        variance = [(255 * each) ** 2 for each in _DEVIATION]
        mean = [255 * each for each in _MEAN]
        return layers.Normalization(mean=mean, variance=variance, dtype="float32", name="preprocessing")(pixels)
    if name in ("VGG16", "VGG19", "ResNet50", "ResNet101", "ResNet152"):
        offset = [-each for each in _CAFFE_MEAN]
        centered = layers.Rescaling(1.0, offset=offset, dtype="float32", name="preprocessing")(pixels)
        return keras.ops.flip(centered, axis=-1)  # blue first
    return layers.Rescaling(1 / 127.5, offset=-1.0, dtype="float32", name="preprocessing")(pixels)


def _base(
    application: Callable[..., keras.Model], name: str, input_shape: tuple[int | None, ...], *, download: bool
) -> keras.Model:
    """The application without its head, with pooled features as outputs."""
    wanted: list[tuple[str, str]] = []

    def record(get_file: Callable[..., Any], fname: str = "", origin: str = "", **options: Any) -> Any:
        wanted.append((origin, f"{options.get('cache_subdir', 'datasets')}/{fname}"))
        # Without a download, the architecture is built, which may depend on the weights, but nothing is loaded.
        return get_file(fname, origin, **options) if download else ""

    loading = nullcontext() if download else patch.object(keras.Model, "load_weights", lambda *_, **__: None)
    with warnings.catch_warnings(), replaced_get_file(record), loading:
        warnings.simplefilter("ignore")  # some warn that they were trained at other sizes
        try:
            return application(include_top=False, weights="imagenet", input_shape=input_shape, pooling="avg")
        except Exception as error:
            if not wanted:
                raise
            origin, file = wanted[-1]
            path = Path(os.environ.get("KERAS_HOME") or "~/.keras") / file
            problem = reason(error)
            file = "that file" if origin in problem else origin
            raise ModelError(
                f"the ImageNet weights of {name} cannot be loaded: {problem}. "
                f"Without a network, download {file} elsewhere and copy it to {path}"
            ) from error
