"""The series that show the evidence of findings, as curves for charts."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from accel_engine.advice import Finding, Recorded
from accel_engine.advice.recorded import Series
from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_tui.run_state.curve import Curve
from accel_tui.run_state.state import Points


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceCurve:
    """A series of training, and the metric of validation of the same name.

    Attributes:
        curve: A value per step; empty if it was not recorded.
        validation: Points of step and value.
    """

    curve: Curve
    validation: Points = ()


def evidence_curves(recorded: Recorded, findings: Iterable[Finding]) -> Mapping[str, EvidenceCurve]:
    """The curves of all evidence that a series shows, by the name of the series without its prefix of validation."""
    names = {chart_name(each.series) for finding in findings for each in finding.evidence if each.series}
    return {
        name: EvidenceCurve(_curve(recorded.of(name), recorded.steps), _points(recorded, name))
        for name in sorted(names)
    }


def chart_name(series: str) -> str:
    """The name of the chart of a series, in which that of validation is, too."""
    return series.removeprefix(VALIDATION_PREFIX)


def _points(recorded: Recorded, name: str) -> Points:
    steps, values = recorded.validation(name)
    return tuple(zip(steps.tolist(), values.tolist(), strict=True))


def _curve(series: Series, steps: int) -> Curve:
    """The curve of a series of a run of some steps, with gaps where it has no buckets."""
    if not len(series):
        return Curve()
    index = series.first // series.width
    buckets = int(index[-1]) + 1
    low, high, total = np.full(buckets, math.nan), np.full(buckets, math.nan), np.zeros(buckets)
    finite = np.zeros(buckets, np.int64)
    low[index], high[index], finite[index] = series.low, series.high, series.finite
    total[index] = series.mean * series.finite
    return Curve(min(buckets * series.width, steps), series.width, float(series.mean[-1]), low, high, total, finite)
