"""The costs of the operations of traced graphs: their FLOPs and the bytes of their inputs and outputs."""

from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

from accel_engine.op_profile.reduction import OperationCost
from accel_engine.private_names.tensorflow_names import function_graph
from accel_engine.training.model_analysis.flops import count_operation

_FUNCTIONS = ("body", "cond", "f", "then_branch", "else_branch")
"""Attributes with the functions that an operation runs; names in bodies come before those in conditions."""

_CHAIN = 4
"""Operations that TensorFlow fuses into one on a CPU or GPU, such as a convolution, a bias and an activation."""


class GraphCosts:
    """The costs of the operations of graphs and their functions, as the profiler names them.

    Args:
        graphs: The graphs of chunks of steps; of operations with the same name, the first one's counts.
    """

    def __init__(self, graphs: Iterable[tf.Graph]) -> None:
        self._operations: dict[str, tf.Operation] = {}
        for graph in graphs:
            for operation in _all_operations(graph):
                self._operations.setdefault(operation.name, operation)

    def __len__(self) -> int:
        return len(self._operations)

    def find(self, name: str, kind: str) -> OperationCost | None:
        """The cost of an operation.

        TensorFlow gives what it fuses the name of the last operation.

        Args:
            name: Its name in the graph of its function.
            kind: The type of the operation that runs.

        Returns:
            ``None`` if the graph has no such operation.
        """
        operation = self._operations.get(name)
        if operation is None:
            return None
        fused = _fused(operation) if "Fused" in kind and operation.type not in kind else [operation]
        counts = [count_operation(each) for each in fused]
        if len(fused) > 1 and counts[-1] == 0 and "BatchNorm" not in fused[-1].type:
            return None  # not what is known to be fused
        flops = None if None in counts else float(sum(count or 0 for count in counts))
        inside = {tensor.ref() for each in fused for tensor in each.outputs} - {t.ref() for t in operation.outputs}
        inputs = {tensor.ref(): tensor for each in fused for tensor in each.inputs if tensor.ref() not in inside}
        sizes = [_size(tensor) for tensor in (*inputs.values(), *operation.outputs)]
        return OperationCost(flops, None if None in sizes else float(sum(size or 0 for size in sizes)))


def _fused(operation: tf.Operation) -> list[tf.Operation]:
    """An operation and those before it, up to a matrix product, a convolution or a batch normalization."""
    chain = [operation]
    for _ in range(_CHAIN):
        last = chain[-1]
        if count_operation(last) or "BatchNorm" in last.type or not last.inputs:
            break
        chain.append(last.inputs[0].op)
    return chain


def _all_operations(graph: Any) -> Iterator[tf.Operation]:
    waiting, seen = [graph], set[int]()
    while waiting:
        here = waiting.pop(0)
        if id(here) in seen:
            continue
        seen.add(id(here))
        for operation in here.get_operations():
            yield operation
            for attribute in _FUNCTIONS:
                value = _function_name(operation, attribute)
                if value and (inner := function_graph(here, value)) is not None:
                    waiting.append(inner)


def _function_name(operation: tf.Operation, attribute: str) -> str:
    try:
        return str(getattr(operation.get_attr(attribute), "name", ""))
    except ValueError:  # it has no such attribute
        return ""


def _size(tensor: tf.Tensor) -> int | None:
    """Bytes of a tensor; 0 for a variable or another resource, whose values a separate operation reads."""
    if tensor.dtype in (tf.resource, tf.variant, tf.string):
        return 0
    count = tensor.shape.num_elements()
    return None if count is None else int(count * tensor.dtype.size)
