"""Finds the epochs of a run that logs their number as a metric."""

import math
import re

import numpy as np

from accel_engine.imported_runs.source_run import Epoch, ImportedMetric, SourceRun

_SEPARATORS = re.compile(r"[/.]")

_LARGEST = 1 << 53
"""Whole numbers below have an exact float64."""


def take_epochs(run: SourceRun) -> None:
    """Turn a series of the number of the epoch into epochs, in a run that has none.

    The number is whole, counted from 0 or 1, or how many epochs are completed, such as 1.5.
    """
    name = next((name for name in run.series if _SEPARATORS.split(name)[-1].lower() == "epoch"), None)
    if run.epochs or name is None or len(run.series) == 1:
        return
    points = run.series[name]
    numbers = points.values
    if not (np.isfinite(numbers) & (numbers >= 0) & (numbers < _LARGEST)).all() or (np.diff(numbers) < 0).any():
        return
    del run.series[name]
    if (np.floor(numbers) == numbers).all():
        run.epochs = ended_epochs(points, run)
    else:
        within = ImportedMetric(points.steps, points.times, np.maximum(np.ceil(numbers), 1))
        run.epochs = [epoch for epoch in ended_epochs(within, run) if epoch.number <= numbers.max()]


def ended_epochs(epochs: ImportedMetric, run: SourceRun) -> list[Epoch]:
    """The epochs that ended, with the means of their steps.

    Not the last, if it has fewer steps than the one before and does not end with a validation.

    Args:
        epochs: The number of the epoch by step, counted from 0 or from 1; NaN if unknown.
        run: The run with its series and validations.
    """
    steps, times, numbered = epochs.steps, epochs.times, epochs.values
    known = np.isfinite(numbered)
    known[known] = numbered[known] <= np.minimum.accumulate(numbered[known][::-1])[::-1]  # a restart's later ones count
    if not known.any():
        return []
    numbers, index = np.unique(numbered[known].astype(np.int64), return_inverse=True)
    ends, last_times = np.zeros(len(numbers), np.int64), np.full(len(numbers), math.nan)
    np.maximum.at(ends, index, steps[known] + 1)
    np.fmax.at(last_times, index, times[known])
    ends = np.maximum.accumulate(ends)
    spans = np.diff(ends, prepend=steps[known].min())
    validated = any(len(points.steps) and points.steps[-1] == ends[-1] for points in run.validations.values())
    ended = len(spans) - (len(spans) > 1 and bool(spans[-1] < spans[-2]) and not validated)
    first = 0
    found = []
    for number, end, time in zip(numbers[:ended].tolist(), ends.tolist(), last_times.tolist(), strict=False):
        metrics = {}
        for name, points in run.series.items():
            values = points.values[slice(*np.searchsorted(points.steps, (first, end)))]
            if values.size:
                finite = values[np.isfinite(values)]
                metrics[name] = float(finite.mean() if finite.size else values[-1])
        found.append(Epoch(number + int(numbers[0] == 0), end, time, metrics))
        first = end
    return found
