"""ONNX: converted by tf2onnx, run by ONNX Runtime without TensorFlow."""

import importlib
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError
from accel_engine.formats import ModelFormat, ModelToWrite, Precision
from accel_engine.inference.runtime import Arrays, Runtime, check_inputs
from accel_engine.inference.text_encoding import sidecar_of, with_encodings
from accel_engine.user_code import model_errors

if TYPE_CHECKING:
    import keras

LIBRARIES = ("onnx", "tf2onnx", "onnxruntime")

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
"""What tf2onnx leaves of a function that XLA compiles, such as Keras' convolutions in groups."""


class _Onnx(ModelFormat):
    name = "onnx"
    about = "a file for ONNX Runtime"
    suffixes = (".onnx",)
    precisions = (Precision(about="ONNX Runtime", tolerance=1e-3, libraries=LIBRARIES, extra="onnx"),)

    def write(self, model: ModelToWrite, precision: str, path: Path) -> None:
        numeric, encodings = model.numeric
        write_onnx(numeric, path, {key: json.dumps(value) for key, value in model.described({}).items()})
        model.write_description(sidecar_of(path), encodings)

    def open(self, path: Path, *, threads: int | None = None, jit_compile: bool = False) -> Runtime:
        return with_encodings(OnnxRuntime(path, threads=threads), path)


FORMAT = _Onnx()


def write_onnx(model: "keras.Model", path: Path, metadata: dict[str, str]) -> None:
    """Write an ``.onnx`` file.

    Args:
        model: From a dictionary of numbers to a dictionary of outputs.
        path: The file.
        metadata: Texts that it keeps.

    Raises:
        ModelError: A library is missing, or ONNX lacks an operation of the model.
    """
    if missing := FORMAT.precisions[0].missing:
        raise ModelError(missing)
    import keras
    import onnx
    import tensorflow as tf

    from accel_engine.private_names.keras_names import all_layers

    inputs = model.input
    for layer in all_layers(model):
        if isinstance(layer, keras.layers.Normalization) and layer.built:
            # tf2onnx takes tensors that a graph captures for inputs; arrays become constants of the graph.
            layer.mean, layer.variance = np.asarray(layer.mean), np.asarray(layer.variance)
    with model_errors("the model cannot be converted to ONNX"), warnings.catch_warnings():
        model(
            {name: np.zeros((1, *(side or 1 for side in each.shape[1:])), each.dtype) for name, each in inputs.items()}
        )
        warnings.simplefilter("ignore")  # Keras looks up names that NumPy has renamed
        model.export(path, format="onnx", verbose=False)
        converted = onnx.load(path)
        if any(node.op_type in _CALLS for node in converted.graph.node):
            tf.config.run_functions_eagerly(True)  # so that the outer function has the operations of the inner ones
            try:
                model.export(path, format="onnx", verbose=False)
            finally:
                tf.config.run_functions_eagerly(False)
            converted = onnx.load(path)
    _replace_erfc(converted.graph, onnx.helper)
    onnx.helper.set_model_props(converted, metadata)
    onnx.save(converted, path)


def _replace_erfc(graph: Any, helper: Any) -> None:
    """Write ``1 - Erf(x)`` for ``Erfc(x)`` of exact GELUs, which tf2onnx keeps although ONNX does not have it."""
    nodes = []
    for node in graph.node:
        if node.op_type != "Erfc":
            nodes.append(node)
            continue
        erf, one = f"{node.name}/Erf", f"{node.name}/one"
        nodes += [
            helper.make_node("Constant", [], [one], f"{one}/node", value_float=1.0),
            helper.make_node("Erf", list(node.input), [erf], erf),
            helper.make_node("Sub", [one, erf], list(node.output), f"{node.name}/Sub"),
        ]
    del graph.node[:]
    graph.node.extend(nodes)


MISSING = "ONNX Runtime is not installed: pip install 'accel-tui[onnx]'"

_TYPES = {"float": "float32", "double": "float64", "float16": "float16", "bool": "bool", "string": "string"}
"""NumPy's names of ONNX's types; integers have the same in both."""

_ERRORS_ONLY = 3


class OnnxRuntime:
    """A loaded ONNX model; see :class:`accel_engine.inference.runtime.Runtime`.

    Args:
        path: An ``.onnx`` file.
        threads: Threads of an operation; ``None`` for ONNX Runtime's own choice.

    Raises:
        ModelError: The model cannot be loaded, or ONNX Runtime is missing.
    """

    name = "onnx"

    def __init__(self, path: Path, *, threads: int | None = None) -> None:
        self.size = path.stat().st_size
        onnxruntime = _library()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _ERRORS_ONLY
        options.intra_op_num_threads = threads or 0
        with model_errors(f"ONNX Runtime cannot load {path.name}"):
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs: Mapping[str, ArraySpec] = {each.name: _spec(each) for each in self._session.get_inputs()}
        self.outputs: Mapping[str, ArraySpec] = {each.name: _spec(each) for each in self._session.get_outputs()}

    def run(self, inputs: Arrays) -> dict[str, npt.NDArray[np.generic]]:
        """See :meth:`accel_engine.inference.runtime.Runtime.run`."""
        check_inputs(inputs, self.inputs)
        arrays = {name: np.asarray(inputs[name], _numpy_type(spec)) for name, spec in self.inputs.items()}
        with model_errors("ONNX Runtime cannot run the model"):
            outputs = self._session.run(list(self.outputs), arrays)
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
