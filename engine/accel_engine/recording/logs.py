"""What Keras tells callbacks, as plain numbers by names that a run can have."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from accel_engine.recording.recovery import Values
from accel_engine.run.schema import LEARNING_RATE, series_name
from accel_engine.run.series import MOST_ELEMENTS

VALIDATION = "val_"
"""What Keras puts before what validation measured."""


def numbers(logs: Mapping[str, Any]) -> dict[str, float]:
    """Every number of some logs, by the name of its series.

    A metric with one element is that element. One with several is one number each, ``f1_score_0`` and so on, up to
    :data:`~accel_engine.run.series.MOST_ELEMENTS`. What is no number is left out.

    Args:
        logs: As Keras tells them: numbers and arrays by the names of metrics.
    """
    found: dict[str, float] = {}
    for told, value in logs.items():
        for end, number in _elements(value):
            name = series_name(told + end)
            name = "metric_" + name if name == LEARNING_RATE else name
            while name in found:  # as top5-acc and top5_acc
                name += "_2"
            found[name] = number
    return found


def columns(logs: Sequence[Mapping[str, Any]]) -> dict[str, Values]:
    """The numbers of several logs, by the names that the last of them has: one value each, NaN where there is none."""
    last = logs[-1]
    if all(isinstance(value, float) for value in last.values()):  # nearly always; far quicker than one log at a time
        with suppress(TypeError, ValueError):
            return {
                name: np.array([each.get(told, math.nan) for each in logs], dtype=np.float64)
                for name, told in zip(numbers(last), last, strict=True)
            }
    rows = [numbers(each) for each in logs]
    return {name: np.array([row.get(name, math.nan) for row in rows], dtype=np.float64) for name in rows[-1]}


def of_training(logs: Mapping[str, Any]) -> dict[str, float]:
    """An epoch's means, without validation's and the learning rate, which some callbacks put among them."""
    wanted = {name: logs[name] for name in logs if not name.startswith(VALIDATION) and name != LEARNING_RATE}
    return numbers(wanted)


def of_validation(logs: Mapping[str, Any]) -> dict[str, float]:
    """What validation measured, by the names that training has for it."""
    return numbers({name.removeprefix(VALIDATION): logs[name] for name in logs if name.startswith(VALIDATION)})


def _elements(value: Any) -> Iterator[tuple[str, float]]:
    """The numbers of a value, each with what its name ends in."""
    if isinstance(value, float):
        yield "", value
        return
    try:
        array = np.asarray(value, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        return
    if array.size == 1:
        yield "", float(array[0])
    else:
        yield from ((f"_{place}", float(element)) for place, element in enumerate(array[:MOST_ELEMENTS]))
