"""The header of a chart: title, latest values, notes on hidden values, and the legend of marks.

Hidden are outliers and values without a logarithm. Of a bucket only the extremes are known, so that with several steps
per bucket the counts are lower bounds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accel_engine.words import numbers
from accel_tui.widgets.chart.axes import Axis, labels
from accel_tui.widgets.chart.background import mark_legend
from accel_tui.widgets.chart.chart_view import ChartSeries, ChartView
from accel_tui.widgets.chart.draw_series import POINT
from accel_tui.widgets.chart.draw_values import BEST
from accel_tui.widgets.chart.raster import EDGE
from accel_tui.widgets.styled_text import TextSpan

_CURVE, _POINTS = "──", "━━"  # points are drawn thicker


@dataclass(frozen=True, slots=True)
class Legend:
    """The parts of the header that change only with the frame."""

    signs: Sequence[str]
    """How each series is drawn."""
    notes: Sequence[str]
    """Notes on hidden values, the longest first."""
    marks: Sequence[str]
    """Legends of the marks and the chart's note, the shortest first."""
    has_gaps: bool
    """Whether values are not finite."""


def legend_of(view: ChartView, width: int) -> Legend:
    """The legend of a frame whose plot is ``width`` cells wide."""
    dense = [series.curve for series in view.series if not series.is_resampled and not series.curve.is_sparse]
    gaps = sum(curve.gaps for curve in dense)
    gap = numbers.counted(gaps, "gap") if gaps else ""
    beyond = describe_hidden(view.series, view.x, view.y, clipped=view.options.clip or not view.is_log)
    return Legend(
        [_CURVE if series.curve.end_step else _POINTS if view.has_dots else POINT for series in view.series],
        [", ".join(filter(None, (note, gap))) for note in beyond] if beyond else [gap],
        _ends(mark_legend(view.marks, view.x, width) if view.shows_mark_legend else [], view.note),
        gaps > 0,
    )


def _ends(marks: Sequence[str], note: str) -> Sequence[str]:
    """Texts for the end of the header, the shortest first."""
    short = note.partition(f" {BEST}")[0]  # without the step of the best value
    return [short, note, *(f"{note}   {mark}" for mark in marks)] if note else marks


def chart_header(view: ChartView, legend: Legend, series: Sequence[ChartSeries]) -> list[TextSpan]:
    """The header's text spans, shortened to fit.

    Dropped first are the names of two series, or the signs of many; then the chart options; then the values of many.

    Args:
        view: What is drawn.
        legend: The legend.
        series: The view's series, or the same with more steps.

    Returns:
        Text spans that fill the line.
    """
    several, many = len(series) > 1, len(series) > 2
    shortest_note = min(map(len, legend.notes))
    named = _legend(view, legend, series, named=several or any(each.value is not None for each in series))
    shorter = _legend(view, legend, series, named=many, signed=not many)
    shortest = _legend(view, legend, series, named=many, valued=not many)
    plain = view.title
    full = f"{plain} ({view.description})" if view.description else plain
    forms = [(full, named), (full, shorter), (plain, named), (plain, shorter), (full, shortest), (plain, shortest)]
    title, entries = next(
        (form for form in forms if len(form[0]) + sum(map(_length, form[1])) + shortest_note <= view.columns), forms[-1]
    )
    line: list[TextSpan] = [(title, "title")]
    x = len(title)
    for index, entry in enumerate(entries):
        left = len(entries) - index
        rest = len(f" +{left - 1}") if many and left > 1 else 0
        if x + _length(entry) + rest > view.columns:
            entry = [(f" +{left}", "note")] if many and x + len(f" +{left}") <= view.columns else []
            left = 1
        line += entry
        x += _length(entry)
        if left == 1:
            break
    note, mark = _end(legend, view.columns - x - 1)
    style = "warning" if legend.has_gaps else "note"
    return [*line, (" " * (view.columns - x - len(note) - len(mark)), "note"), (note, style), (mark, "note")]


