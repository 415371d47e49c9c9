"""How many floating-point operations a training step is, counted in its traced graph without running anything.

What counts are the multiplications and additions of matrix products and convolutions, two operations
for each pair, as in the definition of model FLOPs utilization (Chowdhery et al., "PaLM", 2022,
appendix B): they are what the peak of a device is stated for. The graph that is counted is that of
training, so gradients are in it as they are: not a multiple of the forward pass, since the first
layer has no gradient of its input, and frozen layers have none of their weights. Padding counts as
if it were data. What nothing depends on is never run, and does not count.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from accel_engine.training.worker_data import reads_examples

_CALLS = {
    **dict.fromkeys(("PartitionedCall", "StatefulPartitionedCall"), ("f",)),
    **dict.fromkeys(("If", "StatelessIf"), ("then_branch", "else_branch")),
}
"""Operations that run one of some functions, and the attributes that name these."""

_LOOPS = {"While", "StatelessWhile"}
_TURNS = re.compile(r"(?:^|/)turns\.(\d+)(?:_\d+)?$")

_MATRIX_PRODUCTS = {
    "MatMul": "transpose_a",
    "BatchMatMul": "adj_x",
    "BatchMatMulV2": "adj_x",
    "BatchMatMulV3": "adj_x",
}
"""Products of matrices, and the attribute that says whether the first one is transposed."""

_OPAQUE = {
    *("Case", "StatelessCase", "XlaConvV2", "XlaDotV2", "XlaCustomCallV2", "SparseTensorDenseMatMul", "SparseMatMul"),
    *("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3", "SymbolicGradient", "RemoteCall"),
    *("PyFunc", "PyFuncStateless", "EagerPyFunc"),
}
"""Operations that may hold products whose number the graph does not tell."""


class _Uncountable(Exception):  # noqa: N818 (an answer, not an error)
    """The graph does not tell; why."""


@dataclass(frozen=True, slots=True)
class Count:
    """What was counted.

    Attributes:
        flops: Floating-point operations; ``None`` where they cannot be counted.
        reason: Why they cannot.
        parts: The operations of each product and convolution, by its name within those of what calls it.
    """

    flops: float | None
    reason: str = ""
    parts: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)


def count(graph: tf.Graph, *, chunk: bool) -> Count:
    """Count the work of a step, on all replicas that its graph holds.

    Args:
        graph: Of a concrete function.
        chunk: Whether that is a chunk of steps, whose loop is counted as one turn, and not a single step.
    """
    try:
        parts = _work(graph, inside_loop=not chunk)
        return Count(float(parts.total()), parts=parts)
    except _Uncountable as why:
        return Count(None, str(why))


def loop_name(turns: int) -> str:
    """What to call a loop, so that it is known how often it turns."""
    return f"turns.{turns}"


def _turns(loop: tf.Operation) -> int | None:
    found = _TURNS.search(loop.name)
    return int(found[1]) if found else None


def _work(graph: Any, outputs: Collection[int] | None = None, *, inside_loop: bool, within: str = "") -> Counter[str]:
    """The work that a graph, or what is needed for some of its outputs, is; by the names of operations."""
    total = Counter[str]()
    for operation, used in _needed(graph, outputs).items():
        kind = operation.type
        name = f"{within}{operation.name}"
        if measure := _MEASURES.get(kind):
            total[name] += measure(operation)
        elif names := _CALLS.get(kind):
            called = [_function(operation, attribute) for attribute in names]
            works = [_work(each, used, inside_loop=inside_loop, within=f"{name}/") for each in called]
            # Of branches, the one that does the work is nearly always the larger one.
            largest = max(works, key=Counter.total)
            total += largest
        elif kind in _LOOPS:
            turn = _work(_function(operation, "body"), inside_loop=True, within=f"{name}/")
            times = _turns(operation) or (None if inside_loop else 1)
            if turn and times is None:
                raise _Uncountable("the model has a loop, and how often it turns is not in the graph")
            total += Counter({part: work * (times or 0) for part, work in turn.items()})
        elif kind in _OPAQUE and not reads_examples(operation):
            raise _Uncountable(f"the graph does not tell what its operation {kind} does")
    return total


def _needed(graph: Any, outputs: Collection[int] | None) -> dict[tf.Operation, set[int]]:
    """The operations without which a function could not give back what it does, nor do what it does beside that.

    Args:
        graph: The function's.
        outputs: Which outputs somebody uses; ``None`` for all.

    Returns:
        For each operation, which of its outputs are used.
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
    name, graph = operation.get_attr(attribute).name, operation.graph
    while graph is not None:
        # There is no public way to a function of a graph that keeps the shapes of its variables.
        find = getattr(graph, "_get_function", None)
        found = find(name) if find else None
        if found is not None and hasattr(found, "graph"):
            return found.graph
        graph = getattr(graph, "outer_graph", None)
    raise _Uncountable(f"the graph does not hold its function {name}")


