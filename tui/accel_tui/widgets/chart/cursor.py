"""The cursor of a chart, a line at a step with the values there; and mouse actions, posted as messages in steps."""

import bisect
import math
from dataclasses import dataclass

import numpy as np
from textual import events, on
from textual.message import Message

from accel_tui.terminal.dirty_regions import DirtyRegionWidget
from accel_tui.widgets.chart.background import plot_region
from accel_tui.widgets.chart.cell_frame import STYLE_ID, Frame
from accel_tui.widgets.chart.chart_view import ChartSeries, ChartView
from accel_tui.widgets.chart.raster import BLANK
from accel_tui.widgets.visibility import VisibilityMixin


def step_at(view: ChartView, x: int) -> float | None:
    """The step in the middle of a cell column; ``None`` outside the plot."""
    plot = plot_region(view)
    if not plot or x < plot.x:
        return None
    return view.x.low + (x - plot.x + 0.5) / plot.width * (view.x.high - view.x.low)


def column_of(view: ChartView, step: float) -> int | None:
    """The cell column of a step; ``None`` if it is not visible."""
    plot = plot_region(view)
    share = (step - view.x.low) / (view.x.high - view.x.low)
    return plot.x + min(int(share * plot.width), plot.width - 1) if plot and 0 <= share <= 1 else None


def with_cursor(frame: Frame, view: ChartView, step: int) -> Frame:
    """The frame with a line at a step, and the values there in its header."""
    column = column_of(view, step)
    if column is None:
        return frame
    plot = plot_region(view)
    frame = frame.copy()
    has_axis = view.axis_rows > 0
    for y in range(plot.y, plot.bottom):
        # Curves stay visible where the line crosses them.
        if not BLANK < frame.characters[y, column] <= BLANK + 0xFF:
            cell = frame.part(column, y, 1, 1)
            cell.cover(np.ones((1, 1), bool), "label")
            cell.characters[:] = ord("┴" if has_axis and y == plot.bottom - 1 else "│")
    if plot.bottom < view.rows:
        label = _place(view, step)
        _write_over(frame, plot.bottom, min(max(column - len(label) // 2, 0), view.columns - len(label)), label)
    _head(frame, view, step)
    return frame


def value_at(view: ChartView, series: ChartSeries, step: int) -> str:
    """The value of a series at a step, or its range within a bucket; empty if it has none."""
    if series.curve.end_step:
        found = series.curve_in(view.x.low, view.x.high).at(step)
        if found is None:
            return ""
        low, high = view.value(found[0]), view.value(found[1])
        return low if low == high else f"{low} to {high}"
    index = bisect.bisect_right(series.points, (step, math.inf))
    return view.value(series.points[index - 1][1]) if index else ""


def _place(view: ChartView, step: int) -> str:
    """The step on the x-axis, as its labels count."""
    if view.scale is None:
        return f"{step:,}"
    at = float(view.scale.at(np.array([step + 1.0]))[0])
    return "" if math.isnan(at) else view.scale.write(round(at, 2), 1.0)


def _write_over(frame: Frame, y: int, x: int, text: str) -> None:
    """Write into a row of labels, and remove the labels that it overlaps."""
    row = frame.text(y)
    start, end = max(x - 1, 0), min(x + len(text), len(row) - 1)
    while start and row[start - 1] != " " != row[start]:
        start -= 1
    while end + 1 < len(row) and row[end] != " " != row[end + 1]:
        end += 1
    frame.write(start, y, " " * (end + 1 - start), "label")
    frame.write(x, y, text, "title")


def _head(frame: Frame, view: ChartView, step: int) -> None:
    frame.characters[0] = ord(" ")
    frame.styles[0] = STYLE_ID["title"]
    frame.write(0, 0, view.title, "title")
    named = len(view.series) > 1
    entries = [(series, value) for series in view.series if (value := value_at(view, series, step))]
    if len(view.title) + sum(len(series.name) + len(value) + 6 for series, value in entries) > view.columns:
        named = len(view.series) > 2  # two series are distinguished by colour
    x = len(view.title) + 1
    for index, (series, value) in enumerate(entries):
        left = len(entries) - index
        length = 2 + (len(series.name) + 1) * named + len(value)
        if x + length + (len(f"  +{left - 1}") if left > 1 else 0) > view.columns and x + 2 <= view.columns:
            frame.write(x, 0, f"+{left}", "note")
            return
        sign = "─ " if series.curve.end_step else "━ "
        pieces = ((sign, series.style), (f"{series.name} " if named else "", "note"), (f"{value}  ", "title"))
        for text, style in pieces:
            frame.write(x, 0, text, style)
            x += len(text)
    if not entries:
        frame.write(x, 0, "nothing there", "note")


NOTCH = 0.8
"""Share of the visible steps that remains after zooming by a wheel notch."""


class ChartMouse(DirtyRegionWidget, VisibilityMixin):
    """A chart that posts messages about mouse actions."""

    ALLOW_SELECT = False

    @dataclass
    class Pointed(Message):
        """The mouse is over a step, or has left the plot; ``step`` is ``None`` then."""

        step: float | None

    @dataclass
    class Pressed(Message):
        """A step was clicked; ``times`` counts repeated clicks."""

        chart: "ChartMouse"
        step: float | None
        times: int

    @dataclass
    class Zoomed(Message):
        """The wheel zooms around a step."""

        step: float | None
        factor: float

    @dataclass
    class Dragged(Message):
        """Dragging moves the first visible step."""

        first: float

    @dataclass
    class Scrolled(Message):
        """The wheel scrolls to earlier steps (-1) or later ones (1)."""

        direction: int

    _drag: tuple[int, float] | None = None  # start of the drag, and the first visible step then
    _moved = False
    _pointed: float | None = None

    @property
    def _view(self) -> ChartView | None:
        """The chart's inputs, once it is drawn."""
        raise NotImplementedError

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Post the step under the mouse, or drag the axis."""
        if self._drag and self._view:
            x, first = self._drag
            self._moved = self._moved or event.x != x
            if self._moved and (plot := plot_region(self._view)):
                steps_per_column = (self._view.x.high - self._view.x.low) / plot.width
                self.post_message(self.Dragged(first + (x - event.x) * steps_per_column))
        else:
            self._point(self._step_at(event.x))

    def on_leave(self) -> None:
        self._point(None)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.button == 1 and self._view:
            self._drag, self._moved = (event.x, self._view.x.low), False
            self.capture_mouse()

    def on_mouse_up(self) -> None:
        self._drag = None
        self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        if event.button == 1 and not self._moved:
            self.post_message(self.Pressed(self, self._step_at(event.x), event.chain))

    @on(events.MouseScrollUp)
    @on(events.MouseScrollDown)
    @on(events.MouseScrollLeft)
    @on(events.MouseScrollRight)
    def _turn(self, event: events.MouseEvent) -> None:
        """Zoom in or out, or scroll with a modifier key."""
        event.stop()
        direction = -1 if isinstance(event, events.MouseScrollUp | events.MouseScrollLeft) else 1
        sideways = isinstance(event, events.MouseScrollLeft | events.MouseScrollRight)
        if sideways or event.shift or event.ctrl:
            self.post_message(self.Scrolled(direction))
        else:
            self.post_message(self.Zoomed(self._step_at(event.x), NOTCH**-direction))

    def _step_at(self, x: int) -> float | None:
        return step_at(self._view, x) if self._view else None

    def _point(self, step: float | None) -> None:
        if step != self._pointed:
            self._pointed = step
            self.post_message(self.Pointed(step))
