"""A whole chart as two arrays: a character and a style for every cell. No widget, no colours, no state."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import numpy as np
import numpy.typing as npt
from textual.geometry import Region

from accel_tui.widgets.chart import raster
from accel_tui.widgets.chart.axes import Axis, labels, significant
from accel_tui.widgets.chart.series import Colour, Series

COLOURS: tuple[str, ...] = get_args(Colour)
STYLES = ("title", "note", "axis", "label", "grid", *COLOURS, *(f"{colour}-band" for colour in COLOURS))
"""What a cell can be; style ids are places in this tuple."""

_ID = {name: number for number, name in enumerate(STYLES)}
_POINT = "●"
_LINE = "━━"
_SPARSE = np.uint8(0b10010101)  # every other dot: the mean stands out from the band that it runs through
_MERGE = 6  # cells: to move the cursor and set a colour again costs more bytes than to send these


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
    """

    columns: int
    rows: int
    x: Axis
    y: Axis
    series: tuple[Series, ...] = ()
    title: str = ""
    empty: str = ""
    value: Callable[[float], str] = significant


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A picture of a chart.

    Attributes:
        characters: Code points, of shape ``[rows, columns]``.
        styles: Places in :data:`STYLES`, likewise; without meaning where the character is a space.
    """

    characters: npt.NDArray[np.uint32]
    styles: npt.NDArray[np.uint8]

    @classmethod
    def blank(cls, columns: int, rows: int) -> "Frame":
        """A picture of nothing."""
        return cls(np.full((rows, columns), ord(" "), "<u4"), np.zeros((rows, columns), np.uint8))

    def text(self, row: int) -> str:
        """The characters of a row."""
        return str(self.characters[row].tobytes(), "utf-32-le")

    def runs(self, row: int) -> list[tuple[str, str]]:
        """A row as pieces of text, each with the name of its style."""
        text = self.text(row)
        seen = np.flatnonzero(self.characters[row] != ord(" "))
        styles = self.styles[row, seen]
        changes = np.flatnonzero(np.diff(styles, prepend=styles[:1])) if seen.size else seen
        starts = [0, *seen[changes].tolist(), len(text)]
        names = [STYLES[0], *(STYLES[number] for number in styles[changes])]
        if seen.size:
            names[0] = STYLES[styles[0]]
        return [(text[start:end], name) for start, end, name in zip(starts, starts[1:], names, strict=False)]

    def write(self, x: int, y: int, text: str, style: str) -> None:
        """Put text into a row, cut off at its end; outside rows it is lost."""
        text = text[: max(0, self.characters.shape[1] - x)]
        if text and 0 <= y < self.characters.shape[0]:
            self.characters[y, x : x + len(text)] = np.frombuffer(text.encode("utf-32-le"), "<u4")
            self.styles[y, x : x + len(text)] = _ID[style]


def damage(old: Frame, new: Frame) -> list[Region]:
    """Find the cells that differ between two pictures of one size: few regions, each within a row."""
    changed = (old.characters != new.characters) | ((old.styles != new.styles) & (new.characters != ord(" ")))
    regions = []
    for y in np.flatnonzero(changed.any(axis=1)).tolist():
        cells = np.flatnonzero(changed[y])
        cuts = np.flatnonzero(np.diff(cells) > _MERGE)
        firsts = cells[[0, *(cuts + 1)]].tolist()
        lasts = cells[[*cuts, -1]].tolist()
        regions += [Region(first, y, last - first + 1, 1) for first, last in zip(firsts, lasts, strict=True)]
    return regions


def render(view: View) -> Frame:
    """Draw a chart. What does not fit is left out: first the step labels, then the value labels, then the plot."""
    frame = Frame.blank(view.columns, view.rows)
    _head(frame, view)
    foot = 2 if view.rows >= 6 else 0
    height = view.rows - 1 - foot
    if height < 1:
        return frame
    y_ticks = view.y.ticks(max(2, min((height + 1) // 2, max(6, height // 4))))
    y_labels = labels(y_ticks)
    gutter = max((4, *map(len, y_labels))) + 2
    if view.columns < gutter + 12:
        gutter = 0
    width = view.columns - gutter
    plot = Frame(frame.characters[1 : 1 + height, gutter:], frame.styles[1 : 1 + height, gutter:])
    drawn = any(not math.isnan(series.curve.last) or series.points for series in view.series)
    if gutter:
        _value_axis(frame, view, height, gutter, y_ticks, y_labels)
    if foot:
        _step_axis(frame, view, height + 1, gutter)
    if drawn:
        for series in view.series:
            _draw(plot, view, series, width, height)
    else:
        counted = any(series.curve.count for series in view.series)
        message = "no finite value so far" if counted else view.empty
        frame.write(gutter + max(0, (width - len(message)) // 2), 1 + (height - 1) // 2, message, "note")
    return frame


def _head(frame: Frame, view: View) -> None:
    """Write title, latest values and gaps; on a narrow chart without the names of the series."""
    gaps = sum(series.curve.gaps for series in view.series)
    note = f"{gaps} gap{'s' * (gaps != 1)}" if gaps else ""
    for named in (len(view.series) > 1, False):
        pieces = [(view.title, "title")] if view.title else []
        for series in view.series:
            if math.isnan(value := _latest(series)):
                continue
            mark = _LINE if series.curve.count else _POINT
            pieces.append((f" {mark} " if pieces else f"{mark} ", series.style))
            if named:
                pieces.append((f"{series.name} ", "note"))
            pieces.append((f"{view.value(value)} ", "title"))
        if sum(len(text) for text, _ in pieces) + len(note) <= view.columns:
            break
    x = 0
    for text, style in pieces:
        frame.write(x, 0, text, style)
        x += len(text)
    if x + len(note) <= view.columns:
        frame.write(view.columns - len(note), 0, note, "warning")


def _latest(series: Series) -> float:
    if series.curve.count:
        return series.curve.last
    return series.points[-1][1] if series.points else math.nan


def _value_axis(frame: Frame, view: View, height: int, gutter: int, ticks: list[float], texts: list[str]) -> None:
    frame.characters[1 : height + 1, gutter - 1] = ord("│")
    frame.styles[1 : height + 1, gutter - 1] = _ID["axis"]
    rows = raster.dot_rows(view.y.fraction(np.array(ticks)), height) // 4
    for row, text in zip(rows.tolist(), texts, strict=True):
        frame.write(gutter - 2 - len(text), row + 1, text, "label")
        frame.write(gutter - 1, row + 1, "┤", "axis")
        frame.write(gutter, row + 1, "┈" * (view.columns - gutter), "grid")


def _step_axis(frame: Frame, view: View, y: int, gutter: int) -> None:
    width = view.columns - gutter
    frame.write(gutter, y, "─" * width, "axis")
    if gutter:
        frame.write(gutter - 1, y, "└", "axis")
    ticks = view.x.ticks(max(2, width // 8))
    free = 0
    for fraction, text in zip(view.x.fraction(np.array(ticks)).tolist(), labels(ticks), strict=True):
        x = gutter + min(int(fraction * width), width - 1)
        start = max(0, min(x - len(text) // 2, view.columns - len(text)))
        if start < free:
            continue
        frame.write(x, y, "┬", "axis")
        frame.write(start, y + 1, text, "label")
        free = start + len(text) + 1


def _draw(plot: Frame, view: View, series: Series, width: int, height: int) -> None:
    curve = series.curve
    if curve.count:
        low, high, mean = (view.y.fraction(v) for v in curve.columns(view.x.low, view.x.high, 2 * width))
        _paint(plot, raster.trace(low, high, height) & _SPARSE, f"{series.style}-band")
        _paint(plot, raster.trace(mean, mean, height), series.style)
    if series.points:
        places, values = np.array(series.points, dtype=np.float64).T
        x, y = view.x.fraction(places), view.y.fraction(values)
        shown = (x >= 0) & (x <= 1) & ~np.isnan(y)
        columns = np.minimum((x[shown] * width).astype(np.int64), width - 1)
        rows = raster.dot_rows(y[shown], height) // 4
        plot.characters[rows, columns] = ord(_POINT)
        plot.styles[rows, columns] = _ID[series.style]


def _paint(plot: Frame, patterns: raster.Patterns, style: str) -> None:
    """Put braille over what is there, where it has dots."""
    mask = patterns > 0
    plot.characters[mask] = patterns[mask] + np.uint32(raster.BLANK)
    plot.styles[mask] = _ID[style]
