"""Adds operations to a TFLite file (a FlatBuffer) through TensorFlow's private classes; no public name does that.

Without them, the outputs of integer models are scaled by integer operations.
"""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

_FORMAT, _UTILITIES = "tensorflow.lite.python.schema_py_generated", "tensorflow.lite.tools.flatbuffer_utils"

_ADD, _MUL = 0, 18  # of BuiltinOperator in schema.fbs
_ADD_OPTIONS, _MUL_OPTIONS = 11, 21  # of BuiltinOptions


def can_edit_flatbuffer() -> bool:
    """Whether TensorFlow has the classes that :func:`scale_output` needs."""
    try:
        return bool(importlib.import_module(_FORMAT) and importlib.import_module(_UTILITIES))
    except ImportError:
        return False


def scale_output(content: bytes, scale: Sequence[float], offset: Sequence[float]) -> bytes:
    """Multiply and shift the only output of a TFLite model, in float32, whatever its other operations are.

    The quantizer of TensorFlow would take both for integers whose range holds 0, which leaves a value of 1000 +- 10
    two or three of its 256 steps.

    Args:
        content: The model, with one float32 output and one signature.
        scale: The factors of the output: a number for each value on its last axis, or one for all.
        offset: The numbers that are added then, as many.

    Returns:
        The changed model.
    """
    schema, flatbuffer_utils = importlib.import_module(_FORMAT), importlib.import_module(_UTILITIES)
    model = flatbuffer_utils.convert_bytearray_to_object(bytearray(content))
    graph, signature = model.subgraphs[0], model.signatureDefs[0]
    last = int(graph.outputs[0])
    for code, options, kind, values, name in (
        (_MUL, schema.MulOptionsT(), _MUL_OPTIONS, scale, "units/scaled"),
        (_ADD, schema.AddOptionsT(), _ADD_OPTIONS, offset, "units"),
    ):
        constant = _constant(schema, model, values, f"{name}/constant")
        last = _operation(schema, model, code, (options, kind), (last, constant), name)
    graph.outputs = [last]
    signature.outputs[0].tensorIndex = last
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def _constant(schema: Any, model: Any, values: Sequence[float], name: str) -> int:
    """Add a constant; returns its index."""
    buffer, tensor, graph = schema.BufferT(), schema.TensorT(), model.subgraphs[0]
    buffer.data = np.frombuffer(np.asarray(values, np.float32).tobytes(), np.uint8)
    model.buffers.append(buffer)
    tensor.name, tensor.shape, tensor.type = name.encode(), [len(values)], schema.TensorType.FLOAT32
    tensor.buffer = len(model.buffers) - 1
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def _operation(schema: Any, model: Any, code: int, options: tuple[Any, int], inputs: tuple[int, int], name: str) -> int:
    """Add an operation on a tensor and a constant; returns the index of its result, of the shape of the tensor."""
    graph, tensor, operator, kind = model.subgraphs[0], schema.TensorT(), schema.OperatorT(), schema.OperatorCodeT()
    like = graph.tensors[inputs[0]]
    tensor.name, tensor.type, tensor.shape, tensor.shapeSignature = (
        name.encode(),
        schema.TensorType.FLOAT32,
        like.shape,
        like.shapeSignature,
    )
    graph.tensors.append(tensor)
    kind.builtinCode = kind.deprecatedBuiltinCode = code
    kind.version = 1
    model.operatorCodes.append(kind)
    operator.opcodeIndex = len(model.operatorCodes) - 1
    operator.inputs, operator.outputs = list(inputs), [len(graph.tensors) - 1]
    operator.builtinOptions, operator.builtinOptionsType = options
    graph.operators.append(operator)
    return len(graph.tensors) - 1
