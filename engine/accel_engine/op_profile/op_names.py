"""Parses the names of operations: the layer, the part of the step, and the name in the graph that was traced."""

import re
from collections.abc import Mapping

_MARK = re.compile(r"layer\.(\d+)\.")

_INLINED = re.compile(r"^.*/_\d+/")
"""What TensorFlow puts before the names of a function's operations: ``while/body/_1/``."""

_NO_PART = re.compile(
    r"^(?:gradient_tape|gradients|while|cond|body|replica|StatefulPartitionedCall|PartitionedCall)(?:_\d+)?$"
)
"""Name scopes of every operation of a loop, a function, a gradient or a replica."""

_REPLICA = re.compile(r"^replica_\d+$")

_OPERATION = re.compile(r"[A-Za-z0-9.][\w./\\>-]*:[A-Z_]\w*")
"""How the host names the operations of TensorFlow: ``name:Type``."""


def innermost_mark(name: str) -> int | None:
    """The number of the layer that an operation belongs to; ``None`` if it belongs to no layer.

    Args:
        name: The operation's name, in a graph whose layers were marked while it was traced.
    """
    marks = _MARK.findall(name)
    return int(marks[-1]) if marks else None


def split_operation(name: str) -> tuple[str, str] | None:
    """The name and the type of an operation of TensorFlow; ``None`` for any other event of a thread."""
    if not _OPERATION.fullmatch(name):
        return None
    operation, _, kind = name.rpartition(":")
    return operation, kind


def graph_name(name: str) -> str:
    """The name that an operation had in the graph of its function, before functions were inlined."""
    return _INLINED.sub("", name)


def scopes(name: str) -> tuple[str, ...]:
    """The name scopes of an operation, without marks, and without scopes of loops, functions, gradients, replicas."""
    parts = [part for part in graph_name(name).split("/")[:-1] if part and not _NO_PART.match(part)]
    return tuple(part for part in parts if not _MARK.match(part))


def shown_name(name: str, layers: Mapping[int, str]) -> str:
    """The name of an operation without the scopes of loops and functions, and without marks.

    Gradients keep their scope, and replicas after the first one theirs. Layers have their own names, without the
    numbers that Keras appends where a name repeats, and without the scope of the model.

    Args:
        name: The name.
        layers: The names of the model's layers by the numbers in marks; empty where layers are not marked.
    """
    *parts, last = graph_name(name).split("/")
    kept = [each for each in dict.fromkeys(parts) if each == "gradient_tape" or _REPLICA.match(each)]
    marks = [(place, _MARK.match(part)) for place, part in enumerate(parts)]
    known = [(place, layers[int(mark[1])]) for place, mark in marks if mark and int(mark[1]) in layers]
    if known:
        after = scopes("/".join([*parts[known[-1][0] + 1 :], last]))
        inside = after[after[:1] == (known[-1][1],) :]  # some layers begin a scope of their name themselves
        return "/".join([*kept, *(layer for _, layer in known), *inside, last])
    return "/".join([*kept, *scopes(name), last])
