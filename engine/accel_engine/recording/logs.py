"""What Keras tells callbacks, as plain numbers by names that a run can have."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from accel_engine.run.schema import series_name

MOST_ELEMENTS = 16
"""Elements of a metric that are told one by one; of one with more, as of a thousand classes, their mean is."""

VALIDATION = "val_"
"""What Keras puts before what validation measured."""

LEARNING_RATE = "learning_rate"
"""The name of the rate of each step, which no metric can have."""


def numbers(logs: Mapping[str, Any]) -> dict[str, float]:
    """Every number of some logs, by the name of its series.

    A metric with one element is that element. One with several is one number each, ``f1_score_0`` and so on; one with
    more than :data:`MOST_ELEMENTS` is their mean, ``f1_score_mean``. What is no number is left out.

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
    elif 1 < array.size <= MOST_ELEMENTS:
        yield from ((f"_{place}", float(element)) for place, element in enumerate(array))
    elif array.size:
        yield "_mean", float(array.mean())
