"""The parameters of a search as text, such as ``learning_rate=1e-4..1e-1:log``, and the points of their space."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from accel_engine.errors import FieldValue, PlanError, UsageError
from accel_engine.plan import SPECS, USES
from accel_engine.plan.field_spec import AUTO, FieldSpec
from accel_engine.plan.plan import unknown_field
from accel_engine.search.definition import Parameter

RANGE = ".."
"""Between the ends of a range."""

LIST = "+"
"""Between the names of one choice of a field that is a list: ``augmentation=light,flip+crop``."""

EXAMPLE = "learning_rate=1e-4..1e-1:log, batch_size=32,64,128 or epochs=5..20"


def parse_over(text: str) -> Parameter:
    """Parse the text of an option ``--over``.

    Raises:
        UsageError: The text has no ``=``, or no field before it.
        PlanError: The field is unknown or cannot vary, or its values are not allowed.
    """
    name, equals, values = text.partition("=")
    name = name.strip().removeprefix("--").replace("-", "_")
    if not equals or not name:
        raise UsageError(f"{text!r} is not a range of a field: use FIELD=VALUES, such as {EXAMPLE}")
    return parameter_of(name, values.strip())


def parse_all(texts: Iterable[str]) -> tuple[Parameter, ...]:
    """Parse the texts of several options ``--over``.

    Raises:
        UsageError: There is no text, or a field has two ranges.
        PlanError: As :func:`parse_over`.
    """
    return check_several([parse_over(text) for text in texts])


def check_several(parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Check the parameters of one search.

    Raises:
        UsageError: There is no parameter, or a field has two ranges.
    """
    names = [each.name for each in parameters]
    if not names:
        raise UsageError(f"nothing varies: give at least one --over, such as {EXAMPLE}")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{twice} has two ranges: give one --over {twice}=...")
    return tuple(parameters)


def parameter_of(name: str, values: object) -> Parameter:
    """Make a parameter of a field and its values.

    Args:
        name: The field.
        values: A text as after the ``=`` of ``--over``, or a list of choices.

    Raises:
        PlanError: The field is unknown or cannot vary, or its values are not allowed.
    """
    if name not in SPECS:
        raise unknown_field(name, values)
    if reason := USES[name].fixed:
        raise PlanError(name, values, f"cannot vary in a search: {reason}")
    if isinstance(values, list | tuple):
        return _choices(name, values, [SPECS[name].check(name, value) for value in values])
    if not isinstance(values, str):
        raise PlanError(name, values, f"must be a range or a list of values, such as {EXAMPLE}")
    if RANGE in values and SPECS[name].type in (int, float):
        return _range(name, values)
    words = [word.strip() for word in values.split(",")]
    if not values or not all(words):
        raise PlanError(name, values, f"has an empty value: use values between commas, such as {EXAMPLE}")
    return _choices(name, values, [_parse(name, word) for word in words])


def format_over(parameter: Parameter) -> str:
    """Format a parameter as the text of ``--over``."""
    return f"{parameter.name}={format_values(parameter)}"


def format_values(parameter: Parameter) -> str:
    """Format the values of a parameter, as after the ``=`` of ``--over``."""
    if parameter.choices:
        none_word = SPECS[parameter.name].none_word
        return ",".join(none_word if choice in (None, []) else format_value(choice) for choice in parameter.choices)
    log = ":log" if parameter.log else ""
    step = f":step={format_value(parameter.step)}" if parameter.step is not None else ""
    return f"{format_value(parameter.low)}{RANGE}{format_value(parameter.high)}{log}{step}"


def format_value(value: Any) -> str:
    """Format one value of a field."""
    if value is None or value == [] or value == ():
        return AUTO
    if isinstance(value, list | tuple):
        return LIST.join(value)
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)


def _parse(name: str, word: str) -> Any:
    """A value of a field, in types of JSON."""
    value = SPECS[name].parse(name, word.replace(LIST, ",") if SPECS[name].type is tuple else word)
    return list(value) if isinstance(value, tuple) else value


def _choices(name: str, given: object, values: Sequence[Any]) -> Parameter:
    plain = [list(value) if isinstance(value, tuple) else value for value in values]
    if len(plain) < 2:
        raise _single(name, given, plain[0] if plain else None)
    if twice := [value for index, value in enumerate(plain) if value in plain[:index]]:
        raise PlanError(name, given, f"has {format_value(twice[0])} twice")
    return Parameter(name, choices=tuple(plain))


def _single(name: str, given: object, value: Any) -> PlanError:
    if value is None:
        return PlanError(name, given, f"has no values: use a range or several values, such as {EXAMPLE}")
    return PlanError(
        name,
        given,
        "has only one value: to keep it the same in all trials, use ",
        FieldValue(name, format_value(value)),
    )


