"""Runs a TFLite model with LiteRT, which replaces TensorFlow's own interpreter; without TensorFlow."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError, UsageError
from accel_engine.inference.arrays import check_inputs
from accel_engine.inference.runtime import Arrays
from accel_engine.user_code import reason

MISSING = "LiteRT is not installed: pip install 'accel-tui[tflite]'"


class LiteRTRuntime:
    """A loaded TFLite model; see :class:`accel_engine.inference.runtime.Runtime`.

    Args:
        path: A ``.tflite`` file.
        threads: Threads; ``None`` for LiteRT's own choice.

    Raises:
        ModelError: It cannot be loaded, or LiteRT is missing.
        UsageError: There is no such file.
    """

    name = "tflite"

    def __init__(self, path: Path, *, threads: int | None = None) -> None:
        if not path.is_file():
            raise UsageError(f"no such file: {path}")
        self.size = path.stat().st_size
        try:
            interpreter: Any = _interpreter_class()(model_path=str(path), num_threads=threads)
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


def _interpreter_class() -> Any:
    try:
        return importlib.import_module("ai_edge_litert.interpreter").Interpreter
    except ImportError as error:
        raise ModelError(MISSING) from error


def _spec(details: dict[str, Any]) -> ArraySpec:
    signature = details["shape_signature"] if len(details["shape_signature"]) else details["shape"]
    sides = tuple(None if side < 0 else int(side) for side in signature[1:])
    return ArraySpec(sides, np.dtype(details["dtype"]).name)
