"""The chart widget: caches its last frame, and repaints only cells that change."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.geometry import Region
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from accel_tui.run_state.marks import Marks
from accel_tui.widgets.chart.axes import Axis, significant, step_axis
from accel_tui.widgets.chart.background import background_layout, draw_background, plot_region
from accel_tui.widgets.chart.cell_frame import Frame, changed_cells
from accel_tui.widgets.chart.cell_looks import look_of
from accel_tui.widgets.chart.chart_header import Legend, chart_header, legend_of
from accel_tui.widgets.chart.chart_view import (
    LABELS,
    PLAIN,
    ChartOptions,
    ChartSeries,
    ChartView,
    only_grew,
    steps_of,
    value_axis_rows,
)
from accel_tui.widgets.chart.cursor import ChartMouse, with_cursor
from accel_tui.widgets.chart.draw_series import draw_series
from accel_tui.widgets.chart.draw_values import draw_values
from accel_tui.widgets.chart.figure import ChartFigure, figure_of
from accel_tui.widgets.chart.scale import XScale
from accel_tui.widgets.chart.value_axis import axis_of
from accel_tui.widgets.styled_text import TextSpan, changed_range, cut
from accel_tui.widgets.visibility import has_shades, is_covered

DRAW_SECONDS = 0.25
"""Minimum seconds between two drawings of growing curves; the latest values are updated immediately."""

MAX_DELAY_FACTOR = 4
"""Factor of that interval while curves still end in the same cells."""


class Chart(ChartMouse):
    """Curves over steps, with axes, legend and latest values.

    Each change draws one frame, none while the chart is hidden. A chart has no border or padding.
    """

    has_end_names: ClassVar[bool] = False
    """Whether the names of the series stand at the ends of their lines."""

    is_count = False
    """Whether the values are whole numbers, so that the ticks are."""

    label_width = 0
    """Width of the longest value label of the last drawing; 0 without one."""

    class Labelled(Message):
        """The width of the value labels has changed."""

    DEFAULT_CSS = """
    Chart {
        width: 1fr;
        height: 1fr;
        min-height: 1;
    }
    """

    title: reactive[str] = reactive("", repaint=False)
    """Title in the header."""

    y_bounds: reactive[tuple[float | None, float | None]] = reactive((None, None), repaint=False)
    """Values that the value axis always includes, e.g. 0 and 100 for a utilization in percent."""

    y_limits: reactive[tuple[float | None, float | None]] = reactive((None, None), repaint=False)
    """Where the value axis ends at the latest, unless a value is beyond."""

    end: reactive[int | None] = reactive(None, repaint=False)
    """The last step of the run, if known; the step axis does not go beyond it."""

    window: reactive[tuple[int, int] | None] = reactive(None, repaint=False)
    """First visible step, and the step after the last; ``None`` for all."""

    cursor: reactive[int | None] = reactive(None, repaint=False)
    """The step of the cursor; the header shows the values there instead of the latest ones."""

    options: reactive[ChartOptions] = reactive(PLAIN, repaint=False)
    """How curves are drawn."""

    scale: reactive[XScale | None] = reactive(None, repaint=False)
    """The x-axis if not steps. A new one is drawn with the next frame."""

    marks: reactive[Marks] = reactive({}, repaint=False)
    """Marks on the step axis. New ones are drawn with the next frame."""

    shows_mark_legend: reactive[bool] = reactive(default=False, repaint=False)
    """Whether the header explains the marks if there is room."""

    note: reactive[str] = reactive("", repaint=False)
    """Note at the end of the header if there is room."""

    min_label_width: reactive[int] = reactive(LABELS, repaint=False)
    """Minimum width of value labels; charts below one another share it."""

    best: reactive[tuple[float, float] | None] = reactive(None, repaint=False)
    """The step and the value to mark as the best. A new one is drawn with the next frame."""

    has_step_labels: reactive[bool] = reactive(default=True, repaint=False)
    """Whether the steps have labels; a chart below may have them."""

    format: reactive[Callable[[float], str]] = reactive(lambda: significant, repaint=False)
    """Format of the latest values."""

    empty: reactive[str] = reactive("waiting for the first step", repaint=False)
    """Text in the middle while there is nothing to draw."""

    def __init__(
        self,
        title: str = "",
        *,
        y_bounds: tuple[float | None, float | None] = (None, None),
        y_limits: tuple[float | None, float | None] = (None, None),
        name: str | None = None,
        id: str | None = None,  # noqa: A002 - Textual's own name
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.set_reactive(Chart.title, title)
        self.set_reactive(Chart.y_bounds, y_bounds)
        self.set_reactive(Chart.y_limits, y_limits)
        self._plain = self._frame = Frame.blank(0, 0)  # without and with the cursor
        self._head: Sequence[TextSpan] = ()
        self._line: Sequence[TextSpan] = ()  # the header with the cursor
        self._series: tuple[ChartSeries, ...] = ()
        self._drawing: Picture | None = None
        self._stale = True
        self._drawn = 0.0
        self._waiting: asyncio.TimerHandle | None = None
        self.draw_seconds = DRAW_SECONDS
        self._has_dots = True

    def on_mount(self) -> None:
        """Read from the settings how often curves are drawn, and with which characters."""
        if settings := getattr(self.app, "settings", None):
            self.draw_seconds = 1 / settings.curves
            self._has_dots = settings.glyphs != "ascii"

    def render_lines(self, crop: Region) -> list[Strip]:
        """Render the requested cells; Textual would render and cache whole lines."""
        has_other_tints = self._view is not None and self._view.has_tints != self._has_tints
        if self._stale or has_other_tints or self._frame.characters.shape != self.outer_size[::-1]:
            self._plain = self._draw_frame()
            self._frame, self._line = self._with_cursor()
            self._stale = False
        span = crop.column_span
        rows = (self._frame.runs(row, *span) if row else cut(self._line, *span) for row in crop.line_range)
        return [Strip([Segment(text, self.cell_style(name)) for text, name in row]) for row in rows]

    def mark_stale(self) -> None:
        """Draw at the next paint: the size or visibility is about to change."""
        self._stale = True
        self.refresh()

    def _repaint(self) -> None:
        if not self._is_visible:
            if not self._stale:
                self._stale = True
                self.refresh()
        elif not self._stale:
            self._plain = self._draw_frame()
            self._repaint_changes()

    _watch_title = _watch_y_bounds = _watch_y_limits = _watch_end = _watch_window = _watch_format = _watch_empty = (
        _repaint
    )
    _watch_options = _watch_shows_mark_legend = _watch_min_label_width = _watch_note = _watch_has_step_labels = _repaint

    @property
    def series(self) -> tuple[ChartSeries, ...]:
        """The series, the last on top. Not a reactive, which would be too slow for five updates a second."""
        return self._series

    @series.setter
    def series(self, series: tuple[ChartSeries, ...]) -> None:
        if series == self._series:
            return
        self._series = series
        drawn = self._drawing
        if (
            drawn
            and not self._stale
            and self._is_visible
            and only_grew(drawn.view.series, series)
            and self._can_wait(drawn.view)
        ):
            if not drawn.view.has_ends:  # else it stays as the values at the ends of the lines do
                self._head = chart_header(drawn.view, drawn.legend, series)
                self._repaint_changes()
            self._wait()
        else:
            self._repaint()

    def _can_wait(self, view: ChartView) -> bool:
        """Whether new steps need not be drawn yet."""
        passed = time.monotonic() - self._drawn
        if passed < self.draw_seconds:
            return True
        return passed < MAX_DELAY_FACTOR * self.draw_seconds and self._end(view, self.series) == self._end(
            view, view.series
        )

    def _end(self, view: ChartView, series: tuple[ChartSeries, ...]) -> int:
        """The cell column in which the longest series ends."""
        steps = min(steps_of(series), self.window[1]) if self.window else steps_of(series)
        return int((steps - view.x.low) / (view.x.high - view.x.low) * plot_region(view).width)

    def _wait(self) -> None:
        """Draw what is pending a little later if nothing else does."""
        if self._waiting is None:
            seconds = (MAX_DELAY_FACTOR + 1) * self.draw_seconds
            self._waiting = asyncio.get_running_loop().call_later(seconds, self.call_later, self._draw_pending)

    def _draw_pending(self) -> None:
        self._waiting = None
        view = self._view
        shown = (self.series, self.scale, self.marks, self.best)
        if view and (view.series, view.scale, view.marks, view.best) != shown:
            self._repaint()

    # New steps mostly follow, and draw these too.
    _watch_scale = _watch_marks = _watch_best = _wait

    def _watch_cursor(self) -> None:
        if self._is_visible and not self._stale:
            self._repaint_changes()
        else:
            self._repaint()

    def _with_cursor(self) -> tuple[Frame, Sequence[TextSpan]]:
        """The frame and the header with the cursor."""
        at, view = self.cursor, self._view
        if at is None or view is None:
            return self._plain, self._head
        frame = with_cursor(self._plain, replace(view, series=self.series), at)
        return frame, self._head if frame is self._plain else frame.runs(0)

    def _repaint_changes(self) -> None:
        old, line = self._frame, self._line
        self._frame, self._line = self._with_cursor()
        if old.characters.shape != self._frame.characters.shape:
            self.refresh()
            return
        regions = [] if self._frame is old else changed_cells(old, self._frame)
        first, last = changed_range(line, self._line)
        if first < last:
            regions.append(Region(first, 0, last - first, 1))
        if regions:
            self.refresh(*regions)

    @property
    def _is_visible(self) -> bool:
        return bool(self.in_sight and self.is_mounted and self.outer_size and not is_covered(self.screen))

    @property
    def _has_tints(self) -> bool:
        return self._has_dots and has_shades(self) and not self.app.current_theme.ansi

    @property
    def figure(self) -> ChartFigure | None:
        """The figure of the chart, for a file; ``None`` while it shows nothing."""
        if self._view is None or not any(map(_drawable, self.series)):
            return None
        return figure_of(replace(self._view, series=self.series))

    @property
    def figures(self) -> list[ChartFigure]:
        """The figures that it shows, for files."""
        return [self.figure] if self.figure else []

    @property
    def _view(self) -> ChartView | None:
        return self._drawing.view if self._drawing else None

    def _draw_frame(self) -> Frame:
        before, size = self._view, self.outer_size  # not size, which is of the next layout while this one is painted
        rows = value_axis_rows(size.height, has_step_labels=self.has_step_labels)
        view = ChartView(
            size.width,
            size.height,
            Axis(*self.window) if self.window else step_axis(steps_of(self.series), self.end),
            axis_of(
                self.series,
                self.window,
                self.options,
                self.y_bounds,
                before.y if before and (before.options, before.axis_rows) == (self.options, rows) else None,
                rows,
                self.y_limits,
                whole=self.is_count,
            ),
            self.series,
            self.title,
            self.empty,
            self.format,
            self.options,
            self.scale,
            self.marks,
            self.shows_mark_legend,
            self.min_label_width,
            self.note,
            self._has_dots,
            self._has_tints,
            self.best,
            has_end_values=True,
            has_end_names=self.has_end_names,
            has_step_labels=self.has_step_labels,
        )
        self._drawn = time.monotonic()
        self._drawing = draw(view)
        if self.label_width != self._drawing.label_width:
            self.label_width = self._drawing.label_width
            self.post_message(self.Labelled())
        self._head = self._drawing.header
        if self._waiting:
            self._waiting.cancel()
            self._waiting = None
        return self._drawing.frame

    def resolve_style(self, name: str) -> Style:
        """The style of that name in the current theme."""
        return look_of(self, name)


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A drawn chart."""

    view: ChartView
    """Its inputs."""
    frame: Frame
    """Its cells without the header."""
    label_width: int
    """Width of the longest value label; 0 if there was nothing to draw."""
    legend: Legend
    header: Sequence[TextSpan]
    """The header's text spans."""