def _end(legend: Legend, room: int) -> tuple[str, str]:
    """The notes and the marks that fit: a note in any case, if alone and in the fewest words."""
    marks = [f"   {mark}" if any(legend.notes) else mark for mark in reversed(legend.marks) if mark]
    pairs = [(note, mark) for mark in (*marks, "") for note in legend.notes[:-1] or legend.notes]
    fitting = (pair for pair in (*pairs, (legend.notes[-1], "")) if len("".join(pair)) <= room)
    return next(fitting, ("", ""))


def _legend(
    view: ChartView,
    legend: Legend,
    series: Sequence[ChartSeries],
    *,
    named: bool,
    valued: bool = True,
    signed: bool = True,
) -> list[list[TextSpan]]:
    """Sign, name and latest value of each series that has a value."""
    space = " " if view.title else ""
    return [
        [
            (f"{space}{sign} " if signed else space, each.style),
            (f"{each.name} " if named else "", "note" if signed else each.style),
            (f"{view.value(value)} " if valued else "", "title"),
        ]
        for each, sign in zip(series, legend.signs, strict=True)
        if not math.isnan(value := each.latest)
    ]


def _length(entry: list[TextSpan]) -> int:
    return sum(len(text) for text, _ in entry)


@dataclass(frozen=True, slots=True)
class Hidden:
    """Number of values beyond an axis."""

    above: int = 0
    """Values above it, at least."""
    below: int = 0
    """Values below it, at least."""
    exact: bool = True
    """Whether the counts are exact."""

    def __add__(self, other: "Hidden") -> "Hidden":
        """The sum of both."""
        exact = self.exact and other.exact
        return Hidden(self.above + other.above, self.below + other.below, exact)


def hidden_steps(series: ChartSeries, first: float, last: float, low: float, high: float) -> Hidden:
    """Count the steps from ``first`` to before ``last`` whose value is beyond ``low`` to ``high``."""
    curve = series.curve_in(first, last)
    if not curve.end_step:
        return Hidden()
    span = slice(*curve.span(first, last))
    lows, highs, finite = curve.low[span], curve.high[span], curve.finite[span]
    above = int(np.where(lows > high, finite, highs > high).sum())
    below = int(np.where(highs < low, finite, lows < low).sum())
    return Hidden(above, below, curve.width == 1)


def hidden_points(series: ChartSeries, first: float, last: float, low: float, high: float) -> Hidden:
    """Count the points of those steps, such as validations, beyond ``low`` to ``high``."""
    values = [value for _, value in series.within(first, last) if math.isfinite(value)]
    return Hidden(sum(value > high for value in values), sum(value < low for value in values))


def describe_hidden(series: Sequence[ChartSeries], x: Axis, y: Axis, *, clipped: bool) -> list[str]:
    """Notes on the number of hidden values, the longest first; empty if there are none.

    Args:
        series: The series.
        x: Range of steps.
        y: The value axis.
        clipped: Whether outliers are hidden; else values without a logarithm.
    """
    tolerance = EDGE * (y.high - y.low)
    low = min(y.low, max(y.low - tolerance, y.low * (1 - EDGE)))  # stays positive on a logarithmic axis
    ends = (x.low, x.high, low, y.high + tolerance)
    steps = sum((hidden_steps(one, *ends) for one in series), Hidden())
    points = sum((hidden_points(one, *ends) for one in series), Hidden())
    found = steps + points
    beyond = {
        f"above {_brief(y.high)}": found.above,
        (f"below {_brief(y.low)}" if clipped else "at or below 0"): found.below,
    }
    sides = " or ".join(side for side, count in beyond.items() if count)
    if not sides:
        return []
    if any(one.is_resampled for one in series):
        return [f"some hidden {sides}", "some hidden"]
    counts = [(each, name) for each, name in ((steps, "step"), (points, "point")) if each.above + each.below]
    each_count = [f"{_number(each)} {numbers.plural(each.above + each.below, name)}" for each, name in counts]
    few = " and ".join(each_count)
    shortest = f"{_number(counts[0][0])} hidden"  # only the steps, if points are hidden too
    return list(dict.fromkeys((f"{few} hidden {sides}", f"{few} hidden", f"{each_count[0]} hidden", shortest)))


def _number(found: Hidden) -> str:
    return f"{found.above + found.below:,}{'' if found.exact else '+'}"


def _brief(value: float) -> str:
    return labels([value])[0]
