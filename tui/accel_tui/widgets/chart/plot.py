"""A plot of values over any numbers, such as a ROC curve or a histogram; and the widget that shows one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from rich.segment import Segment
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from accel_tui.formatting.text import shorten
from accel_tui.run_state.curve import Floats
from accel_tui.widgets.chart import dots, raster
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.background import background_layout
from accel_tui.widgets.chart.cell_frame import STYLE_ID, Frame
from accel_tui.widgets.chart.cell_looks import look_of
from accel_tui.widgets.chart.chart_view import ChartView, Colour
from accel_tui.widgets.chart.draw_series import SPARSE, paint_range
from accel_tui.widgets.chart.value_axis import value_axis
from accel_tui.widgets.styled_text import TextSpan

LINE = "━━"
"""Sign of a line in a legend."""

BAND_SIGN = "▒▒"
"""Sign of a band in a legend."""

_SIGNS = {"line": LINE, "dots": "⣿", "mark": "●", "bars": "▇", "rule": "┊", "band": BAND_SIGN}
_BLOCKS = np.frombuffer("▁▂▃▄▅▆▇█".encode("utf-32-le"), np.uint32)
_EIGHTHS, _SHADE = 8, "▒"
_FILE_ROWS = 20  # of a plot that is made for a file


@dataclass(frozen=True, slots=True, eq=False)
class PlotSeries:
    """A part of a plot."""

    x: Floats
    """Positions, shape ``[points]``; of bars, their edges, shape ``[points + 1]``."""
    y: Floats
    """Values, shape ``[points]``; NaN is a gap. Of a band, its lower and upper values, shape ``[2, points]``."""
    kind: Literal["line", "dots", "mark", "bars", "rule", "band"] = "line"
    """``line`` joins the points, ``dots`` draws each, ``mark`` draws each as a large point, ``bars`` are from 0,
    ``rule`` is a vertical line at each position, without values, ``band`` is between two lines."""
    style: Colour | Literal["axis"] = "primary"
    """Name of its colour."""
    name: str = ""
    """Shown in the header; empty for none."""
    covers: bool = False
    """Whether a line replaces the dots below it, instead of adding to them; whether a band is stronger."""
    sign: str = ""
    """The character of a rule; empty for the usual one."""

    def fractions(self, x: Axis, y: Axis) -> tuple[Floats, Floats]:
        """Its positions and values as shares of two axes."""
        return x.fraction(np.asarray(self.x, np.float64)), y.fraction(np.asarray(self.y, np.float64))


@dataclass(frozen=True, slots=True, eq=False)
class Plot:
    """A plot with its axes."""

    title: str
    """Title in the header."""
    series: tuple[PlotSeries, ...]
    """The parts, the last on top."""
    note: str = ""
    """A note in the header, after the title."""
    x: Axis | None = None
    """Range of the positions; ``None`` for the range of the series."""
    y: Axis | None = None
    """Range of the values; ``None`` for the range of the series, 0 included for bars."""
    x_name: str = ""
    """Name of the positions, in the header where there is room."""
    y_name: str = ""
    """Name of the values."""
    has_tints: bool = True
    """Whether the terminal shows tints; else bands are dotted."""


def draw_plot(plot: Plot, columns: int, rows: int) -> Frame:
    """Draw a plot, its header in the first row."""
    view = plot_view(plot, columns, rows)
    x, y, layout = view.x, view.y, background_layout(view)
    frame = layout.frame.copy()
    if layout.plot:
        area = frame.part(*layout.plot)
        bars = [each for each in plot.series if each.kind == "bars"]
        _bars(area, bars, x, y, has_tints=plot.has_tints)
        for each in plot.series:
            if each.kind != "bars":
                draw_part(area, each, x, y, has_tints=plot.has_tints)
    frame.write_line(0, _header(plot, columns))
    return frame


def position_at(plot: Plot, columns: int, rows: int, cell: int) -> float | None:
    """The position on the x axis below a cell of a plot that :func:`draw_plot` draws; ``None`` beside the axis."""
    view = plot_view(plot, columns, rows)
    area = background_layout(view).plot
    fraction = (cell - area.x + 0.5) / max(area.width, 1)
    return view.x.at(fraction) if 0 <= fraction <= 1 else None


def plot_view(plot: Plot, columns: int, rows: int) -> ChartView:
    """The axes of a plot, for a width and a height in cells."""
    values = [each.y for each in plot.series if each.kind != "rule"]
    has_bars = any(each.kind == "bars" for each in plot.series)
    if has_bars:
        values.append(np.zeros(1))
    x = plot.x or _axis([each.x for each in plot.series])
    return ChartView(columns, rows, x, plot.y or _axis(values, max(rows - 3, 0), may_count=has_bars))


def _axis(parts: list[Floats], rows: int = 0, *, may_count: bool = False) -> Axis:
    values = np.concatenate([np.ravel(part) for part in parts]) if parts else np.array([])
    values = values[np.isfinite(values)]
    if not values.size:
        return Axis(0.0, 1.0)
    low, high = float(values.min()), float(values.max())
    if rows:
        return value_axis(low, high, rows=rows, whole=may_count and not np.any(values % 1))
    return Axis.of_ends(low, high)


def draw_part(area: Frame, series: PlotSeries, x: Axis, y: Axis, *, has_tints: bool) -> None:
    """Draw a part of a plot, other than bars, over the parts before it.

    Args:
        area: The cells of the plot, without its axes.
        series: The part.
        x: The axis of its positions.
        y: The axis of its values.
        has_tints: Whether the terminal shows tints; else bands are dotted.
    """
    if series.kind == "band":
        _draw_band(area, series, x, y, has_tints=has_tints)
        return
    rows, columns = area.characters.shape
    across = x.fraction(np.asarray(series.x, np.float64))
    if series.kind == "rule":
        for cell in np.floor(across[(across >= 0) & (across <= 1)] * columns).astype(int).clip(0, columns - 1):
            is_free = ~np.isin(area.characters[:, cell], (*_BLOCKS, ord("▀")))  # bars have no gaps
            area.characters[is_free, cell], area.styles[is_free, cell] = (
                ord(series.sign or _SIGNS["rule"]),
                STYLE_ID[series.style],
            )
        return
    up = y.fraction(np.asarray(series.y, np.float64))
    if series.kind == "mark":
        seen = (np.abs(across - 0.5) <= 0.5) & (np.abs(up - 0.5) <= 0.5)
        cells = np.floor(across[seen] * columns).astype(int).clip(0, columns - 1)
        lines = raster.dot_rows(up[seen], rows) // 4
        area.characters[lines, cells], area.styles[lines, cells] = ord(_SIGNS["mark"]), STYLE_ID[series.style]
        return
    draw = dots.polyline if series.kind == "line" else dots.scatter
    patterns = draw(across, up, columns, rows)
    if series.covers:
        area.cover(patterns > 0, series.style)
        area.characters[patterns > 0] = raster.BLANK
    _paint(area, patterns, series.style)


def _bars(area: Frame, bars: Sequence[PlotSeries], x: Axis, y: Axis, *, has_tints: bool) -> None:
    """Draw solid bars in eighths of a cell, the lower ones in front of the higher ones; one with a value is seen."""
    rows, columns = area.characters.shape
    zero = float(y.fraction(np.zeros(1))[0])
    heights = np.array([_heights(each, x, y, columns) for each in bars]).reshape(len(bars), columns)
    heights = np.where(heights > zero + raster.EDGE, heights.clip(0, 1), np.nan)
    front_last = np.argsort(np.nan_to_num(-heights, nan=1.0), axis=0, kind="stable")
    behind = np.zeros(columns, int)
    for places in front_last:
        top = np.take_along_axis(heights, places[None], axis=0)[0]
        # From the dot of the value, as a line has it.
        eighths = np.where(np.isnan(top), 0, 2 * (4 * rows - raster.dot_rows(np.nan_to_num(top), rows)))
        # A cell has one colour: in front of a higher bar, a bar ends at the nearest cell.
        whole = np.minimum(np.maximum(8 * np.rint(eighths / 8).astype(int), 16), 8 * (behind // 8))
        eighths = np.where((behind > 8) & (eighths > 8), whole, eighths)
        behind = np.maximum(behind, eighths)
        for row in range(rows):
            part = np.clip(eighths - 8 * (rows - 1 - row), 0, 8)
            seen = part > 0
            if row == rows - 1:  # bars stand on the axis, which is in the middle of its row, and its ticks stay
                seen &= area.characters[row] != ord("┬")
            area.characters[row][seen] = ord("▀") if row == rows - 1 else _BLOCKS[part[seen] - 1]
            area.styles[row][seen] = np.array([STYLE_ID[each.style] for each in bars])[places[seen]]
            if not has_tints:  # without colours, the shades tell the first ones from the last one
                is_shaded = seen & ((part >= _EIGHTHS / 2) | (row == rows - 1))
                area.characters[row][is_shaded & (places < len(bars) - 1)] = ord(_SHADE)


def _heights(series: PlotSeries, x: Axis, y: Axis, columns: int) -> Floats:
    """The height of the bars at each of some columns, as a share of the axis; NaN where there is none."""
    if not len(series.y):
        return np.full(columns, np.nan)
    edges, up = series.fractions(x, y)
    bins = np.searchsorted(edges, (np.arange(columns) + 0.5) / columns, side="right") - 1
    heights = np.where((bins >= 0) & (bins < len(up)), up[np.clip(bins, 0, len(up) - 1)], np.nan)
    starts = np.clip(np.floor(edges[:-1] * columns).astype(int), 0, columns - 1)
    np.fmax.at(heights, starts, up)  # of several bins in a column, the highest counts
    return heights


def _draw_band(area: Frame, series: PlotSeries, x: Axis, y: Axis, *, has_tints: bool) -> None:
    """Tint what is between two lines, or else dot it."""
    rows, columns = area.characters.shape
    middles = (np.arange(2 * columns) + 0.5) / (2 * columns)
    across = x.fraction(np.asarray(series.x, np.float64))
    if not len(across):
        return
    low, high = (
        np.interp(middles, across, y.fraction(np.asarray(line, np.float64)), left=np.nan, right=np.nan)
        for line in series.y
    )
    covered = raster.trace(low, high, rows)
    if has_tints:
        paint_range(area, covered, series.style, "range" if series.covers else "area")
    else:
        _paint(area, covered & SPARSE, f"{series.style}-band")


def _paint(area: Frame, patterns: raster.Patterns, style: str) -> None:
    """Add dots to the dots of the series below."""
    mask = patterns > 0
    below = np.where(area.characters >= raster.BLANK, area.characters - np.uint32(raster.BLANK), 0) & 0xFF
    has_dots = (area.characters >= raster.BLANK) & (area.characters <= raster.BLANK + 0xFF)
    both = np.where(has_dots, below, 0) | patterns
    area.cover(mask, style)
    area.characters[mask] = both[mask] + np.uint32(raster.BLANK)


def _sign(plot: Plot, series: PlotSeries) -> str:
    """The sign of a part in the legend: what it is drawn with."""
    last_bars = [each for each in plot.series if each.kind == "bars"][-1:]
    is_shaded = series.kind == "bars" and not plot.has_tints and series not in last_bars
    return series.sign or (_SHADE if is_shaded else _SIGNS[series.kind])


def _header(plot: Plot, columns: int) -> list[TextSpan]:
    """Title, note, legend, and the names of the axes, each as far as it fits."""
    named = sorted((each for each in plot.series if each.name), key=lambda each: each.kind == "band")
    looks = [f"{each.style}-band" if each.kind == "band" and not each.covers else each.style for each in named]
    legend = [
        [(f"  {_sign(plot, each)} ", look), (each.name, "label")] for each, look in zip(named, looks, strict=True)
    ]
    names = " over ".join(filter(None, (plot.y_name, plot.x_name)))
    title = shorten(plot.title, columns)
    length = partial(sum, start=len(title))
    spans: list[TextSpan] = [(title, "title")]
    for part in ([(f"  {plot.note}", "label")] * bool(plot.note), *legend, [(f"  {names}", "note")] * bool(names)):
        if length(len(text) for text, _ in [*spans[1:], *part]) <= columns:
            spans += part
    return spans


class PlotView(Widget):
    """Draws a plot for its size, once for all lines; a text while there is none."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "PlotView { width: 1fr; height: 1fr; }"

    empty: reactive[str] = reactive("")
    """The text without a plot."""

    _make: Callable[[int], Plot] | None = None
    _drawn: tuple[Size, Plot, Frame] | None = None

    def show(self, make: Callable[[int], Plot] | None) -> None:
        """Show the plot that ``make`` returns for a number of rows; the text :attr:`empty` for ``None``."""
        self._make, self._drawn = make, None
        self.refresh()

    @property
    def drawn(self) -> tuple[Plot, Frame] | None:
        """The plot at this size, and its cells; ``None`` without a plot or without room."""
        if self._make is None or not self.size:
            return None
        if self._drawn is None or self._drawn[0] != self.size:
            plot = self._make(self.size.height)
            self._drawn = self.size, plot, draw_plot(plot, *self.size)
        return self._drawn[1:]

    @property
    def shown(self) -> Plot | None:
        """The plot, for a file; ``None`` while there is none."""
        return self._make(_FILE_ROWS) if self._make else None

    def render_line(self, y: int) -> Strip:
        if self.drawn is None:
            return Strip([Segment("" if y else self.empty, look_of(self, "note"))])
        frame = self.drawn[1]
        if y >= frame.characters.shape[0]:
            return Strip.blank(self.size.width, self.rich_style)
        return Strip([Segment(text, look_of(self, name)) for text, name in frame.runs(y)])
