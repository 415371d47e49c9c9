"""Converts Keras' logs to numbers by series name."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from accel_engine.recording.running_means import Values
from accel_engine.run.store.series_names import LEARNING_RATE, SeriesNames

VALIDATION = "val_"
"""Keras' prefix of validation metrics."""


def numbers(logs: Mapping[str, Any], names: SeriesNames) -> dict[str, float]:
    """The numbers in logs, by series name.

    Args:
        logs: Keras' logs: numbers and arrays by metric name. Other values are skipped.
        names: Names the series, and collects notes on skipped values.
    """
    known: dict[str, Any] = {}
    for metric, value in logs.items():
        number = value if isinstance(value, float) else as_array(value)
        if number is None:
            names.add_note(f"the metric {metric} is not recorded: it is not a number")
        else:
            known[metric] = number
    return {name: float(number) for name, number in names.scalars(known).items()}


def columns(logs: Sequence[Mapping[str, Any]], names: SeriesNames) -> dict[str, Values]:
    """The numbers of several logs, by the series names of the last: one value per log, NaN if it has none.

    Args:
        logs: Logs of one batch each.
        names: Names the series.
    """
    last = logs[-1]
    latest = numbers(last, names)
    if all(isinstance(value, float) for value in last.values()):  # the usual case, and far faster
        with suppress(TypeError, ValueError):
            return {
                name: np.array([each.get(metric, math.nan) for each in logs], dtype=np.float64)
                for name, metric in zip(latest, last, strict=True)
            }
    series_columns: dict[str, Values] = {}
    for metric, value in last.items():
        series = numbers({metric: value}, names)
        if series:
            size = np.size(value)
            rows = np.stack([_flat(each.get(metric), size) for each in logs])
            series_columns |= {name: rows[:, column] for column, name in enumerate(series)}
    return series_columns


def training_metrics(logs: Mapping[str, Any], names: SeriesNames) -> dict[str, float]:
    """The training metrics of an epoch, without validation's and the learning rate that some callbacks add."""
    wanted = {name: logs[name] for name in logs if not name.startswith(VALIDATION) and name != LEARNING_RATE}
    return numbers(wanted, names)


def validation_metrics(logs: Mapping[str, Any], names: SeriesNames) -> dict[str, float]:
    """The validation metrics of an epoch, by the series names of training."""
    metrics = {name.removeprefix(VALIDATION): logs[name] for name in logs if name.startswith(VALIDATION)}
    return numbers(metrics, names)


def as_array(value: Any) -> Values | None:
    """A metric's value as an array; ``None`` if it is not numeric."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _flat(value: Any, size: int) -> Values:
    """A value flattened to ``[size]``; NaN if it has another size."""
    array = as_array(value)
    return array.ravel() if array is not None and array.size == size else np.full(size, math.nan)
