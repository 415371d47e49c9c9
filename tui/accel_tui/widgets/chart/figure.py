"""Charts and plots as shapes, for files: their series, axes and marks in points instead of cells."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from accel_tui.run_state.curve import Floats
from accel_tui.run_state.marks import MarkKind
from accel_tui.widgets.chart.chart_view import ChartSeries, ChartView, Colour
from accel_tui.widgets.chart.draw_series import curve_lines
from accel_tui.widgets.chart.draw_values import BEST
from accel_tui.widgets.chart.plot import Plot, PlotSeries, plot_view

Level = Literal["heat-0", "heat-1", "heat-2", "heat-3", "heat-4"]
"""Colours of levels, from none to full."""

Ink = Colour | Level | Literal["text", "text-muted", "grid", "accent", "background"]
"""Colours of shapes: of series and levels, or of what is around them."""

Point = tuple[float, float]

TEXT = 12.0
"""Size of texts in points."""

LETTER = 0.58 * TEXT
"""Width of a character, about."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 14.0, 30.0, 34.0  # between the plot and the edges of the figure
_POINTS_A_TICK = 80.0
_POINTS_A_LABEL = 30.0
_MOST_DOTS = 60
_SHOWN_MARKS: dict[MarkKind, Ink] = {
    MarkKind.RESUMED: "warning",
    MarkKind.PART: "text-muted",
    MarkKind.RECOVERED: "error",
}
"""Marks that are drawn, as they explain jumps of curves."""


@dataclass(frozen=True, slots=True)
class FigureLine:
    """Joined points."""

    points: Sequence[Point]
    ink: Ink
    width: float = 1.5
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Area:
    """A filled polygon."""

    points: Sequence[Point]
    ink: Ink
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Label:
    """A text on one line."""

    at: Point
    """Its baseline, at the anchor."""
    text: str
    ink: Ink
    anchor: Literal["start", "middle", "end"] = "start"
    is_bold: bool = False


Shape = FigureLine | Area | Label


@dataclass(frozen=True, slots=True)
class ChartFigure:
    """A drawing."""

    width: float
    """In points, as the height."""
    height: float
    title: str
    """What it shows, for screen readers."""
    shapes: tuple[Shape, ...]


def figure_of(view: ChartView, width: float = 720.0, height: float = 260.0) -> ChartFigure:
    """Draw a chart.

    Args:
        view: The chart's inputs; its size in cells does not matter.
        width: Width in points.
        height: Height in points.
    """
    place = _Place(view, width, height)
    return ChartFigure(width, height, view.title.strip("▸ "), tuple(_chart(place)))


