"""Encodes values as JSON and decodes them: what is stored, and what processes send each other.

The annotations of a frozen dataclass say what its fields may have: :func:`encode` writes one, :func:`decode` reads it
and checks all that it has with msgspec, as a file that another program wrote, or that is damaged, may have anything in
their place. Everything that is wrong with a text is a :exc:`JsonValueError`. Unknown fields are ignored.

Two rules are not msgspec's own. JSON has neither NaN nor infinity: :func:`encode` writes ``null``, and a
:data:`Number` reads that as NaN. And a text may have lone surrogates, as names of files have, which msgspec's own JSON
refuses: Python's ``json`` reads and writes the text, and msgspec what is in it.
"""

import json
import math
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import msgspec

MAX_INTEGER = 1 << 53
"""The largest integer that all programs read exactly from JSON; counts and steps are far below."""

MAX_TEXT = 1 << 16
"""Characters of the longest text of a field."""

MAX_DEPTH = 20
"""Levels of the deepest :data:`JsonValue`."""

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]
"""A whole number from 0."""

Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
"""A text of at most :data:`MAX_TEXT` characters."""


class OfHook(type):
    """The class of a type that msgspec does not know: it passes values to a hook, and takes what that returns."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


if TYPE_CHECKING:
    Number: TypeAlias = float
    JsonValue: TypeAlias = Any
else:

    class Number(metaclass=OfHook):
        """A number that was finite, or NaN for one that was not. Infinities are refused."""

    class JsonValue(metaclass=OfHook):
        """Any value of JSON, with at most :data:`MAX_DEPTH` levels."""


Hook: TypeAlias = Callable[[Any, Any], Any]
"""Returns a value of a type that msgspec does not know, given the type and the value of JSON.

Raises:
    ValueError: The value cannot be of this type.
"""

T = TypeVar("T")

_HELD = "value"
"""The only field of a :func:`_holder`."""

_LARGEST = sys.float_info.max


class JsonValueError(ValueError):
    """A text that is not JSON, or a value of another type than expected."""


def encode(value: object, longest: int = sys.maxsize) -> str:
    """Format a value as one line of JSON; see :func:`to_plain`."""
    return json.dumps(to_plain(value, longest), separators=(",", ":"))


def decode(text: object, kind: type[T], hook: Hook | None = None) -> T:
    """Parse a value that :func:`encode` formatted.

    Args:
        text: The text.
        kind: Its type.
        hook: Converts values of types that msgspec does not know.

    Raises:
        JsonValueError: The text is not JSON, or not a value of this type.
    """
    return convert(_parse(text), kind, hook)


def decode_file(path: Path, kind: type[T]) -> T | None:
    """The value in a file; ``None`` if the file is missing, or has no such value."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return decode_or_none(text, kind)


def decode_or_none(text: object, kind: type[T]) -> T | None:
    """Parse a value as :func:`decode` does; ``None`` if it is not of the type."""
    try:
        return decode(text, kind)
    except JsonValueError:
        return None


def parse_object(text: object) -> dict[str, Any]:
    """Parse a JSON object of any form.

    Raises:
        JsonValueError: The text is not a JSON object.
    """
    values = _parse(text)
    if not isinstance(values, dict):
        raise JsonValueError("it is not a JSON object")
    return values


def convert(values: object, kind: type[T], hook: Hook | None = None) -> T:
    """Convert parsed JSON to a type, as :func:`decode` does.

    Raises:
        JsonValueError: The values are not of this type.
    """
    own = partial(_convert, hook)
    try:
        if isinstance(kind, type):
            return msgspec.convert(values, kind, dec_hook=own, str_keys=True)
        converted: T = msgspec.convert({_HELD: values}, _holder(kind), dec_hook=own, str_keys=True).value
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:  # the first is no ValueError before 0.21
        raise JsonValueError(str(error).replace(f"$.{_HELD}", "$")) from error
    return converted


@cache
def _holder(kind: Any) -> Any:
    """A class that has a value of a type that is not a class: msgspec caches only for classes how to check them."""
    return msgspec.defstruct("Holder", [(_HELD, kind)])


def convert_or_none(values: object, kind: type[T]) -> T | None:
    """Convert parsed JSON as :func:`convert` does; ``None`` if it is not of the type."""
    try:
        return convert(values, kind)
    except JsonValueError:
        return None


def to_plain(value: object, longest: int = sys.maxsize) -> Any:
    """Convert a value to types of JSON.

    NaN and infinities become ``None``, and longer texts are cut.

    Args:
        value: A dataclass, a dictionary, a list and so on.
        longest: Characters of the longest text.
    """
    return _bounded(msgspec.to_builtins(value, enc_hook=_built_in), longest)


def _parse(text: object) -> Any:
    if not isinstance(text, str):
        raise JsonValueError(f"JSON is text, not {type(text).__name__}")
    try:
        return msgspec.json.decode(text)  # six times as fast, but knows neither NaN nor single surrogates
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _parse_any(text)


def _parse_any(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise JsonValueError(str(error)) from None
    except RecursionError:
        raise JsonValueError("it is nested too deeply") from None


def _shallow(value: Any, depth: int = MAX_DEPTH) -> Any:
    if depth == 0:
        raise JsonValueError("it is nested too deeply")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(item, dict | list):
            _shallow(item, depth - 1)
    return value


def json_number(value: float | None) -> float | None:
    """A number as JSON can have it, which has neither NaN nor infinity: ``None`` for these, and for none."""
    return float(value) if value is not None and math.isfinite(value) else None


def _convert(hook: Hook | None, kind: Any, value: Any) -> Any:
    """The hook of msgspec."""
    if kind is Number:
        return _number(value)
    if kind is JsonValue:
        return _shallow(value)
    if hook is None:
        raise TypeError(f"JSON has no {kind}")
    return hook(kind, value)


def _number(value: Any) -> float:
    if value is None:
        return math.nan
    if type(value) is not float and type(value) is not int:
        raise JsonValueError("it is not a number")
    if not -_LARGEST <= value <= _LARGEST and value == value:  # NaN is not equal to itself
        raise JsonValueError("it is too large")
    return value


def _built_in(value: Any) -> Any:
    """A value of a class derived from one of Python's, such as NumPy's ``float64``."""
    kinds: tuple[type, ...] = (float, int, str)
    for kind in kinds:
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"JSON has no {type(value).__name__}")


def _bounded(value: Any, longest: int) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case str() if len(value) > longest:
            return f"{value[: longest - 1]}…"
        case dict():
            return {key: _bounded(item, longest) for key, item in value.items()}
        case list() | tuple():
            return [_bounded(item, longest) for item in value]
    return value
