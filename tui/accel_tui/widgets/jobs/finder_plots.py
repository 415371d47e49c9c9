"""The plots of the finders: loss over learning rate, and throughput and memory over batch size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from textual.events import Click
from textual.message import Message

from accel_engine.finders.rate_curve import Ramp, smooth
from accel_engine.finders.rate_suggestions import Rule, Suggestions
from accel_engine.finders.throughput import ChosenSizes, MeasuredSize
from accel_tui.widgets.chart.axes import Axis, DoublingAxis, LogAxis
from accel_tui.widgets.chart.chart_view import Colour
from accel_tui.widgets.chart.plot import Plot, PlotSeries, PlotView, position_at
from accel_tui.widgets.chart.value_axis import value_axis

COLOURS: dict[Rule, Colour] = {
    Rule.STEEPEST: "warning",
    Rule.VALLEY: "success",
    Rule.MINIMUM_TENTH: "rate",
    Rule.MINIMUM_THIRD: "rate",
}
"""The colour of each suggestion; shares of the minimum have the same."""

SIGNS: dict[Rule, str] = {Rule.STEEPEST: "┊", Rule.VALLEY: "│", Rule.MINIMUM_TENTH: "‖", Rule.MINIMUM_THIRD: "┃"}
"""The line of each suggestion, which also differs without colours."""

SMOOTHED_MEAN = "smoothed mean"
"""The curve of the losses of all ramps."""

_ROOM = 0.35
"""Room above the loss at the start, as a share of how far it falls: what explodes is beyond the plot."""

_LINE_WITH_POINTS: tuple[Literal["line", "mark"], ...] = ("line", "mark")

_NOTHING = np.empty(0)


def rate_plot(
    ramps: Sequence[Ramp],
    suggestions: Suggestions | None,
    ends: tuple[float, float],
    rows: int,
    cursor: float | None = None,
    note: str = "",
) -> Plot:
    """The loss over the learning rate, on a logarithmic axis: each seed, and their smoothed mean.

    Args:
        ramps: The ramps so far.
        suggestions: What they suggest; ``None`` while they are measured.
        ends: The lowest and the highest rate.
        rows: Height of the plot.
        cursor: A rate to mark.
        note: What is at the cursor.
    """
    found = suggestions.found if suggestions else ()
    rules = [(each.rate, COLOURS[each.rule], str(each.rule), SIGNS[each.rule]) for each in found]
    series = list(_cursor(cursor))  # below the suggestion that it is on
    series += [
        PlotSeries(np.array([rate]), _NOTHING, "rule", style, name, sign=sign) for rate, style, name, sign in rules
    ]
    series += [_ramp_series(each, is_last=suggestions is None and each is ramps[-1]) for each in ramps if each.rates]
    curve = suggestions.curve if suggestions else None
    if curve is not None:
        series.append(PlotSeries(curve.rates, curve.losses, "line", "loss", SMOOTHED_MEAN, covers=True))
    return Plot("loss", tuple(series), note, x=LogAxis(*ends), y=_loss_axis(ramps, rows), x_name="learning rate")


def _ramp_series(ramp: Ramp, *, is_last: bool) -> PlotSeries:
    """The losses of a ramp, faint unless it is the one that is measured."""
    style: Literal["loss", "axis"] = "loss" if is_last else "axis"
    return PlotSeries(np.array(ramp.rates), np.array(ramp.losses), "line", style)


def _loss_axis(ramps: Sequence[Ramp], rows: int) -> Axis | None:
    """From the lowest smoothed loss to a little above the loss at the start; ``None`` without losses."""
    every = [smooth(np.array(each.losses)) for each in ramps if each.losses]
    if not every:
        return None
    first = max(float(losses[0]) for losses in every)
    low = min(float(losses.min()) for losses in every)
    high = first + _ROOM * (first - low or abs(first) or 1.0)
    return value_axis(low, high, rows=max(rows - 3, 0))


def throughput_plot(
    measured: Sequence[MeasuredSize], chosen: ChosenSizes | None, rows: int, cursor: float | None = None
) -> Plot:
    """Examples a second over the batch size, with the sizes that matter, in a plot of some rows."""
    fitting = _fitting(measured)
    values = np.array([each.throughput for each in fitting])
    marks = [
        PlotSeries(_sizes([size]), np.array([size.throughput]), "mark", style, name)
        for size, style, name in _marks(chosen)
    ]
    lines = [PlotSeries(_sizes(fitting), values, kind, "speed") for kind in _LINE_WITH_POINTS]
    high = float(values.max()) * 1.1 if len(values) else 1.0
    return Plot(
        "examples/s",
        (*_cursor(cursor), *lines, *marks),
        x=size_axis(measured),
        y=value_axis(0.0, high, rows=max(rows - 3, 0)),
        x_name="batch size",
    )


def _marks(chosen: ChosenSizes | None) -> list[tuple[MeasuredSize, Colour, str]]:
    """The sizes that matter, the knee on top, each once with all its names."""
    if chosen is None:
        return []
    named: tuple[tuple[MeasuredSize, Colour, str], ...] = (
        (chosen.knee, "success", "knee"),
        (chosen.fastest, "secondary", "fastest"),
        (chosen.largest, "warning", "largest"),
    )
    found: dict[int, tuple[MeasuredSize, Colour, str]] = {}
    for size, style, name in named:
        before = found.get(size.batch_size)
        found[size.batch_size] = (size, style, name) if before is None else (*before[:2], f"{before[2]}, {name}")
    return list(found.values())[::-1]


def memory_plot(measured: Sequence[MeasuredSize], memory: float | None, rows: int, cursor: float | None = None) -> Plot:
    """Memory over the batch size, with what there is of it if a size comes near it, in a plot of some rows."""
    fitting = [each for each in measured if each.memory is not None]
    found = np.array([each.memory or math.nan for each in fitting])
    unit, name = (1 << 30, "GiB") if np.any(found >= 1000 << 20) else (1 << 20, "MiB")  # as in the table
    values = found / unit
    failed = [each for each in measured if each.out_of_memory]
    high = float(values.max()) * 1.1 if len(values) else 1.0
    series = [*_cursor(cursor)]
    series += [PlotSeries(_sizes(fitting), values, kind, "primary") for kind in _LINE_WITH_POINTS]
    if memory is not None and len(values) and high > memory / unit / 3:
        limit, ends = memory / unit, size_axis(measured)
        high = max(high, 1.1 * limit)
        across = np.array([ends.low, ends.high])
        series.append(PlotSeries(across, np.full(2, limit), "line", "error", f"available {limit:,.1f}"))
    if failed:
        series.append(PlotSeries(_sizes(failed), _NOTHING, "rule", "error", "out of memory"))
    return Plot(
        f"memory {name}",
        tuple(series),
        x=size_axis(measured),
        y=value_axis(0.0, high, rows=max(rows - 3, 0)),
        x_name="batch size",
    )


def size_axis(measured: Sequence[MeasuredSize]) -> DoublingAxis:
    """The axis of all sizes that were tried."""
    sizes = [each.batch_size for each in measured] or [8]
    return DoublingAxis(min(sizes) * 0.9, max(*sizes, 2 * min(sizes)) * 1.1)


def _fitting(measured: Sequence[MeasuredSize]) -> list[MeasuredSize]:
    return sorted((each for each in measured if each.fits), key=lambda each: each.batch_size)


def _sizes(measured: Sequence[MeasuredSize]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.array([each.batch_size for each in measured], np.float64)


def _cursor(cursor: float | None) -> tuple[PlotSeries, ...]:
    return () if cursor is None else (PlotSeries(np.array([cursor]), _NOTHING, "rule", "axis", sign="┃"),)


class FinderPlot(PlotView):
    """A plot whose positions can be clicked."""

    DEFAULT_CSS = "FinderPlot { min-height: 6; }"

    @dataclass
    class Pointed(Message):
        """A position on the x axis was clicked; ``times`` counts repeated clicks."""

        value: float
        times: int

    def on_click(self, event: Click) -> None:
        event.stop()
        value = position_at(self.drawn[0], *self.size, event.x) if self.drawn else None
        if value is not None:
            self.post_message(self.Pointed(value, event.chain))
