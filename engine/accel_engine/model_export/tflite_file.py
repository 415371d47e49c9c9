"""Converts a model to TFLite, in the precisions that LiteRT runs."""

import contextlib
import importlib
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

from accel_engine.data.standardization import Standardization
from accel_engine.data.standardization_model import dtype_of_units
from accel_engine.errors import ModelError
from accel_engine.inference.runtime import Arrays
from accel_engine.inference.savedmodel_runtime import SIGNATURE
from accel_engine.private_names.tflite_file_names import scaled_output
from accel_engine.user_code import reason

_MISSING = re.compile(r"'tf\.(\w+)' op is neither a custom op nor a flex op")

MISSING = "ai-edge-quantizer is not installed: pip install 'accel-tui[quantizer]'"

REPRESENTATIVE = 200
"""Examples from which the ranges of activations are measured for full integer quantization."""


def write_tflite(
    model: keras.Model,
    path: Path,
    quantize: str,
    examples: Callable[[], Arrays],
    units: Standardization | None = None,
) -> None:
    """Write a ``.tflite`` file.

    Args:
        model: From a dictionary of numbers to a dictionary of outputs.
        path: The file.
        quantize: ``none``: float32; ``float16``: weights; ``dynamic``: int8 weights, activations as they come;
            ``int8-weights``: int8 weights, float32 activations; ``int8``: weights and activations, with inputs and
            outputs as they are.
        examples: Returns inputs of :data:`REPRESENTATIVE` training examples.
        units: How the values of its only output are standardised; the file gives them in their units, in float32.

    Raises:
        ModelError: LiteRT lacks an operation of the model, a layer cannot be converted, or a library is missing.
    """
    precise = [name for name, each in (*model.input.items(), *model.output.items()) if each.dtype == "float64"]
    precise += list(model.output) if units and dtype_of_units(units) == "float64" else []
    if precise:
        raise ModelError(
            f"float32 would lose digits of {', '.join(precise)}, and LiteRT does not compute in float64: use another "
            "format, or train on differences from a fixed value"
        )
    quantizer = import_quantizer() if quantize == "int8-weights" else None
    with tempfile.TemporaryDirectory() as folder:
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it measures ranges with an interpreter that it calls deprecated
                model.export(folder, verbose=False)
                content: bytes = _converter(folder, quantize, examples).convert()
        except Exception as error:  # of several kinds, some of them private
            raise ModelError(f"the model cannot be converted to TFLite: {_explained(error)}") from error
    content = _with_int8_weights(content, quantizer) if quantizer else content
    path.write_bytes(scaled_output(content, units.scale.tolist(), units.mean.tolist()) if units else content)


def import_quantizer() -> Any:
    """Import ai-edge-quantizer.

    Raises:
        ModelError: It is not installed.
    """
    try:
        return importlib.import_module("ai_edge_quantizer")
    except ImportError as error:
        raise ModelError(MISSING) from error


def _with_int8_weights(content: bytes, quantizer: Any) -> bytes:
    """A float32 model with its weights as int8, one scale for each channel; they are converted back to compute.

    Raises:
        ModelError: An operation cannot be quantized.
    """
    try:
        found = quantizer.Quantizer(content, quantizer.recipe.weight_only_wi8_afp32())
        return bytes(found.quantize(enable_progress_bar=False, enable_progress_report=False).quantized_model)
    except Exception as error:  # of several kinds
        raise ModelError(f"the weights cannot be quantized: {reason(error)}") from error


def _converter(folder: str, quantize: str, examples: Callable[[], Arrays]) -> Any:
    converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[SIGNATURE])
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    if quantize in ("float16", "dynamic", "int8"):
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