def figure_of_plot(plot: Plot) -> ChartFigure:
    """Draw a plot, 560 by 320 points."""
    place = _Place(plot_view(plot, 100, 20), 560.0, 320.0)
    return ChartFigure(place.width, place.height, plot.title, tuple(_plot(plot, place)))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a chart is drawn."""

    view: ChartView
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.width - _RIGHT

    @property
    def bottom(self) -> float:
        return self.height - _BOTTOM

    def x(self, fractions: Floats) -> Floats:
        return _LEFT + np.clip(fractions, 0.0, 1.0) * (self.right - _LEFT)

    def y(self, fractions: Floats) -> Floats:
        return self.bottom - np.clip(fractions, 0.0, 1.0) * (self.bottom - _TOP)

    def at_step(self, step: float) -> float:
        return float(self.x(self.view.x.fraction(np.array([step])))[0])

    def points(self, across: Floats, up: Floats) -> list[list[Point]]:
        """The parts of a line between its gaps."""
        parts: list[list[Point]] = [[]]
        for x, y in zip(self.x(across).tolist(), self.y(up).tolist(), strict=True):
            if math.isnan(y):
                parts.append([])
            else:
                parts[-1].append((x, y))
        return [part for part in parts if part]


def _chart(plot: _Place) -> Iterator[Shape]:
    yield from _axes(plot, plot.view.scale.name if plot.view.scale else "step")
    yield from _marks(plot)
    for series in plot.view.series:
        yield from _curve(plot, series)
    for series in plot.view.series:
        yield from _points(plot, series)
    if (best := plot.view.best) and plot.view.x.low <= best[0] <= plot.view.x.high:
        yield _star(plot, best)
    yield from _header(plot)


def _plot(plot: Plot, place: _Place) -> Iterator[Shape]:
    yield from _axes(place, plot.x_name)
    for each in sorted(plot.series, key=lambda series: series.kind not in ("bars", "band")):  # these are behind lines
        yield from _plot_series(each, place)
    names = " over ".join(filter(None, (plot.y_name, plot.x_name)))
    ends = ", ".join(filter(None, (plot.note, names)))
    legend = [(each.name, _ink(each)) for each in plot.series if each.name]
    yield from _title(place, plot.title, legend, ends)


def _ink(series: PlotSeries) -> Ink:
    return "text-muted" if series.style == "axis" else series.style


def _plot_series(series: PlotSeries, place: _Place) -> Iterator[Shape]:
    x, y, ink = place.view.x, place.view.y, _ink(series)
    across, up = series.fractions(x, y)
    match series.kind:
        case "rule":
            for at in place.x(across[(across >= 0) & (across <= 1)]).tolist():
                yield FigureLine(((at, _TOP), (at, place.bottom)), ink, 1.0, is_dashed=True)
        case "band":
            low, high = up
            forth = list(zip(place.x(across).tolist(), place.y(high).tolist(), strict=True))
            back = list(zip(place.x(across).tolist(), place.y(low).tolist(), strict=True))
            yield Area((*forth, *reversed(back)), ink, 0.35 if series.covers else 0.2)
        case "bars":
            edges, zero = place.x(across).tolist(), float(place.y(y.fraction(np.zeros(1)))[0])
            for left, right, top in zip(edges[:-1], edges[1:], place.y(up).tolist(), strict=True):
                if top < zero:
                    yield Area(((left, zero), (left, top), (right, top), (right, zero)), ink, 0.6)
        case "line":
            yield from (FigureLine(part, ink) for part in place.points(across, up) if len(part) > 1)
        case "dots" | "mark":
            inside = (np.abs(across - 0.5) <= 0.5) & (np.abs(up - 0.5) <= 0.5)
            radius = 3.0 if series.kind == "mark" else 1.2
            for point in zip(place.x(across[inside]).tolist(), place.y(up[inside]).tolist(), strict=True):
                yield _dot(point, ink, radius)


def _axes(plot: _Place, name: str) -> Iterator[Shape]:
    view = plot.view
    ticks = view.y.ticks(max(2, int((plot.bottom - _TOP) / _POINTS_A_LABEL)))
    heights = plot.y(view.y.fraction(np.array(ticks, np.float64))).tolist()
    for height, text in zip(heights, view.y.labels(ticks), strict=True):
        yield FigureLine(((_LEFT, height), (plot.right, height)), "grid", 1.0)
        yield Label((_LEFT - 6, height + TEXT / 3), text, "text-muted", "end")
    for across, text in _step_labels(plot):
        if across < plot.right - 40 - len(name) * LETTER:
            yield Label((across, plot.bottom + 16), text, "text-muted", "middle")
            yield FigureLine(((across, plot.bottom), (across, plot.bottom + 4)), "text-muted", 1.0)
    yield Label((plot.right, plot.bottom + 16), name, "text-muted", "end")
    yield FigureLine(((_LEFT, plot.bottom), (plot.right, plot.bottom)), "text-muted", 1.0)


def _step_labels(plot: _Place) -> Iterator[tuple[float, str]]:
    view, length = plot.view, plot.right - _LEFT
    if view.scale:
        cells = int(length / LETTER)
        for cell, text in view.scale.ticks(view.x, cells):
            yield _LEFT + (cell + 0.5) / cells * length, text
        return
    ticks = view.x.ticks(max(2, int(length / _POINTS_A_TICK)))
    for tick, text in zip(ticks, view.x.labels(ticks), strict=True):
        yield plot.at_step(tick), text


def _marks(plot: _Place) -> Iterator[Shape]:
    for kind, ink in _SHOWN_MARKS.items():
        track = plot.view.marks.get(kind)
        for step in track.steps if track else ():
            if plot.view.x.low < step < plot.view.x.high:
                across = plot.at_step(step)
                yield FigureLine(((across, _TOP), (across, plot.bottom)), ink, 1.0, is_dashed=True)


def _curve(plot: _Place, series: ChartSeries) -> Iterator[Shape]:
    """The range of a curve's values, and its mean, which is smoothed if asked for."""
    if not series.curve.end_step:
        return
    columns = int(plot.right - _LEFT)
    across = (np.arange(columns) + 0.5) / columns
    (low, high), *means = curve_lines(plot.view, series, columns)
    if not np.array_equal(low, high, equal_nan=True):
        known = ~(np.isnan(low) | np.isnan(high))
        forth = zip(plot.x(across[known]).tolist(), plot.y(high[known]).tolist(), strict=True)
        back = zip(plot.x(across[known]).tolist(), plot.y(low[known]).tolist(), strict=True)
        yield Area((*forth, *reversed(tuple(back))), series.style, 0.25)
    for part in plot.points(across, means[-1][0]):
        yield FigureLine(part if len(part) > 1 else (part[0], (part[0][0] + 1, part[0][1])), series.style)