def render(view: ChartView) -> Frame:
    """Draw a chart as a frame, including the header."""
    picture = draw(view)
    picture.frame.write_line(0, picture.header)
    return picture.frame


def draw(view: ChartView) -> Picture:
    """Draw a chart: background, series, header; or a message if there is nothing to draw."""
    label_width, width = 0, view.columns
    if any(_drawable(series) for series in view.series):
        layout = background_layout(view)
        label_width, width = layout.label_width, view.columns - layout.plot.x
        frame = draw_background(view, layout)
        if layout.plot:
            draw_series(frame.part(*layout.plot), view)
            draw_values(frame, view, layout.plot)
    else:
        frame = Frame.blank(view.columns, view.rows)
        counted = any(series.curve.end_step for series in view.series)
        message = "no finite value so far" if counted else view.empty
        frame.write(max(0, (view.columns - len(message)) // 2), view.rows // 2, message, "note")
    legend = legend_of(view, width)
    return Picture(view, frame, label_width, legend, chart_header(view, legend, view.series))


def _drawable(series: ChartSeries) -> bool:
    return not math.isnan(series.curve.last_value) or any(math.isfinite(value) for _, value in series.points)


class PointedChart(Chart):
    """A chart alone, which shows the values at the mouse."""

    @on(Chart.Pointed)
    def _show_values(self, message: Chart.Pointed) -> None:
        """Show the values at the mouse."""
        message.stop()
        self.cursor = None if message.step is None else max(0, round(message.step))
