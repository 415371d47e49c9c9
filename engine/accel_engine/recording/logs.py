"""What Keras tells callbacks, as plain numbers by names that a run can have."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from accel_engine.recording.running_means import Values
from accel_engine.run.schema import LEARNING_RATE
from accel_engine.run.series_names import SeriesNames

VALIDATION = "val_"
"""What Keras puts before what validation measured."""


def numbers(logs: Mapping[str, Any], names: SeriesNames) -> dict[str, float]:
    """Every number of some logs, by the name of its series.

    Args:
        logs: As Keras tells them: numbers and arrays by the names of metrics. What is no number is left out.
        names: Gives the names, and is told what is left out.
    """
    known: dict[str, Any] = {}
    for told, value in logs.items():
        number = value if isinstance(value, float) else as_array(value)
        if number is None:
            names.add_note(f"the metric {told} is not recorded: it is not a number")
        else:
            known[told] = number
    return {name: float(number) for name, number in names.scalars(known).items()}


def columns(logs: Sequence[Mapping[str, Any]], names: SeriesNames) -> dict[str, Values]:
    """The numbers of several logs, by the names that the last of them has: one value each, NaN where there is none.

    Args:
        logs: Of one batch each.
        names: Gives the names.
    """
    last = logs[-1]
    latest = numbers(last, names)
    if all(isinstance(value, float) for value in last.values()):  # nearly always; far quicker than an array a number
        with suppress(TypeError, ValueError):
            return {
                name: np.array([each.get(told, math.nan) for each in logs], dtype=np.float64)
                for name, told in zip(latest, last, strict=True)
            }
    found: dict[str, Values] = {}
    for told, value in last.items():
        series = numbers({told: value}, names)
        if series:
            size = np.size(value)
            rows = np.stack([_flat(each.get(told), size) for each in logs])
            found |= {name: rows[:, place] for place, name in enumerate(series)}
    return found


def of_training(logs: Mapping[str, Any], names: SeriesNames) -> dict[str, float]:
    """An epoch's means, without validation's and the learning rate, which some callbacks put among them."""
    wanted = {name: logs[name] for name in logs if not name.startswith(VALIDATION) and name != LEARNING_RATE}
    return numbers(wanted, names)


def of_validation(logs: Mapping[str, Any], names: SeriesNames) -> dict[str, float]:
    """What validation measured, by the names that training has for it."""
    found = {name.removeprefix(VALIDATION): logs[name] for name in logs if name.startswith(VALIDATION)}
    return numbers(found, names)


def as_array(value: Any) -> Values | None:
    """A value of a metric; ``None`` where it is no number."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _flat(value: Any, size: int) -> Values:
    """A value's numbers in a row, NaN where they are not so many."""
    array = as_array(value)
    return array.ravel() if array is not None and array.size == size else np.full(size, math.nan)
