"""Records of runs that learned, made of numbers, for tests of rules."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.advice import Recorded
from accel_engine.advice.recorded import RecordedSeries
from accel_engine.events import EpochEnded, Event, Validated
from accel_engine.run.diagnostics import (
    ClassificationReport,
    DataProfile,
    Diagnostics,
    Layer,
    LayerTable,
    OutputReport,
    Scores,
    ValidationReport,
)
from accel_engine.run.engine.status import RunInfo, Status
from example_events import model_built

Values = Sequence[float] | npt.NDArray[np.float64]

MINUTE = 60.0


def series(values: Values) -> RecordedSeries:
    """A series of a value per step; NaN where a step has none."""
    array = np.array(values, np.float64)
    steps = np.flatnonzero(np.isfinite(array))
    known = array[steps]
    return RecordedSeries(steps, known, known, known, np.ones(len(known), np.int64), 1)


def learned(
    loss: Values = (),
    *,
    validation: Mapping[str, Values] | None = None,
    every: int = 20,
    seconds: float = 1.0,
    kind: str = "training",
    settings: Mapping[str, Any] | None = None,
    profile: DataProfile | None = None,
    layers: Sequence[str] = (),
    report: OutputReport | None = None,
    built: Mapping[str, Any] | None = None,
    baseline: Mapping[str, float] | None = None,
    live: bool = False,
    more: Sequence[Event] = (),
    **others: Values,
) -> Recorded:
    """A run by its numbers.

    Args:
        loss: Of each step.
        validation: Metrics of each validation, which comes at the end of an epoch.
        every: Steps of an epoch.
        seconds: Time of an epoch.
        kind: ``training`` or ``script``.
        settings: Fields of its plan.
        profile: Of its data.
        layers: Classes of the model's layers, which have weights.
        report: Of the last validation.
        built: Fields of the event with the model.
        baseline: What the most frequent class reaches in each validation.
        live: Whether it still trains.
        more: Further events.
        **others: Other series.
    """
    values = {name: series(each) for name, each in {"loss": loss, **others}.items() if len(each)}
    steps = max([len(loss), *map(len, others.values())])
    validation = {name: list(each) for name, each in (validation or {}).items()}
    count = max([steps // every, *map(len, validation.values())])
    events: list[Event] = [
        model_built(time=0.0, **{"task": "classification", "series": tuple(values), **(built or {})})
    ]
    for epoch in range(1, count + 1):
        time, step = epoch * seconds, epoch * every
        means = {name: _mean(each, step - every, step) for name, each in others.items() if len(each)}
        events.append(EpochEnded(time=time, epoch=epoch, step=step, metrics=means, seconds=seconds))
        metrics = {name: float(each[epoch - 1]) for name, each in validation.items() if len(each) >= epoch}
        if metrics:
            levels, name = dict(baseline or {}), "most frequent class: b" if baseline else ""
            events.append(
                Validated(
                    time=time,
                    epoch=epoch,
                    step=step,
                    metrics=metrics,
                    seconds=0.1,
                    baseline=levels,
                    baseline_name=name,
                )
            )
    table = LayerTable(tuple(Layer(f"layer{at}", each, 0, (8,), 64, 64, None) for at, each in enumerate(layers)))
    return Recorded(
        info=RunInfo(
            id="abcd",
            directory=Path("abcd"),
            plan=None,
            plan_values=dict(settings or {}),
            created=0.0,
            host="h",
            pid=None,
            status=Status.RUNNING if live else Status.FINISHED,
            script="train.py" if kind == "script" else "",
        ),
        events=(*events, *more),
        series=values,
        steps=steps,
        diagnostics=Diagnostics(
            profile=profile,
            layers=table if layers else None,
            validation=ValidationReport((report,)) if report else None,
            steps={"validation": steps},
        ),
    )


def in_buckets(run: Recorded, width: int) -> Recorded:
    """A run whose series are in buckets of some steps, as of a long run."""
    return replace(run, series={name: _merged(each, width) for name, each in run.series.items()})


def _merged(steps: RecordedSeries, width: int) -> RecordedSeries:
    first, at, counts = np.unique(steps.first // width * width, return_index=True, return_counts=True)
    if not len(first):
        return replace(steps, width=width)
    return RecordedSeries(
        first=first,
        mean=np.add.reduceat(steps.mean, at) / counts,
        low=np.minimum.reduceat(steps.low, at),
        high=np.maximum.reduceat(steps.high, at),
        finite=counts,
        width=width,
    )


def _mean(values: Values, first: int, stop: int) -> float:
    """The mean of the finite ones of some values; NaN if there are none."""
    some = np.asarray(values)[first:stop]
    finite = some[np.isfinite(some)]
    return float(finite.mean()) if len(finite) else math.nan


def classified(
    counts: Sequence[Sequence[int]], right: Mapping[int, int], wrong: Mapping[int, int]
) -> ClassificationReport:
    """The report of a classifier.

    Args:
        counts: Its confusion matrix.
        right: Number of right predictions by the bin of their confidence, of 200.
        wrong: The same of wrong ones.
    """
    histograms = [[bins.get(at, 0) for at in range(200)] for bins in (right, wrong)]
    confidence = Scores(*(np.array([each], np.int64) for each in histograms))
    names = tuple(f"class{at}" for at in range(len(counts)))
    return ClassificationReport(examples=100, names=names, counts=np.array(counts, np.int64), confidence=confidence)


def falling(steps: int = 200, start: float = 2.3, end: float = 0.2, pace: float = 40.0, noise: float = 0.02) -> Values:
    """A loss that falls as a healthy one does."""
    rng = np.random.default_rng(0)
    values: Values = end + (start - end) * np.exp(-np.arange(steps) / pace) + noise * rng.normal(size=steps)
    return values


def flat(steps: int = 200, level: float = 2.3, noise: float = 0.01) -> Values:
    """A loss that stays."""
    return falling(steps, level, level, noise=noise)
