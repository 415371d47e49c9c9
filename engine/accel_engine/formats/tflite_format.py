"""TFLite: converted by TensorFlow, in the precisions that LiteRT runs without it."""

import contextlib
import importlib
import io
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.standardization import Standardization
from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError
from accel_engine.formats import ModelFormat, ModelToWrite, Precision
from accel_engine.inference.runtime import Arrays, Runtime, check_inputs
from accel_engine.inference.text_encoding import encode_texts, sidecar_of, with_encodings
from accel_engine.user_code import model_errors, reason
from accel_engine.words import numbers

if TYPE_CHECKING:
    import keras

_MISSING = re.compile(r"'tf\.(\w+)' op is neither a custom op nor a flex op")

_NO_QUANTIZER = "ai-edge-quantizer is not installed: pip install 'accel-tui[quantizer]'"

_NO_RUNTIME = "LiteRT is not installed: pip install 'accel-tui[tflite]'"

REPRESENTATIVE = 200
"""Examples from which the ranges of activations are measured for full integer quantization."""


_LITERT = ("ai_edge_litert",)


def _precision(name: str, about: str, tolerance: float, *, by_mean: bool = False) -> Precision:
    return Precision(name=name, about=about, tolerance=tolerance, by_mean=by_mean, libraries=_LITERT, extra="tflite")


class _TFLite(ModelFormat):
    name = "tflite"
    about = "a file for LiteRT; --quantize makes it smaller"
    suffixes = (".tflite",)
    precisions = (
        _precision("none", "LiteRT, float32", 1e-3),
        _precision("float16", "LiteRT, float16 weights", 0.02),
        _precision("dynamic", "LiteRT, int8 weights, activations as they come", 0.05, by_mean=True),
        Precision(
            name="int8-weights",
            about="LiteRT, int8 weights, float32 activations",
            tolerance=0.05,
            by_mean=True,
            libraries=(*_LITERT, "ai_edge_quantizer"),
            extra="quantizer",
        ),
        _precision("int8", "LiteRT, int8 weights and activations", 0.05, by_mean=True),
    )

    def write(self, model: ModelToWrite, precision: str, path: Path) -> None:
        numeric, encodings = model.unrolled
        write_tflite(
            numeric,
            path,
            precision,
            lambda: encode_texts(model.training_examples(REPRESENTATIVE), encodings),
            model.added_units,
        )
        model.write_description(sidecar_of(path), encodings)

    def open(self, path: Path, *, threads: int | None = None, jit_compile: bool = False) -> Runtime:
        return with_encodings(LiteRTRuntime(path, threads=threads), path)


FORMAT = _TFLite()


def write_tflite(
    model: "keras.Model",
    path: Path,
    quantize: str,
    examples: Callable[[], Arrays],
    units: Standardization | None = None,
) -> None:
    """Write a ``.tflite`` file.

    Args:
        model: From a dictionary of numbers to a dictionary of outputs.
        path: The file.
        quantize: ``none``: float32; ``float16``: weights; ``dynamic``: int8 weights, activations quantized at run time;
            ``int8-weights``: int8 weights, float32 activations; ``int8``: weights and activations, with the types of
            inputs and outputs unchanged.
        examples: Returns inputs of :data:`REPRESENTATIVE` training examples.
        units: How the values of its only output are standardised; the file gives them in their units, in float32.

    Raises:
        ModelError: LiteRT lacks an operation of the model, a layer cannot be converted, or a library is missing.
    """
    from accel_engine.data.standardization_model import dtype_of_units
    from accel_engine.private_names.tflite_flatbuffer import scale_output

    precise = [name for name, each in (*model.input.items(), *model.output.items()) if each.dtype == "float64"]
    precise += list(model.output) if units and dtype_of_units(units) == "float64" else []
    if precise:
        raise ModelError(
            f"float32 would lose digits of {', '.join(precise)}, and LiteRT does not compute in float64: use another "
            "format, or train on differences from a fixed value"
        )
    quantizer = _import_quantizer() if quantize == "int8-weights" else None
    with tempfile.TemporaryDirectory() as folder:
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it measures ranges with an interpreter that it calls deprecated
                model.export(folder, verbose=False)
                content: bytes = _converter(folder, quantize, examples).convert()
        except Exception as error:  # of several kinds, some of them private
            raise ModelError(f"the model cannot be converted to TFLite: {_explained(error)}") from error
    content = _with_int8_weights(content, quantizer) if quantizer else content
    path.write_bytes(scale_output(content, units.scale.tolist(), units.mean.tolist()) if units else content)


