"""The first line of a chart: its title, the latest values, and what is missing below."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from accel_tui.widgets.chart.chart_view import ChartView
from accel_tui.widgets.chart.clipping import told
from accel_tui.widgets.chart.draw_marks import words
from accel_tui.widgets.chart.draw_points import POINT, are_joined
from accel_tui.widgets.chart.series import Series
from accel_tui.widgets.styled_text import Piece

_LINE = "━━"


@dataclass(frozen=True, slots=True)
class Legend:
    """What the first line says of the picture below; it stays while that does.

    Attributes:
        signs: How each series is drawn.
        notes: What is not drawn of them, in many words and in few.
        marks: What the marks mean, in few words and in more.
    """

    signs: Sequence[str]
    notes: Sequence[str]
    marks: Sequence[str]


def legend_of(view: ChartView, width: int) -> Legend:
    """The key to a picture whose plot is so many cells wide."""
    gaps = sum(series.curve.gaps for series in view.series if series.curve.count and not series.is_resampled)
    gap = f"{gaps} gap{'s' * (gaps != 1)}" if gaps else ""
    beyond = told(view.series, view.x, view.y, clipped=view.lens.clip or not view.lens.log)
    return Legend(
        [_LINE if series.curve.count or are_joined(view.x, series, width) else POINT for series in view.series],
        [", ".join(filter(None, (words, gap))) for words in beyond] if beyond else [gap],
        words(view.marks, view.x, width) if view.explains else [],
    )


def chart_header(view: ChartView, key: Legend, series: Sequence[Series]) -> list[Piece]:
    """Title, latest values, and what is missing above a plot; less of it where it does not fit.

    What goes first are the names of two series, or the lines beside the names of many; then what the lens does; then
    the values of many.

    Args:
        view: What is drawn.
        key: What is said of it.
        series: Those of the view, or the same after further steps.

    Returns:
        Pieces of text with their styles, which fill the line.
    """
    several, many = len(series) > 1, len(series) > 2
    least = min(map(len, key.notes))
    named = _legend(view, key, series, named=several)
    shorter = _legend(view, key, series, named=many, signed=not many)
    shortest = _legend(view, key, series, named=many, valued=not many)
    plain = view.title
    full = f"{plain} ({view.lens.words})" if view.lens.words else plain
    forms = [(full, named), (full, shorter), (plain, named), (plain, shorter), (full, shortest), (plain, shortest)]
    title, entries = next(
        (form for form in forms if len(form[0]) + sum(map(_length, form[1])) + least <= view.columns), forms[-1]
    )
    line: list[Piece] = [(title, "title")]
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
) -> list[list[Piece]]:
    """What is said of each series that has a value: pieces of text with their styles."""
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


def _length(entry: list[Piece]) -> int:
    return sum(len(text) for text, _ in entry)


def _latest(series: Series) -> float:
    if series.curve.count:
        return series.curve.last
    return series.points[-1][1] if series.points else math.nan