def _points(plot: _Place, series: ChartSeries) -> Iterator[Shape]:
    """Points such as validations: joined, with a dot for each unless there are many."""
    shown = [(step, value) for step, value in series.points if plot.view.x.low <= step <= plot.view.x.high]
    if not shown:
        return
    steps, values = np.array(shown, np.float64).T
    up = plot.view.y.fraction(np.where(np.isfinite(values), values, np.nan))
    parts = plot.points(plot.view.x.fraction(steps), up)
    if len(shown) > 1:
        yield from (FigureLine(part, series.style, 2.0) for part in parts if len(part) > 1)
    if len(shown) <= _MOST_DOTS:
        yield from (_dot(point, series.style) for part in parts for point in part)


def _dot(at: Point, ink: Ink, radius: float = 3.0) -> Area:
    turns = [math.tau * turn / 8 for turn in range(8)]
    return Area(tuple((at[0] + radius * math.cos(turn), at[1] + radius * math.sin(turn)) for turn in turns), ink)


def _star(plot: _Place, best: tuple[float, float]) -> Area:
    across = plot.at_step(best[0])
    up = float(plot.y(plot.view.y.fraction(np.array([best[1]])))[0])
    tips = ((7.0 if tip % 2 == 0 else 3.0, math.tau * (tip / 10 - 0.25)) for tip in range(10))
    return Area(tuple((across + far * math.cos(turn), up + far * math.sin(turn)) for far, turn in tips), "warning")


def _header(plot: _Place) -> Iterator[Shape]:
    """The title, the series with their last values, and at the right how they are drawn and what is best."""
    view = plot.view
    note = view.note.replace(BEST, "at step")  # a sign that not every font has
    ends = ", ".join(filter(None, (view.description, note, _beyond(view))))
    values = ["" if math.isnan(each.latest) else f" {view.value(each.latest)}" for each in view.series]
    named = len(view.series) > 1
    legend: list[tuple[str, Ink]] = [
        (f"{each.name if named else ''}{value}".strip(), each.style)
        for each, value in zip(view.series, values, strict=True)
    ]
    yield from _title(plot, view.title.strip("▸ "), legend, ends, has_signs=named)


def _title(
    plot: _Place, title: str, legend: Sequence[tuple[str, Ink]], ends: str, *, has_signs: bool = True
) -> Iterator[Shape]:
    """The title, as many names with their colours as fit, and a text at the right."""
    yield Label((8.0, 18), title, "text", is_bold=True)
    across = 8.0 + (len(title) + 2) * LETTER * 1.08
    room = plot.width - 24 - across
    for text, ink in legend:
        width = (len(text) + 2) * LETTER + 18 * has_signs
        if width > room - len(ends) * LETTER:
            break
        if has_signs:
            yield FigureLine(((across, 14), (across + 12, 14)), ink, 3.0)
        yield Label((across + 18 * has_signs, 18), text, "text")
        across, room = across + width, room - width
    if len(ends) * LETTER <= room:
        yield Label((plot.width - 8, 18), ends, "text-muted", "end")


def _beyond(view: ChartView) -> str:
    """That some values are not on the axis, as it leaves outliers out."""
    first, stop = max(view.x.low, 0.0), view.x.high
    values: list[float] = []
    for series in view.series:
        curve = series.curve_in(first, stop)
        span = slice(*curve.span(first, stop))
        values += [
            *curve.high[span].tolist(),
            *curve.low[span].tolist(),
            *(value for _, value in series.within(first, stop)),
        ]
    slack = 1e-6 * (view.y.high - view.y.low)
    is_beyond = any(
        value > view.y.high + slack or value < view.y.low - slack for value in values if math.isfinite(value)
    )
    return "outliers at the edge" if is_beyond else ""
