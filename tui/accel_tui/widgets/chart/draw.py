"""Draws a chart: what is seen of it, as a pure function of its data, its axes and its size."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from textual.geometry import Region

from accel_tui.curve import Curve
from accel_tui.marks import Marks
from accel_tui.widgets.chart import raster
from accel_tui.widgets.chart.axes import Axis, Floats, labels, significant
from accel_tui.widgets.chart.clipping import told
from accel_tui.widgets.chart.frame import Frame
from accel_tui.widgets.chart.lens import PLAIN, Lens
from accel_tui.widgets.chart.log_axis import positive
from accel_tui.widgets.chart.marks import draw_marks, words
from accel_tui.widgets.chart.points import POINT, are_joined, draw_points, paint
from accel_tui.widgets.chart.scale import Scale
from accel_tui.widgets.chart.series import Series
from accel_tui.widgets.chart.smoothing import smoothed

_LINE = "━━"
_SPARSE = np.uint8(0b10010101)  # every other dot: the mean stands out from the band that it runs through


@dataclass(frozen=True, slots=True)
class View:
    """All that a chart's picture depends on.

    Attributes:
        columns: Width in cells.
        rows: Height in cells.
        x: Range of steps.
        y: Range of values.
        series: What is drawn, the last on top.
        title: First words of the first line.
        empty: Said in the middle while there is nothing to draw.
        value: How the latest values are written.
        lens: How the curves are looked at; the value axis is one of it.
        scale: What the labels below count, where it is not steps.
        marks: What happened at single steps.
        explains: Whether it is said what the marks mean, where there is room.
    """

    columns: int
    rows: int
    x: Axis
    y: Axis
    series: tuple[Series, ...] = ()
    title: str = ""
    empty: str = ""
    value: Callable[[float], str] = significant
    lens: Lens = PLAIN
    scale: Scale | None = None
    marks: Marks = field(default_factory=dict)
    explains: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Scaffold:
    """The parts of a chart that stay while its axes and its size do: shared, so never drawn on.

    Attributes:
        frame: Axes, labels and grid.
        gutter: Columns left of the plot.
        height: Rows of the plot; it begins in the second row.
        foot: Whether there are a line and labels below it.
    """

    frame: Frame
    gutter: int
    height: int
    foot: bool


def render(view: View) -> Frame:
    """Draw a chart. What does not fit is left out: first the step labels, then the value labels, then the plot."""
    if not any(_drawable(series) for series in view.series):
        frame = Frame.blank(view.columns, view.rows)
        counted = any(series.curve.count for series in view.series)
        message = "no finite value so far" if counted else view.empty
        frame.write(max(0, (view.columns - len(message)) // 2), view.rows // 2, message, "note")
        _head(frame, view, view.columns)
        return frame
    scaffold = _scaffold_of(view)
    frame = scaffold.frame.copy()
    width = view.columns - scaffold.gutter
    if scaffold.foot and width > 0:
        if view.scale:
            name = view.scale.name if scaffold.gutter else ""
            _ticks(frame, view.scale.ticks(view.x, width), scaffold.height + 1, scaffold.gutter, name)
        draw_marks(frame, view.marks, view.x, (scaffold.gutter, width, scaffold.height + 1))
    _head(frame, view, width)
    if scaffold.height > 0 and width > 0:
        plot = frame.part(scaffold.gutter, 1, width, scaffold.height)
        for series in view.series:
            _line(plot, view, series, width, scaffold.height)
        for series in view.series:
            draw_points(plot, view.x, view.y, series)
    return frame


def plot_of(view: View) -> Region:
    """The rectangle of a chart that its curves are in; empty where there is no room for any."""
    scaffold = _scaffold_of(view)
    return Region(scaffold.gutter, 1, max(0, view.columns - scaffold.gutter), scaffold.height)


def with_head(frame: Frame, view: View) -> Frame:
    """The plot of a picture below what a later view says of the same series."""
    frame = frame.copy()
    frame.characters[0] = ord(" ")
    _head(frame, view, view.columns - _scaffold_of(view).gutter)
    return frame


def _drawable(series: Series) -> bool:
    return not math.isnan(series.curve.last) or any(math.isfinite(value) for _, value in series.points)


def _scaffold_of(view: View) -> _Scaffold:
    return _scaffold(view.columns, view.rows, view.x, view.y, steps=view.scale is None)


@lru_cache(maxsize=32)
def _scaffold(columns: int, rows: int, x: Axis, y: Axis, *, steps: bool) -> _Scaffold:
    frame = Frame.blank(columns, rows)
    foot = 2 if rows >= 6 else 0
    height = max(0, rows - 1 - foot)
    ticks = y.ticks(max(2, min((height + 1) // 2, max(6, height // 4))))
    texts = y.labels(ticks)
    gutter = max((4, *map(len, texts))) + 2
    if columns < gutter + 12:
        gutter = 0
    if gutter and height:
        _value_axis(frame, y, height, gutter, zip(ticks, texts, strict=True), lines=height - bool(foot))
    if foot:
        _foot(frame, height + 1, gutter)
        if steps:
            ticks = x.ticks(max(2, (columns - gutter) // 8))
            places = (x.fraction(np.array(ticks)) * (columns - gutter)).astype(np.int64).tolist()
            _ticks(frame, zip(places, labels(ticks), strict=True), height + 1, gutter)
    return _Scaffold(frame, gutter, height, bool(foot))


def _head(frame: Frame, view: View, width: int) -> None:
    """Write title, latest values, and what is missing above a plot; less of it where it does not fit.

    What goes first are the values of many series, or the names of two. What goes next is what the lens does.
    """
    several, many = len(view.series) > 1, len(view.series) > 2
    title, notes = view.title, _notes(view)
    entries = _legend(view, width, named=several)
    used = sum(map(_length, entries)) + min(map(len, notes))
    if len(title) + used > view.columns:
        entries = _legend(view, width, named=many, valued=not many)
        used = sum(map(_length, entries)) + min(map(len, notes))
    if view.lens.words and len(title) + len(view.lens.words) + 3 + used <= view.columns:
        title = f"{title} ({view.lens.words})"
    frame.write(0, 0, title, "title")
    x = len(title)
    for place, entry in enumerate(entries):
        left = len(entries) - place
        rest = len(f" +{left - 1}") if many and left > 1 else 0
        if x + _length(entry) + rest > view.columns:
            entry = [(f" +{left}", "note")] if many and x + len(f" +{left}") <= view.columns else []
            left = 1
        for text, style in entry:
            frame.write(x, 0, text, style)
            x += len(text)
        if left == 1:
            break
    note = next((note for note in notes if x + len(note) < view.columns), "")
    asked = view.lens.log or view.lens.clip or any(series.curve.gaps for series in view.series)
    frame.write(view.columns - len(note), 0, note, "warning" if asked else "note")
    if view.explains and not note:
        key = words(view.marks, view.x, width, view.columns - x - 1)
        frame.write(view.columns - len(key), 0, key, "note")


def _notes(view: View) -> list[str]:
    """What is not drawn of the curves: gaps, and what is beyond the value axis; in many words and in few."""
    gaps = sum(series.curve.gaps for series in view.series)
    gap = f"{gaps} gap{'s' * (gaps != 1)}" if gaps else ""
    beyond = told(view.series, view.x, view.y, clipped=view.lens.clip or not view.lens.log)
    return [", ".join(filter(None, (words, gap))) for words in beyond] if beyond else [gap]


def _legend(view: View, width: int, *, named: bool, valued: bool = True) -> list[list[tuple[str, str]]]:
    """What is said of each series that has a value: pieces of text with their styles."""
    space = " " if view.title else ""
    return [
        [
            (f"{space}{_LINE if series.curve.count or are_joined(view.x, series, width) else POINT} ", series.style),
            (f"{series.name} " if named else "", "note"),
            (f"{view.value(value)} " if valued else "", "title"),
        ]
        for series in view.series
        if not math.isnan(value := _latest(series))
    ]


def _length(entry: list[tuple[str, str]]) -> int:
    return sum(len(text) for text, _ in entry)


def _latest(series: Series) -> float:
    if series.curve.count:
        return series.curve.last
    return series.points[-1][1] if series.points else math.nan


def _value_axis(
    frame: Frame, axis: Axis, height: int, gutter: int, ticks: Iterable[tuple[float, str]], *, lines: int
) -> None:
    """Write labels and, in so many rows, lines across the plot: in a last row, the line below it is near enough."""
    for y in range(1, height + 1):
        frame.write(gutter - 1, y, "│", "axis")
    for value, text in ticks:
        row = int(raster.dot_rows(axis.fraction(np.array([value])), height)[0]) // 4
        frame.write(gutter - 2 - len(text), row + 1, text, "label")
        frame.write(gutter - 1, row + 1, "┤", "axis")
        if row < lines:
            frame.write(gutter, row + 1, "┈" * frame.characters.shape[1], "grid")


def _foot(frame: Frame, y: int, gutter: int) -> None:
    frame.write(gutter, y, "─" * (frame.characters.shape[1] - gutter), "axis")
    if gutter:
        frame.write(gutter - 1, y, "└", "axis")


def _ticks(frame: Frame, ticks: Iterable[tuple[int, str]], y: int, gutter: int, name: str = "") -> None:
    """Write labels at columns of the plot, as many as do not touch, and left of them what they count."""
    columns = frame.characters.shape[1]
    frame.write(0, y + 1, name, "note")
    free = least = len(name) + 1 if name else 0
    for place, text in ticks:
        x = gutter + min(place, columns - gutter - 1)
        start = max(least, min(x - len(text) // 2, columns - len(text)))
        if start >= free:
            frame.write(x, y, "┬", "axis")
            frame.write(start, y + 1, text, "label")
            free = start + len(text) + 1


def _line(plot: Frame, view: View, series: Series, width: int, height: int) -> None:
    """Draw a curve's mean, and behind it all that lies between its extremes, to within a dot.

    Of a smoothed curve the mean is behind too, and the smoothed one is in front.
    """
    if not series.curve.count:
        return
    curve = series.seen(view.x.low, view.x.high)
    low, high, mean = _resampled(curve, view, width)
    band = raster.trace(low, high, height) & _SPARSE
    if view.lens.smoothing:
        paint(plot, band | raster.trace(mean, mean, height), f"{series.style}-band")
        _, _, mean = _resampled(smoothed(curve, view.lens.smoothing), view, width)
    else:
        paint(plot, band, f"{series.style}-band")
    paint(plot, raster.trace(mean, mean, height), series.style)


def _resampled(curve: Curve, view: View, width: int) -> tuple[Floats, Floats, Floats]:
    """The lowest, the highest and the mean value of each column of dots, as fractions of the height."""
    if view.lens.log:
        curve = positive(curve)
    low, high, mean = (view.y.fraction(values) for values in curve.columns(view.x.low, view.x.high, 2 * width))
    if view.lens.log:
        low[np.isnan(low) & ~np.isnan(high)] = 0  # down to where no logarithm goes
    return low, high, mean