def _sides(tensor: tf.Tensor) -> tuple[int, ...]:
    """A tensor's shape, which has to be known."""
    if not tensor.shape.is_fully_defined():
        raise _Uncountable(f"the shape of {tensor.op.name} is not known before it runs")
    return tuple(tensor.shape)


def _matrix_product(operation: tf.Operation) -> int:
    first = _sides(operation.inputs[0])
    inner = first[-2] if operation.get_attr(_MATRIX_PRODUCTS[operation.type]) else first[-1]
    return 2 * math.prod(_sides(operation.outputs[0])) * inner


def _convolution(operation: tf.Operation) -> int:
    """``filter`` is ``[*window, channels of a group, outputs]``: each output is a product over all but the last."""
    return 2 * math.prod(_sides(operation.outputs[0])) * math.prod(_sides(operation.inputs[1])[:-1])


def _convolution_by_input(operation: tf.Operation) -> int:
    """The gradient of a convolution's input, or a transposed convolution: as many products as the convolution."""
    return 2 * math.prod(_sides(operation.inputs[2])) * math.prod(_sides(operation.inputs[1])[:-1])


def _convolution_by_filter(operation: tf.Operation) -> int:
    return 2 * math.prod(_sides(operation.inputs[2])) * math.prod(_sides(operation.outputs[0])[:-1])


def _depthwise(operation: tf.Operation) -> int:
    """``filter`` is ``[height, width, channels, multiplier]``: each output is a product over its window."""
    return 2 * math.prod(_sides(operation.outputs[0])) * math.prod(_sides(operation.inputs[1])[:2])


def _depthwise_by_input(operation: tf.Operation) -> int:
    return 2 * math.prod(_sides(operation.inputs[2])) * math.prod(_sides(operation.inputs[1])[:2])


def _depthwise_by_filter(operation: tf.Operation) -> int:
    return 2 * math.prod(_sides(operation.inputs[2])) * math.prod(_sides(operation.outputs[0])[:2])


def _einsum(operation: tf.Operation) -> int:
    """A product over every combination of the letters that two operands share or the output has."""
    terms, output = operation.get_attr("equation").decode().split("->")
    lengths: dict[str, int] = {}
    shared: Counter[str] = Counter()
    for term, tensor in zip(terms.split(","), operation.inputs, strict=True):
        letters = _letters(term, len(_sides(tensor)))
        shared.update(set(letters))
        for letter, side in zip(letters, _sides(tensor), strict=True):
            lengths[letter] = max(lengths.get(letter, 1), side)  # a side of 1 is repeated as often as the other's
    if len(operation.inputs) == 1:
        return 0
    outer = set(_letters(output, len(_sides(operation.outputs[0]))))
    # A letter of one operand only is summed over before anything is multiplied.
    return 2 * math.prod(side for letter, side in lengths.items() if letter in outer or shared[letter] > 1)


def _letters(term: str, rank: int) -> list[str]:
    """A name for each side, those of an ellipsis counted from its end: ``b...d`` of rank 4 is b, -2, -1, d."""
    before, ellipsis, after = term.replace(" ", "").partition("...")
    hidden = rank - len(before) - len(after) if ellipsis else 0
    return [*before, *(str(side) for side in range(-hidden, 0)), *after]


_MEASURES = {
    **dict.fromkeys(_MATRIX_PRODUCTS, _matrix_product),
    "Einsum": _einsum,
    "Conv2D": _convolution,
    "Conv3D": _convolution,
    "Conv2DBackpropInput": _convolution_by_input,
    "Conv3DBackpropInputV2": _convolution_by_input,
    "Conv2DBackpropFilter": _convolution_by_filter,
    "Conv3DBackpropFilterV2": _convolution_by_filter,
    "DepthwiseConv2dNative": _depthwise,
    "DepthwiseConv2dNativeBackpropInput": _depthwise_by_input,
    "DepthwiseConv2dNativeBackpropFilter": _depthwise_by_filter,
}
