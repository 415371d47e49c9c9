"""Keys and mouse of charts with a shared step axis: zoom, scroll, cursor, full screen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import getters, on
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.reactive import reactive

from accel_tui.run_state.step_window import StepWindow
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart.chart_view import LABELS
from accel_tui.widgets.chart.figure import ChartFigure
from accel_tui.widgets.chart.figure_saver import SAVE, FigureSaver
from accel_tui.widgets.chart_panels.chart_grid import BarItem, ChartBar, chart_regions
from accel_tui.widgets.chart_panels.chart_option_keys import ChartOptionKeys

_SCROLL = 0.25  # of the visible steps
_NUDGE = 0.1  # of the visible steps, per wheel notch
_FAR = 10  # factor of cursor movements with shift


@dataclass(frozen=True, slots=True)
class Cursor:
    """The cursor of all charts."""

    step: int
    """Counted from 0."""
    is_pinned: bool = False
    """Whether it stays instead of following the mouse."""


class ChartKeys(ChartOptionKeys, FigureSaver, can_focus=True):
    """Charts with a window, a cursor, and an active chart; subclasses draw them."""

    BINDING_GROUP_TITLE = "Charts"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "plus,equals_sign",
            "zoom_in",
            "Zoom",
            id="charts.in",
            tooltip="Show half as many steps; the wheel zooms around the mouse",
        ),
        Binding("minus", "zoom_out", id="charts.out", tooltip="Show twice as many steps"),
        Binding(
            "left",
            "move(-1)",
            id="charts.left",
            tooltip="Scroll to earlier steps, or move the cursor; dragging and shift+wheel scroll too",
        ),
        Binding("right", "move(1)", id="charts.right", tooltip="Scroll to later steps, or move the cursor"),
        Binding("shift+left", "move_far(-1)", id="charts.far-left", tooltip="Move the cursor ten times as far"),
        Binding("shift+right", "move_far(1)", id="charts.far-right", tooltip="Move the cursor ten times as far"),
        Binding("home", "beginning", id="charts.home", tooltip="Scroll to the first steps"),
        Binding("end", "end", id="charts.end", tooltip="Scroll to the newest step and follow it"),
        Binding("0", "whole", id="charts.whole", tooltip="Show all steps"),
        Binding(
            "v",
            "cursor",
            "Cursor",
            show=False,
            id="charts.cursor",
            tooltip="Read the values of all charts at one step; so does a click",
        ),
        Binding("up", "select_chart(-1)", id="charts.up", tooltip="Select the previous chart"),
        Binding("down", "select_chart(1)", id="charts.down", tooltip="Select the next chart"),
        Binding(
            "f,enter",
            "full_screen",
            "Maximize",
            show=False,
            id="charts.full-screen",
            tooltip="Maximize the selected chart, or show all charts; so does a double click",
        ),
        Binding("a", "choose", "Charts", show=False, id="charts.select", tooltip="Select which charts are shown"),
        SAVE,
        Binding("escape", "back", "Back", id="charts.back", tooltip="Show all charts, then remove the cursor"),
    ]

    window: reactive[StepWindow] = reactive(StepWindow(), repaint=False, init=False)
    """The visible steps."""

    active_chart: reactive[str] = reactive("loss", repaint=False, init=False)
    """Id of the chart that keys apply to."""

    is_full_screen: reactive[bool] = reactive(default=False, repaint=False, init=False)
    """Whether the active chart fills the screen."""

    cursor: reactive[Cursor | None] = reactive(None, repaint=False, init=False)
    """The cursor."""

    first_share: ClassVar[float] = 0.0
    """Share of the height for the first chart; see :func:`chart_regions`."""

    _bar = getters.query_one(ChartBar)
    _before_press: Cursor | None = None

    def _watch_is_full_screen(self) -> None:
        self.refresh_bindings()

    def _watch_cursor(self, before: Cursor | None, after: Cursor | None) -> None:
        for chart in self.query(Chart):
            chart.cursor = after.step if after else None
        self._update_bar()
        if bool(before and before.is_pinned) != bool(after and after.is_pinned):
            self.refresh_bindings()

    @property
    def steps(self) -> int:
        """Number of steps."""
        raise NotImplementedError

    @property
    def stops(self) -> Sequence[int]:
        """The steps that the cursor stops at; empty for all."""
        return ()

    @property
    def stride(self) -> int:
        """Steps that the cursor moves at least: a bucket, or a dot."""
        low, high = self.window.bounds(self.steps) or (0, self.steps)
        return max(self._bucket, round((high - low) / (2 * self._widest)))

    @property
    def chart_ids(self) -> Sequence[str]:
        """Ids of the charts that can be active."""
        raise NotImplementedError

    @property
    def _bucket(self) -> int:
        """Steps per bucket of the visible steps."""
        return 1

    @property
    def _widest(self) -> int:
        """Width of the widest chart."""
        return max((chart.size.width for chart in self.query(Chart) if chart.display), default=0) or max(
            1, self.size.width
        )

    @property
    def _room(self) -> Size:
        """Size below the bar."""
        return Size(self.size.width, self.size.height - 1)

    def _update_bar(self) -> None:
        """Show modes and keys."""
        raise NotImplementedError

    def _bar_items(self, cursor: str, visible: str, shown: int, available: int) -> tuple[BarItem, ...]:
        """The items of the bar.

        Args:
            cursor: Text of the cursor; empty if there is none.
            visible: The visible steps in words; empty to leave them out.
            shown: Number of charts that are shown.
            available: Number of charts.
        """
        return (
            BarItem("whole run", "whole", "0", is_active=self.window.span is None),
            BarItem("follow", "end", "end", is_active=self.window.follows, drop_first=not self.window.follows),
            *([BarItem(visible, drop_first=True)] if visible else []),
            BarItem(cursor or "cursor", "cursor", "v", is_active=self._pinned_step is not None),
            BarItem(f"{shown} of {available} charts", "choose", "a", drop_first=True),
            BarItem("full", "full_screen", "f", is_active=self.is_full_screen, drop_first=True),
            *self.option_items,
        )

    @on(ChartBar.Clicked)
    async def _run_action(self, message: ChartBar.Clicked) -> None:
        message.stop()
        await self.run_action(message.action)

    @on(Chart.Labelled)
    def _take_labels(self, message: Chart.Labelled) -> None:
        message.stop()
        self._align()

    def _align(self) -> None:
        """Align the plots of all charts at the widest value labels; the lowest ones have the labels of the steps."""
        charts = list(self.query(Chart))
        label_width = max([LABELS, *(chart.label_width for chart in charts if chart.display)])
        for chart in charts:
            chart.min_label_width = label_width
        shown = [chart for chart in charts if chart.display]
        regions = chart_regions(len(shown), self._room, self.first_share)
        for chart, region in zip(shown, regions, strict=True):
            below = [each for each in regions if (each.x, each.width) == (region.x, region.width)]
            chart.has_step_labels = region.y == max(each.y for each in below)

    @on(Chart.Pointed)
    def _point(self, message: Chart.Pointed) -> None:
        message.stop()
        if not (self.cursor and self.cursor.is_pinned):
            step = self._step(message.step)
            self.cursor = None if step is None else Cursor(step)

    @on(Chart.Pressed)
    def _press(self, message: Chart.Pressed) -> None:
        """Activate a chart and toggle the cursor; a double click toggles full screen."""
        message.stop()
        self.active_chart = message.chart.id or self.active_chart
        if message.times == 2:
            self.cursor = self._before_press
            self.action_full_screen()
        elif message.times == 1:
            self._before_press = self.cursor
            step = self._step(message.step)
            put = None if step is None else Cursor(step, is_pinned=True)
            self.cursor = None if put == self.cursor else put

    @on(Chart.Zoomed)
    def _zoom(self, message: Chart.Zoomed) -> None:
        message.stop()
        self.window = self.window.zoomed(self.steps, message.factor, message.step)

    @on(Chart.Scrolled)
    def _scroll(self, message: Chart.Scrolled) -> None:
        message.stop()
        self.window = self.window.moved(self.steps, message.direction * _NUDGE)

    @on(Chart.Dragged)
    def _drag(self, message: Chart.Dragged) -> None:
        message.stop()
        if bounds := self.window.bounds(self.steps):
            self.window = self.window.shifted(self.steps, round(message.first) - bounds[0])

    def _step(self, at: float | None) -> int | None:
        """The step nearest to a position on the axis; ``None`` before the first step."""
        if at is None or not self.steps:
            return None
        if self.stops:
            return min(self.stops, key=lambda stop: abs(stop - at))
        return min(max(round(at), 0), self.steps - 1)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave escape to the screen if there is nothing to close."""
        if action == "back":
            return self.is_full_screen or bool(self.cursor and self.cursor.is_pinned)
        return super().check_action(action, parameters)

    def action_zoom_in(self) -> None:
        """Show half as many steps, around the cursor if there is one."""
        self.window = self.window.zoomed(self.steps, 0.5, self._pinned_step)

    def action_zoom_out(self) -> None:
        """Show twice as many steps, around the cursor if there is one."""
        self.window = self.window.zoomed(self.steps, 2, self._pinned_step)

    @property
    def _pinned_step(self) -> int | None:
        return self.cursor.step if self.cursor and self.cursor.is_pinned else None

    def action_move(self, direction: int) -> None:
        """Move the cursor, or scroll if there is none."""
        if self._pinned_step is None:
            self.window = self.window.moved(self.steps, direction * _SCROLL)
        else:
            self._move_cursor(direction)

    def action_move_far(self, direction: int) -> None:
        """Move the cursor ten times as far, or scroll by a page if there is none."""
        if self._pinned_step is None:
            self.window = self.window.moved(self.steps, direction)
        else:
            self._move_cursor(direction * _FAR)

    def _move_cursor(self, times: int) -> None:
        pinned = self._pinned_step or 0
        if self.stops:
            nearest = self.stops.index(min(self.stops, key=lambda stop: abs(stop - pinned)))
            step: int | None = self.stops[min(max(nearest + times, 0), len(self.stops) - 1)]
        else:
            step = self._step(pinned + times * self.stride)
        if step is not None:
            self.cursor = Cursor(step, is_pinned=True)
            self.window = self.window.with_step(self.steps, step)

    def action_cursor(self) -> None:
        """Toggle the cursor, at the mouse or in the middle."""
        if self._pinned_step is not None:
            self.cursor = None
            return
        low, high = self.window.bounds(self.steps) or (0, self.steps)
        step = self.cursor.step if self.cursor else self._step((low + min(high, self.steps)) / 2)
        self.cursor = None if step is None else Cursor(step, is_pinned=True)

    def action_select_chart(self, direction: int) -> None:
        """Activate the next chart, or the previous one."""
        ids = self.chart_ids
        index = ids.index(self.active_chart) if self.active_chart in ids else 0
        self.active_chart = ids[(index + direction) % len(ids)]

    def action_full_screen(self) -> None:
        self.is_full_screen = not self.is_full_screen

    def action_back(self) -> None:
        """Leave full screen, or else remove the cursor."""
        if self.is_full_screen:
            self.is_full_screen = False
        else:
            self.cursor = None

    @property
    def file_stem(self) -> str:
        """See :attr:`FigureSaver.file_stem`; a run's is its id."""
        return "compared"

    @property
    def selected_figure(self) -> ChartFigure | None:
        """The active chart."""
        chart = next((each for each in self.query(Chart) if each.id == self.active_chart and each.display), None)
        return chart.figure if chart else None

    def action_choose(self) -> None:
        """Select which charts are shown."""
        raise NotImplementedError

    def action_beginning(self) -> None:
        self.window = self.window.at_beginning()

    def action_end(self) -> None:
        self.window = self.window.at_end()

    def action_whole(self) -> None:
        self.window = StepWindow()
