"""The curves of many runs as a band: median, quartiles, 10 to 90 percent, and some runs in colour."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from accel_engine.errors import RunError
from accel_engine.events import EpochEnded, ModelBuilt, Validated
from accel_engine.plan.monitor import is_better_lower
from accel_engine.run import RunSummary
from accel_engine.run.history.history import stored_history
from accel_engine.run.runs.listing import summarize
from accel_engine.run.store.database import reading
from accel_engine.text import printable_fields
from accel_engine.words import numbers
from accel_tui.run_list.groups import short_metric_name
from accel_tui.run_state.curve import Floats
from accel_tui.widgets.chart import scale
from accel_tui.widgets.chart.axes import WholeAxis
from accel_tui.widgets.chart.bands import band_series
from accel_tui.widgets.chart.plot import Plot, PlotSeries
from accel_tui.widgets.chart.value_axis import value_axis

_MOST_LIVE = 6  # live runs in colour
_OUTLIERS = 2.0  # percent of the values at either end that the axis need not include


@dataclass(frozen=True, slots=True, eq=False)
class RunCurve:
    """The course of the metric that counts in a run."""

    run: RunSummary
    """The run."""
    epochs: Floats
    """Epochs, or steps where their number per epoch is unknown, shape ``[points]``, rising."""
    values: Floats
    """Values, of the same shape."""
    by_epoch: bool = True
    """Whether positions are epochs."""


def read_curve(directory: Path, known: RunSummary | None = None) -> RunCurve:
    """Read the curve of a run; empty if it cannot be read. Takes milliseconds: too long for many in the event loop.

    Args:
        directory: The run's directory.
        known: Its summary, if that was read since the run has ended.
    """
    run = printable_fields(known or summarize(directory))
    nothing = RunCurve(run, np.empty(0), np.empty(0))
    if run.info is None:
        return nothing
    try:
        with reading(directory) as database:
            history = stored_history(database, ModelBuilt, EpochEnded, Validated)
    except RunError:
        return nothing
    points = [(step, value) for step, value in history.points(run.monitor) if np.isfinite(value)]
    if not points:
        return nothing
    steps, values = np.array(points, np.float64).T
    length = history.built.steps_per_epoch if history.built and history.built.epochs else None
    epochs = scale.epochs([(each.step, each.epoch) for each in history.ended_epochs], length).at(steps)
    is_known = bool(np.isfinite(epochs).all())
    return RunCurve(run, epochs if is_known else steps, values, is_known)


def compared_metric(curves: Iterable[RunCurve]) -> str:
    """The metric that counts in most runs; empty without one."""
    found = Counter(each.run.monitor for each in curves if len(each.values)).most_common(1)
    return found[0][0] if found else ""


def best_curve(curves: Sequence[RunCurve], metric: str) -> RunCurve | None:
    """The curve with the best value of a metric; ``None`` if the metric's name does not tell which way is better."""
    known = [each for each in curves if each.run.monitor == metric and each.run.best is not None]
    lower = is_better_lower(metric, next((_mode(each.run) for each in known), None))
    if lower is None or not known:
        return None
    return (min if lower else max)(known, key=lambda each: each.run.best or 0.0)


def _mode(run: RunSummary) -> object:
    return run.info.plan_values.get("monitor_mode") if run.info else None


def band_plot(curves: Sequence[RunCurve], selected: Path | None, rows: int, *, has_tints: bool) -> Plot:
    """A plot of the metric that counts in most runs; runs with another one are left out.

    Args:
        curves: Of all runs.
        selected: The directory of the run under the cursor.
        rows: Height of the plot in cells.
        has_tints: Whether the terminal shows tints.
    """
    metric = compared_metric(curves)
    known = [each for each in curves if each.run.monitor == metric and len(each.values)]
    by_epoch = Counter(each.by_epoch for each in known).most_common(1)[0][0] if known else True
    drawn = [each for each in known if each.by_epoch is by_epoch]
    series = band_series(drawn)
    live = [each for each in drawn if each.run.status and each.run.status.has_engine][:_MOST_LIVE]
    series += [PlotSeries(each.epochs, each.values, name="running" * (not number)) for number, each in enumerate(live)]
    if best := best_curve(drawn, metric):
        series.append(PlotSeries(best.epochs, best.values, style="success", name="best", covers=True))
    current = next((each for each in drawn if each.run.directory == selected), None)
    if current and current is not best:
        series.append(PlotSeries(current.epochs, current.values, style="secondary", name="selected", covers=True))
    values = np.concatenate([each.values for each in drawn]) if drawn else np.zeros(1)
    low, high = np.percentile(values, (_OUTLIERS, 100 - _OUTLIERS))
    shown = [each.values for each in (best, current) if each]
    low, high = (min([low, *(each.min() for each in shown)]), max([high, *(each.max() for each in shown)]))
    last = max((float(each.epochs[-1]) for each in drawn), default=1.0)
    return Plot(
        f"{short_metric_name(metric)} of {numbers.counted(len(drawn), 'run')}" if metric else "no results yet",
        tuple(each for each in series if len(each.x)),
        x=WholeAxis(0.0, max(last, 2.0)),
        y=value_axis(float(low), float(high), rows=max(rows - 3, 0)),
        x_name="epoch" if by_epoch else "step",
        has_tints=has_tints,
    )
