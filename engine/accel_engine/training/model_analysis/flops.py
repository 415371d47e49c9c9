"""Counts the floating-point operations of a training step in its traced graph, without running it.

The multiplications and additions of matrix products and convolutions count, as in the definition of model FLOPs
utilization (Chowdhery et al., "PaLM", 2022, appendix B): a device's peak is stated for these. The graph is the one of
training, so gradients count as they are, not as a multiple of the forward pass: the first layer has no gradient of
its input, and frozen layers have none of their weights. Padding counts as data. Operations that are pruned before
execution do not count.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from accel_engine.private_names.tensorflow_names import WORKER_EXAMPLES, function_graph

_CALLS = {
    **dict.fromkeys(("PartitionedCall", "StatefulPartitionedCall"), ("f",)),
    **dict.fromkeys(("If", "StatelessIf"), ("then_branch", "else_branch")),
}
"""Operations that call one of several functions, and the attributes that name these."""

_LOOPS = {"While", "StatelessWhile"}
_ITERATIONS = re.compile(r"(?:^|/)iterations\.(\d+)(?:_\d+)?$")

_MATRIX_PRODUCTS = {
    "MatMul": "transpose_a",
    "BatchMatMul": "adj_x",
    "BatchMatMulV2": "adj_x",
    "BatchMatMulV3": "adj_x",
}
"""Matrix products, and the attribute that transposes the first matrix."""

_CONVOLUTIONS = (
    *("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"),
    *("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"),
    *("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"),
)

_OPAQUE = {
    *("Case", "StatelessCase", "XlaConvV2", "XlaDotV2", "XlaCustomCallV2", "SparseTensorDenseMatMul", "SparseMatMul"),
    *("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3", "SymbolicGradient", "RemoteCall"),
    *("PyFunc", "PyFuncStateless", "EagerPyFunc"),
}
"""Operations that may contain products which cannot be counted in the graph."""


UNCOUNTED = "not.of.the.model"
"""Name scope of operations that are not part of the model, such as an augmentation."""


RECOMPUTED = "recomputed.part"
"""Name scope of operations that repeat others, by rematerialization: a model's operations count once."""


class _Uncountable(Exception):  # noqa: N818 (an answer, not an error)
    """The operations cannot be counted; the message says why."""


@dataclass(frozen=True, slots=True)
class FlopCount:
    """The operations of a step."""

    flops: float | None
    """Floating-point operations; ``None`` where they cannot be counted."""
    reason: str = ""
    """Why they cannot be counted."""
    parts: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)
    """The operations of each product and convolution, by its name, prefixed with the names of its callers."""


def count_flops(graph: tf.Graph, *, chunk: bool) -> FlopCount:
    """Count the operations of a step, on all replicas in its graph.

    Args:
        graph: The graph of a concrete function.
        chunk: Whether it is a chunk of steps, of whose loop one iteration counts, rather than a single step.
    """
    try:
        parts = _count_graph(graph, inside_loop=not chunk)
        return FlopCount(float(parts.total()), parts=parts)
    except _Uncountable as why:
        return FlopCount(None, str(why))


def count_operation(operation: tf.Operation) -> int | None:
    """The floating-point operations of a matrix product or a convolution, 0 of others; ``None`` if unknown."""
    measure = _COUNTERS.get(operation.type)
    try:
        return measure(operation) if measure else 0
    except _Uncountable:
        return None


def loop_name(iterations: int) -> str:
    """The name to give a loop in the graph, so that its iterations can be counted."""
    return f"iterations.{iterations}"


def _iterations(loop: tf.Operation) -> int | None:
    found = _ITERATIONS.search(loop.name)
    return int(found[1]) if found else None


def _count_graph(
    graph: Any, outputs: Collection[int] | None = None, *, inside_loop: bool, within: str = ""
) -> Counter[str]:
    """The floating-point operations of a graph, or of some of its outputs, by name."""
    total = Counter[str]()
    for operation, used in _needed(graph, outputs).items():
        kind = operation.type
        name = f"{within}{operation.name}"
        if UNCOUNTED in name or operation.name.startswith(f"{RECOMPUTED}/"):
            continue
        if measure := _COUNTERS.get(kind):
            total[name] += measure(operation)
        elif names := _CALLS.get(kind):
            called = [_function(operation, attribute) for attribute in names]
            works = [_count_graph(each, used, inside_loop=inside_loop, within=f"{name}/") for each in called]
            # Of branches, assume the one with more operations.
            largest = max(works, key=Counter.total)
            total += largest
        elif kind in _LOOPS:
            iteration = _count_graph(_function(operation, "body"), inside_loop=True, within=f"{name}/")
            times = _iterations(operation) or (None if inside_loop else 1)
            if iteration and times is None:
                raise _Uncountable("the model has a loop, whose number of iterations is not in the graph")
            total += Counter({part: work * (times or 0) for part, work in iteration.items()})
        elif kind in _OPAQUE and not _reads_examples(operation):
            raise _Uncountable(f"the graph contains {kind}, whose operations cannot be counted")
    return total


