"""Makes a value of any type that messages can have, from its annotations alone."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from accel_engine.json_values import Number
from accel_engine.plan import Plan

PLAIN: dict[Any, Any] = {
    bool: True,
    int: 7,
    float: math.nan,
    Number: math.nan,
    str: "é\udcff\x1b[2J[/]",  # the name of a file in no encoding, with a control sequence
    bytes: b"\0\xff",
    Path: Path("/a\udcff"),
    Any: {"a": [1, None]},
}


def sample(kind: Any) -> Any:
    """A value of a type."""
    if kind is Plan:
        return Plan(name="é")
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{item.name: sample(hints[item.name]) for item in fields(kind)})  # type: ignore[operator]
    if hasattr(kind, "_fields"):
        return kind(**{name: sample(each) for name, each in get_type_hints(kind).items()})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        return tuple(sample(each) for each in arguments if each is not ...)
    if origin in (dict, Mapping):
        return {sample(arguments[0]): sample(arguments[1])}
    if origin is np.ndarray:
        return np.array([[0.5, np.inf]], np.float32)
    if origin in (Union, UnionType):
        kind = next(each for each in arguments if each is not NoneType)
        return None if hasattr(kind, "_fields") else sample(kind)  # a named tuple of arrays, which is never sent
    return arguments[0] if origin is Literal else PLAIN[kind]
