"""What the names of operations say: the layer, the part of the step, and the name in the graph that was traced."""

import re

_MARK = re.compile(r"layer\.(\d+)\.")

_INLINED = re.compile(r"^.*/_\d+/")
"""What TensorFlow puts before the names of a function's operations: ``while/body/_1/``."""

_NO_PART = re.compile(r"^(?:gradient_tape|gradients|while|cond|body|StatefulPartitionedCall|PartitionedCall)(?:_\d+)?$")
"""Name scopes of every operation of a loop, a function or a gradient."""

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
    """The name scopes of an operation, without scopes of loops, functions and gradients, and without marks."""
    parts = [part for part in graph_name(name).split("/")[:-1] if part and not _NO_PART.match(part)]
    return tuple(part for part in parts if not _MARK.match(part))


def shown_name(name: str) -> str:
    """The name of an operation without the scopes of loops and functions, and without marks; gradients keep theirs."""
    *parts, last = graph_name(name).split("/")
    gradient = ["gradient_tape"] if "gradient_tape" in parts else []
    return "/".join([*gradient, *scopes(name), last])
