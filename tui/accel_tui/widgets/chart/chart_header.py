"""The header of a chart: title, latest values, notes on hidden values, and the legend of marks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from accel_tui.widgets.chart.chart_view import ChartView
from accel_tui.widgets.chart.clipping import describe_hidden
from accel_tui.widgets.chart.draw_marks import mark_legend
from accel_tui.widgets.chart.draw_points import POINT, are_joined
from accel_tui.widgets.chart.series import Series
from accel_tui.widgets.styled_text import TextSpan

_LINE = "━━"


@dataclass(frozen=True, slots=True)
class Legend:
    """The parts of the header that change only with the frame.

    Attributes:
        signs: How each series is drawn.
        notes: Notes on hidden values, the longest first.
        marks: Legends of the marks, the shortest first.
    """

    signs: Sequence[str]
    notes: Sequence[str]
    marks: Sequence[str]


def legend_of(view: ChartView, width: int) -> Legend:
    """The legend of a frame whose plot is ``width`` cells wide."""
    gaps = sum(series.curve.gaps for series in view.series if series.curve.count and not series.is_resampled)
    gap = f"{gaps} gap{'s' * (gaps != 1)}" if gaps else ""
    beyond = describe_hidden(view.series, view.x, view.y, clipped=view.options.clip or not view.options.log)
    return Legend(
        [_LINE if series.curve.count or are_joined(view.x, series, width) else POINT for series in view.series],
        [", ".join(filter(None, (note, gap))) for note in beyond] if beyond else [gap],
        mark_legend(view.marks, view.x, width) if view.shows_mark_legend else [],
    )


def chart_header(view: ChartView, key: Legend, series: Sequence[Series]) -> list[TextSpan]:
    """The header's text spans, shortened to fit.

    Dropped first are the names of two series, or the signs of many; then the chart options; then the values of many.

    Args:
        view: What is drawn.
        key: The legend.
        series: The view's series, or the same with more steps.

    Returns:
        Text spans that fill the line.
    """
    several, many = len(series) > 1, len(series) > 2
    least = min(map(len, key.notes))
    named = _legend(view, key, series, named=several)
    shorter = _legend(view, key, series, named=many, signed=not many)
    shortest = _legend(view, key, series, named=many, valued=not many)
    plain = view.title
    full = f"{plain} ({view.options.description})" if view.options.description else plain
    forms = [(full, named), (full, shorter), (plain, named), (plain, shorter), (full, shortest), (plain, shortest)]
    title, entries = next(
        (form for form in forms if len(form[0]) + sum(map(_length, form[1])) + least <= view.columns), forms[-1]
    )
    line: list[TextSpan] = [(title, "title")]
    x = len(title)
    for place, entry in enumerate(entries):
        left = len(entries) - place
        rest = len(f" +{left - 1}") if many and left > 1 else 0
        if x + _length(entry) + rest > view.columns:
            entry = [(f" +{left}", "note")] if many and x + len(f" +{left}") <= view.columns else []
            left = 1
        line += entry
        x += _length(entry)
        if left == 1:
            break
    end, style = next((note for note in key.notes if x + len(note) < view.columns), ""), "warning"
    if not end:
        style = "note"
        end = next((said for said in reversed(key.marks) if x + len(said) < view.columns), "")
    return [*line, (" " * (view.columns - x - len(end)), style), (end, style)]


def _legend(
    view: ChartView, key: Legend, series: Sequence[Series], *, named: bool, valued: bool = True, signed: bool = True
) -> list[list[TextSpan]]:
    """Sign, name and latest value of each series that has a value."""
    space = " " if view.title else ""
    return [
        [
            (f"{space}{sign} " if signed else space, one.style),
            (f"{one.name} " if named else "", "note" if signed else one.style),
            (f"{view.value(value)} " if valued else "", "title"),
        ]
        for one, sign in zip(series, key.signs, strict=True)
        if not math.isnan(value := _latest(one))
    ]


def _length(entry: list[TextSpan]) -> int:
    return sum(len(text) for text, _ in entry)


def _latest(series: Series) -> float:
    if series.curve.count:
        return series.curve.last
    return series.points[-1][1] if series.points else math.nan