def _import_quantizer() -> Any:
    """Import ai-edge-quantizer.

    Raises:
        ModelError: The package is not installed.
    """
    try:
        return importlib.import_module("ai_edge_quantizer")
    except ImportError as error:
        raise ModelError(_NO_QUANTIZER) from error


def _with_int8_weights(content: bytes, quantizer: Any) -> bytes:
    """A float32 model with its weights as int8, one scale for each channel; they are converted back to compute.

    Raises:
        ModelError: An operation cannot be quantized.
    """
    with model_errors("the weights cannot be quantized"):
        found = quantizer.Quantizer(content, quantizer.recipe.weight_only_wi8_afp32())
        return bytes(found.quantize(enable_progress_bar=False, enable_progress_report=False).quantized_model)


def _converter(folder: str, quantize: str, examples: Callable[[], Arrays]) -> Any:
    import tensorflow as tf

    from accel_engine.models.model_files import SIGNATURE

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
    noun = numbers.plural(len(missing), "operation")
    return f"LiteRT lacks the {noun} {', '.join(missing)}" if missing else reason(error)


class LiteRTRuntime:
    """A loaded TFLite model; see :class:`accel_engine.inference.runtime.Runtime`.

    Args:
        path: A ``.tflite`` file.
        threads: Threads; ``None`` for LiteRT's own choice.

    Raises:
        ModelError: The model cannot be loaded, or LiteRT is missing.
    """

    name = "tflite"

    def __init__(self, path: Path, *, threads: int | None = None) -> None:
        self.size = path.stat().st_size
        try:
            interpreter: Any = _import_interpreter()(model_path=str(path), num_threads=threads)
            interpreter.allocate_tensors()  # fails for operations that LiteRT lacks
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"LiteRT cannot load {path.name}: {reason(error)}") from error
        signatures = interpreter.get_signature_list()
        if len(signatures) != 1:
            raise ModelError(f"{path.name} has {len(signatures)} signatures, not one")
        self._interpreter = interpreter  # its runner does not keep it
        self._runner = interpreter.get_signature_runner(next(iter(signatures)))
        self.inputs: Mapping[str, ArraySpec] = {
            name: _spec(each) for name, each in sorted(self._runner.get_input_details().items())
        }
        self.outputs: Mapping[str, ArraySpec] = {
            name: _spec(each) for name, each in sorted(self._runner.get_output_details().items())
        }

    def run(self, inputs: Arrays) -> dict[str, npt.NDArray[np.generic]]:
        """See :meth:`accel_engine.inference.runtime.Runtime.run`."""
        check_inputs(inputs, self.inputs)
        arrays = {name: np.asarray(inputs[name], spec.dtype) for name, spec in self.inputs.items()}
        try:
            outputs: dict[str, npt.NDArray[np.generic]] = self._runner(**arrays)
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"LiteRT cannot run the model: {reason(error)}") from error
        return outputs


def _import_interpreter() -> Any:
    """The class of LiteRT's interpreter.

    Raises:
        ModelError: LiteRT is not installed.
    """
    try:
        return importlib.import_module("ai_edge_litert.interpreter").Interpreter
    except ImportError as error:
        raise ModelError(_NO_RUNTIME) from error


def _spec(details: dict[str, Any]) -> ArraySpec:
    signature = details["shape_signature"] if len(details["shape_signature"]) else details["shape"]
    sides = tuple(None if side < 0 else int(side) for side in signature[1:])
    return ArraySpec(sides, np.dtype(details["dtype"]).name)
