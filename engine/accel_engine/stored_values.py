"""Checks values that were stored as JSON against the types of the fields that they are read into.

A file that another program wrote, or that is damaged, may have anything in their place.
"""

import json
import math
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints

MAX_INTEGER = 1 << 53
"""The largest integer that all programs read exactly from JSON; counts and steps are far below."""

MAX_TEXT = 1 << 16
"""Characters of the longest text of a field."""

MAX_DEPTH = 20
"""Levels of the deepest value of a field of any type."""

T = TypeVar("T")


def json_number(value: float | None) -> float | None:
    """A number as JSON can have it, which has neither NaN nor infinity: ``None`` for these, and for none."""
    return float(value) if value is not None and math.isfinite(value) else None


class StoredValueError(ValueError):
    """A value that cannot be what it is stored as."""


Check = Callable[[Any], Any]
"""Returns a value in the type of its field, or raises :exc:`StoredValueError`."""


def _refuse(constant: str) -> None:
    raise StoredValueError(f"JSON has no {constant}")


_STRICT = json.JSONDecoder(parse_constant=_refuse)
_LENIENT = json.JSONDecoder()


def parse(text: object, *, constants: bool = False) -> Any:
    """Parse JSON.

    Args:
        text: The text.
        constants: Whether it may have NaN and infinities, which are no JSON but which Python writes.

    Raises:
        StoredValueError: It is no JSON, or nested too deeply.
    """
    if not isinstance(text, str):
        raise StoredValueError(f"JSON is text, not {type(text).__name__}")
    try:
        return (_LENIENT if constants else _STRICT).decode(text)
    except RecursionError:
        raise StoredValueError("it is nested too deeply") from None


def parse_object(text: object, *, constants: bool = False) -> dict[str, Any]:
    """Parse a JSON object; see :func:`parse`.

    Raises:
        StoredValueError: It is none.
    """
    values = parse(text, constants=constants)
    if not isinstance(values, dict):
        raise StoredValueError("it is no JSON object")
    return values


def make(kind: type[T], values: Mapping[str, Any]) -> T:
    """Make a dataclass of its fields, ignoring unknown ones.

    Raises:
        StoredValueError: A field is missing, or has a value that it cannot have.
    """
    checks = _field_checks(cast("Any", kind))
    try:
        return kind(**{name: check(values[name]) for name, check in checks.items() if name in values})
    except TypeError as error:
        raise StoredValueError(str(error)) from None


class StoredObject:
    """A dataclass that is stored as a line of JSON."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: object) -> Self | None:
        """Parse the output of :meth:`to_json`; ``None`` if it is invalid."""
        try:
            return make(cls, parse_object(text))
        except ValueError:
            return None

    def to_json(self) -> str:
        """Format as one line of JSON."""
        return json.dumps(asdict(cast("Any", self)))


@cache
def check_of(kind: Any) -> Check:
    """The check of an annotation: a plain type, an enum, a dataclass, an array, or a tuple, dictionary or union."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _union(tuple(map(check_of, arguments)))
    if origin is tuple:
        return _tuple(arguments)
    if origin in (dict, Mapping):
        return _dictionary(_field_check(arguments[1]))
    if isinstance(kind, type) and is_dataclass(kind):
        made: type = kind
        return lambda value: value if isinstance(value, made) else make(made, _mapping(value))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    (number,) = get_args(arguments[1])  # NumPy's NDArray[number] is ndarray[shape, dtype[number]]
    return lambda value: _array(value, origin, number)


@cache
def _field_checks(kind: Any) -> Mapping[str, Check]:
    hints = get_type_hints(kind)
    return {item.name: _field_check(hints[item.name]) for item in fields(kind)}


def _field_check(kind: Any) -> Check:
    """The check of a value with a name; a number that is not finite was stored as null."""
    return _or_nan(number) if kind is float else check_of(kind)


def decompressed(body: object, size: int) -> bytes:
    """Decompress bytes with zlib, in no more memory than they should take.

    Raises:
        StoredValueError: They are damaged, or have another size.
    """
    if not isinstance(body, bytes):
        raise StoredValueError(f"its body is {type(body).__name__}")
    try:
        data = zlib.decompressobj().decompress(body, size + 1)
    except zlib.error as error:
        raise StoredValueError(f"its body is damaged: {error}") from error
    if len(data) != size:
        raise StoredValueError(f"its body has another size than {size} bytes")
    return data


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise StoredValueError("it is no text, or too long")
    return value


def _integer(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_INTEGER:
        raise StoredValueError("it is no whole number from 0, or too large")
    return value


def number(value: Any) -> float:
    """Check a number, which may be NaN, as that is stored otherwise."""
    if type(value) not in (int, float) or abs(value) > sys.float_info.max:
        raise StoredValueError("it is no number, or too large")  # this also refuses infinities
    return value  # type: ignore[no-any-return]


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise StoredValueError("it is neither true nor false")
    return value


def _nothing(value: Any) -> None:
    if value is not None:
        raise StoredValueError("it is not null")


def shallow(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Check a value of any type.

    Raises:
        StoredValueError: It has more than ``depth`` levels.
    """
    if depth == 0:
        raise StoredValueError("it is nested too deeply")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(item, dict | list):
            shallow(item, depth - 1)
    return value


_PLAIN: dict[Any, Check] = {
    str: _text,
    int: _integer,
    float: number,
    bool: _boolean,
    NoneType: _nothing,
    Any: shallow,
}


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise StoredValueError("it is no object")
    return value


def _union(checks: tuple[Check, ...]) -> Check:
    def check(value: Any) -> Any:
        for each in checks:
            try:
                return each(value)
            except ValueError as error:
                problem = error
        raise problem

    return check


def _tuple(kinds: tuple[Any, ...]) -> Check:
    repeated = kinds[-1] is ...
    checks = tuple(check_of(kind) for kind in kinds if kind is not ...)

    def check(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise StoredValueError("it is no list")
        if repeated:
            return tuple(map(checks[0], value))
        return tuple(each(item) for each, item in zip(checks, value, strict=True))

    return check


def _dictionary(of_values: Check) -> Check:
    return lambda value: {name: of_values(item) for name, item in _mapping(value).items()}


def _or_nan(check: Check) -> Check:
    """A check of numbers of which those that are not finite were stored as null."""
    return lambda value: math.nan if value is None else check(value)


def _array(value: Any, kind: Any, of: Any) -> Any:
    if not isinstance(value, kind) or value.dtype.type is not of:
        raise StoredValueError("it is no array of its type")
    return value
