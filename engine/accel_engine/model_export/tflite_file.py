"""Converts a model to TFLite, in the precisions that LiteRT runs."""

import contextlib
import io
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from accel_engine.errors import ModelError
from accel_engine.inference.runtime import Arrays
from accel_engine.inference.savedmodel_runtime import SIGNATURE
from accel_engine.user_code import reason

_MISSING = re.compile(r"'tf\.(\w+)' op is neither a custom op nor a flex op")

REPRESENTATIVE = 200
"""Examples from which the ranges of activations are measured for full integer quantization."""


def write_tflite(model: keras.Model, path: Path, quantize: str, examples: Callable[[], Arrays]) -> None:
    """Write a ``.tflite`` file.

    Args:
        model: From a dictionary of numbers to a dictionary of outputs.
        path: The file.
        quantize: ``none``: float32; ``float16``: weights; ``dynamic``: int8 weights, activations as they come;
            ``int8``: weights and activations, with inputs and outputs as they are.
        examples: Returns inputs of :data:`REPRESENTATIVE` training examples.

    Raises:
        ModelError: LiteRT lacks an operation of the model, or a layer cannot be converted.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it measures ranges with an interpreter that it calls deprecated
                model.export(folder, verbose=False)
                content: bytes = _converter(folder, quantize, examples).convert()
        except Exception as error:  # of several kinds, some of them private
            raise ModelError(f"the model cannot be converted to TFLite: {_explained(error)}") from error
    path.write_bytes(content)


def _converter(folder: str, quantize: str, examples: Callable[[], Arrays]) -> Any:
    converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[SIGNATURE])
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    if quantize != "none":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantize == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if quantize == "int8":
        converter.representative_dataset = lambda: _one_by_one(examples())
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    return converter


def _one_by_one(examples: Arrays) -> Iterator[dict[str, Any]]:
    count = len(next(iter(examples.values())))
    for index in range(count):
        yield {name: np.asarray(array[index : index + 1]) for name, array in examples.items()}


def _explained(error: BaseException) -> str:
    """The operations that are missing, or the error."""
    missing = dict.fromkeys(_MISSING.findall(str(error)))
    return f"LiteRT lacks the operation{'s' * (len(missing) > 1)} {', '.join(missing)}" if missing else reason(error)
