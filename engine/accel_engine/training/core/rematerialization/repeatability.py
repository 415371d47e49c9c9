"""Finds operations that would do something else, or something twice, if they are computed again."""

from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

from accel_engine.private_names.tensorflow_names import function_graph

_FUNCTIONS = ("body", "cond", "then_branch", "else_branch", "f")
"""Attributes that name functions which an operation calls."""

_RANDOM = ("Random", "TruncatedNormal", "Multinomial", "ParameterizedTruncatedNormal")
_STATEFUL_RANDOM = ("StatefulStandardNormal", "StatefulUniform", "StatefulTruncatedNormal", "StatefulRandom")
_ASSIGNMENTS = ("Assign", "ResourceScatter", "ResourceApply")
"""How the types begin of operations that draw from TensorFlow's own generators, or change a variable."""


def unrepeatable(operations: Iterable[tf.Operation]) -> Iterator[str]:
    """Yield the types of operations that must not be computed again, also in functions that they call."""
    for operation in operations:
        if operation.type.startswith((*_RANDOM, *_STATEFUL_RANDOM, *_ASSIGNMENTS)):
            yield operation.type
        for attribute in {each.name for each in operation.op_def.attr} & set(_FUNCTIONS):
            yield from unrepeatable(_called(operation, attribute))


def _called(operation: tf.Operation, attribute: str) -> list[tf.Operation]:
    """The operations of a function that an operation calls; none if its graph is unknown."""
    name = getattr(operation.get_attr(attribute), "name", "")
    graph: Any = operation.graph
    while graph is not None:
        if (found := function_graph(graph, name)) is not None:
            return list(found.get_operations())
        graph = getattr(graph, "outer_graph", None)
    return []
