"""Runs an ONNX model with ONNX Runtime; without TensorFlow."""

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

MISSING = "ONNX Runtime is not installed: pip install 'accel-tui[onnx]'"

_TYPES = {"float": "float32", "double": "float64", "float16": "float16", "bool": "bool", "string": "string"}
"""NumPy's names of ONNX's types; those of integers are the same in both."""

_ERRORS_ONLY = 3


class OnnxRuntime:
    """A loaded ONNX model; see :class:`accel_engine.inference.runtime.Runtime`.

    Args:
        path: An ``.onnx`` file.
        threads: Threads of an operation; ``None`` for ONNX Runtime's own choice.

    Raises:
        ModelError: It cannot be loaded, or ONNX Runtime is missing.
        UsageError: There is no such file.
    """

    name = "onnx"

    def __init__(self, path: Path, *, threads: int | None = None) -> None:
        if not path.is_file():
            raise UsageError(f"no such file: {path}")
        self.size = path.stat().st_size
        onnxruntime = _library()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _ERRORS_ONLY
        options.intra_op_num_threads = threads or 0
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its exceptions have no common class
            raise ModelError(f"ONNX Runtime cannot load {path.name}: {reason(error)}") from error
        self.inputs: Mapping[str, ArraySpec] = {each.name: _spec(each) for each in self._session.get_inputs()}
        self.outputs: Mapping[str, ArraySpec] = {each.name: _spec(each) for each in self._session.get_outputs()}

    def run(self, inputs: Arrays) -> dict[str, npt.NDArray[np.generic]]:
        """See :meth:`accel_engine.inference.runtime.Runtime.run`."""
        check_inputs(inputs, self.inputs)
        arrays = {name: np.asarray(inputs[name], _numpy_type(spec)) for name, spec in self.inputs.items()}
        try:
            outputs = self._session.run(list(self.outputs), arrays)
        except Exception as error:
            raise ModelError(f"ONNX Runtime cannot run the model: {reason(error)}") from error
        return dict(zip(self.outputs, outputs, strict=True))


def _library() -> Any:
    try:
        return importlib.import_module("onnxruntime")
    except ImportError as error:
        raise ModelError(MISSING) from error


def _numpy_type(spec: ArraySpec) -> Any:
    return object if spec.dtype == "string" else spec.dtype


def _spec(tensor: Any) -> ArraySpec:
    kind = tensor.type.removeprefix("tensor(").removesuffix(")")
    sides = tuple(side if isinstance(side, int) else None for side in tensor.shape[1:])
    return ArraySpec(sides, _TYPES.get(kind, kind))
