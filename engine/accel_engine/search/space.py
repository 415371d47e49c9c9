"""The points of a search's space, if they can be counted."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from accel_engine.errors import PlanError
from accel_engine.search.definition import Parameter
from accel_engine.search.over import format_values

MAX_POINTS = 100_000
"""The most points of a grid."""


def count_points(parameters: Sequence[Parameter]) -> int | None:
    """The number of combinations of values; ``None`` if a range has any number of them."""
    counts = [_count(each) for each in parameters]
    known = [count for count in counts if count is not None]
    return math.prod(known) if len(known) == len(counts) else None


def points_of(parameter: Parameter) -> tuple[Any, ...]:
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
    for values in itertools.product(*map(points_of, parameters)):
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