def _range(name: str, text: str) -> Parameter:
    """A range: ``LOW..HIGH``, with ``:log`` or ``:step=X`` after it."""
    spec = SPECS[name]
    ends, *options = text.split(":")
    low, high = (_end(name, text, end) for end in ends.split(RANGE, 1))
    log, step = False, None
    for option in map(str.strip, options):
        if option == "log":
            log = True
        elif option.startswith("step="):
            step = _step(name, text, option.removeprefix("step="), spec)
        else:
            raise PlanError(name, text, f"has an unknown option {option!r}: use :log or :step=X")
    _check_range(name, text, low, high)
    if log and low <= 0:
        raise PlanError(name, text, "has no logarithm at its lower end: begin above 0, or leave :log out")
    if log and step is not None:
        raise PlanError(name, text, "cannot have both :log and :step: leave one out")
    if step is not None:
        _check_step(name, text, low, high, step)
    return Parameter(name, low=low, high=high, log=log, step=step, whole=spec.type is int)


def _end(name: str, text: str, word: str) -> float:
    word = word.strip()
    if not word:
        raise PlanError(name, text, f"has an end missing: use LOW{RANGE}HIGH, such as {EXAMPLE}")
    value = SPECS[name].parse(name, word)
    if value is None:
        raise PlanError(name, text, f"ends in {word}: a range needs two numbers")
    return value  # an int or a float, by its specification


def _step(name: str, text: str, word: str, spec: FieldSpec) -> float:
    try:
        step = float(word) if spec.type is float else int(word)
    except ValueError:
        step = 0
    if not 0 < step < math.inf:
        kind = "a whole number" if spec.type is int else "a number"
        raise PlanError(name, text, f"has an invalid step {word!r}: must be {kind} above 0")
    return step


def _check_range(name: str, text: str, low: float, high: float) -> None:
    if low == high:
        raise _single(name, text, low)
    if low > high:
        raise PlanError(name, text, f"is reversed: use {format_value(high)}{RANGE}{format_value(low)}")


def _check_step(name: str, text: str, low: float, high: float, step: float) -> None:
    count = (high - low) / step
    whole = math.floor(count + 1e-9)
    if whole < 1:
        raise PlanError(name, text, f"is empty: its step is larger than the range, {format_value(high - low)}")
    if abs(count - whole) > 1e-9:
        end = float(f"{low + whole * step:.12g}")
        end = int(end) if isinstance(low, int) else end
        raise PlanError(
            name,
            text,
            f"does not end at a step: use {format_value(low)}{RANGE}{format_value(end)}:step={format_value(step)}",
        )


MAX_POINTS = 100_000
"""The most points of a grid."""


def count_points(parameters: Sequence[Parameter]) -> int | None:
    """The number of combinations of values; ``None`` if a range has any number of them."""
    counts = [_count(each) for each in parameters]
    known = [count for count in counts if count is not None]
    return math.prod(known) if len(known) == len(counts) else None


def parameter_points(parameter: Parameter) -> tuple[Any, ...]:
    """The values of a parameter that can be counted."""
    if parameter.choices:
        return parameter.choices
    low, step, count = parameter.low or 0, parameter.step or 1, _count(parameter) or 0
    if parameter.whole:
        return tuple(int(low + index * step) for index in range(count))
    return tuple(float(f"{low + index * step:.12g}") for index in range(count))


def all_points(parameters: Sequence[Parameter]) -> Iterator[dict[str, Any]]:
    """All combinations of values that can be counted."""
    names = [each.name for each in parameters]
    for values in itertools.product(*map(parameter_points, parameters)):
        yield dict(zip(names, values, strict=True))


def check_grid(parameters: Sequence[Parameter]) -> None:
    """Check that a grid has a number of points.

    Raises:
        PlanError: A range has any number of values, or there are too many points.
    """
    for each in parameters:
        if _count(each) is None:
            raise PlanError(
                each.name, format_values(each), "has no steps for a grid: list its values, or give the range a :step"
            )
    points = count_points(parameters) or 0
    if points > MAX_POINTS:
        each = parameters[0]
        raise PlanError(each.name, format_values(each), f"is part of a grid of {points:,} points: use --sampler tpe")


def _count(parameter: Parameter) -> int | None:
    if parameter.choices:
        return len(parameter.choices)
    if parameter.low is None or parameter.high is None or (parameter.step is None and not parameter.whole):
        return None
    return math.floor((parameter.high - parameter.low) / (parameter.step or 1) + 1e-9) + 1