def _reads_examples(operation: tf.Operation) -> bool:
    kind: str = operation.type
    return kind == "PyFunc" and bool(operation.get_attr("token") == WORKER_EXAMPLES.encode())


def _needed(graph: Any, outputs: Collection[int] | None) -> dict[tf.Operation, set[int]]:
    """The operations that a function's outputs and side effects depend on.

    Args:
        graph: The function's graph.
        outputs: The indices of the outputs in use; ``None`` for all.

    Returns:
        For each operation, the indices of its outputs in use.
    """
    needed: dict[tf.Operation, set[int]] = {}
    waiting: list[tf.Operation] = []

    def need(tensors: Iterable[tf.Tensor], operations: Iterable[tf.Operation]) -> None:
        before = [(tensor.op, {tensor.value_index}) for tensor in tensors]
        for operation, used in (*before, *((operation, set[int]()) for operation in operations)):
            if operation not in needed:
                needed[operation] = set()
                waiting.append(operation)
            needed[operation] |= used

    need(
        [tensor for index, tensor in enumerate(graph.outputs) if outputs is None or index in outputs],
        graph.control_outputs,
    )
    while waiting:
        operation = waiting.pop()
        need(operation.inputs, operation.control_inputs)
    return needed


def _function(operation: tf.Operation, attribute: str) -> Any:
    """The graph of a function that an operation calls."""
    name = operation.get_attr(attribute).name
    if (found := function_graph(operation.graph, name)) is None:
        raise _Uncountable(f"the graph does not contain its function {name}")
    return found


def _static_shape(tensor: tf.Tensor) -> tuple[int, ...]:
    """A tensor's shape; raises if it is not static."""
    if not tensor.shape.is_fully_defined():
        raise _Uncountable(f"the shape of {tensor.op.name} is not static")
    return tuple(tensor.shape)


def _matrix_product(operation: tf.Operation) -> int:
    first = _static_shape(operation.inputs[0])
    inner = first[-2] if operation.get_attr(_MATRIX_PRODUCTS[operation.type]) else first[-1]
    return 2 * math.prod(_static_shape(operation.outputs[0])) * inner


def _convolution(operation: tf.Operation) -> int:
    """Each output is a product over a window of the filter; gradients have as many products as the convolution.

    ``filter`` is ``[*window, channels of a group, outputs]``, of a depthwise convolution
    ``[height, width, channels, multiplier]``.
    """
    kind = operation.type
    outputs = operation.inputs[2] if "Backprop" in kind else operation.outputs[0]
    weights = operation.outputs[0] if "BackpropFilter" in kind else operation.inputs[1]
    window = 2 if "Depthwise" in kind else -1
    return 2 * math.prod(_static_shape(outputs)) * math.prod(_static_shape(weights)[:window])


def _einsum(operation: tf.Operation) -> int:
    """A product over every combination of the letters that both operands share or that the output has."""
    terms, output = operation.get_attr("equation").decode().split("->")
    lengths: dict[str, int] = {}
    shared: Counter[str] = Counter()
    for term, tensor in zip(terms.split(","), operation.inputs, strict=True):
        letters = _letters(term, len(_static_shape(tensor)))
        shared.update(set(letters))
        for letter, side in zip(letters, _static_shape(tensor), strict=True):
            lengths[letter] = max(lengths.get(letter, 1), side)  # a dimension of 1 is broadcast
    if len(operation.inputs) == 1:
        return 0
    outer = set(_letters(output, len(_static_shape(operation.outputs[0]))))
    # A letter of one operand only is summed over before the product.
    return 2 * math.prod(side for letter, side in lengths.items() if letter in outer or shared[letter] > 1)


def _letters(term: str, rank: int) -> list[str]:
    """A name for each dimension, in an ellipsis counted from its end: ``b...d`` of rank 4 is b, -2, -1, d."""
    before, ellipsis, after = term.replace(" ", "").partition("...")
    hidden = rank - len(before) - len(after) if ellipsis else 0
    return [*before, *(str(side) for side in range(-hidden, 0)), *after]


_COUNTERS = {
    **dict.fromkeys(_MATRIX_PRODUCTS, _matrix_product),
    "Einsum": _einsum,
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
}
