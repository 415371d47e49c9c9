"""What keys and the mouse do on charts that share an axis of steps: move it, read at a step, fill the screen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.reactive import reactive

from accel_tui.run.step_window import StepWindow
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart.chart_view import LABELS
from accel_tui.widgets.charts.chart_option_keys import ChartOptionKeys

_SCROLL = 0.25  # of what is shown
_NUDGE = 0.1  # likewise, for a notch of the wheel
_FAR = 10  # as many times further does the cursor go with shift


@dataclass(frozen=True, slots=True)
class Cursor:
    """The step at which all charts are read.

    Attributes:
        step: Counted from 0.
        stays: Whether it was put there, and does not follow the mouse.
    """

    step: int
    stays: bool = False


class ChartKeys(ChartOptionKeys, can_focus=True):
    """Charts with a window, a cursor, and a mark on one of them; what is shown in them, others decide."""

    BINDING_GROUP_TITLE = "Charts"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "plus,equals_sign",
            "zoom_in",
            "Zoom",
            id="charts.in",
            tooltip="Show half as many steps; the wheel shows fewer or more around the mouse",
        ),
        Binding("minus", "zoom_out", "Zoom out", show=False, id="charts.out", tooltip="Show twice as many steps"),
        Binding(
            "left",
            "move(-1)",
            "Earlier",
            show=False,
            id="charts.left",
            tooltip="Look at earlier steps, or move the cursor; so do dragging, and the wheel with shift",
        ),
        Binding(
            "right",
            "move(1)",
            "Later",
            show=False,
            id="charts.right",
            tooltip="Look at later steps, or move the cursor",
        ),
        Binding(
            "shift+left", "far(-1)", "Far left", show=False, id="charts.far-left", tooltip="Move the cursor far back"
        ),
        Binding(
            "shift+right", "far(1)", "Far right", show=False, id="charts.far-right", tooltip="Move the cursor far ahead"
        ),
        Binding("home", "beginning", "Beginning", show=False, id="charts.home", tooltip="Look at the first steps"),
        Binding("end", "end", "End", show=False, id="charts.end", tooltip="Follow the last steps"),
        Binding("0", "whole", "Whole run", show=False, id="charts.whole", tooltip="Show all steps again"),
        Binding(
            "v",
            "cursor",
            "Cursor",
            show=False,
            id="charts.cursor",
            tooltip="Read all charts at one step, or no longer; so do pointing and a click",
        ),
        Binding("up", "other(-1)", "Chart before", show=False, id="charts.up", tooltip="Mark the chart before"),
        Binding("down", "other(1)", "Next chart", show=False, id="charts.down", tooltip="Mark the next chart"),
        Binding(
            "f,enter",
            "fill",
            "Fill",
            show=False,
            id="charts.fill",
            tooltip="Let the marked chart fill the screen, or no longer; so does a double click on one",
        ),
        Binding("a", "choose", "Charts", show=False, id="charts.choose", tooltip="Choose which charts are shown"),
        Binding("escape", "back", "Back", id="charts.back", tooltip="Take back the filling, then the cursor"),
    ]

    window: reactive[StepWindow] = reactive(StepWindow(), repaint=False, init=False)
    """Which steps are shown."""

    marked: reactive[str] = reactive("loss", repaint=False, init=False)
    """The id of the chart that keys are about."""

    full: reactive[bool] = reactive(default=False, repaint=False, init=False)
    """Whether the marked chart has all the room; those around it give theirs up in the same layout."""

    cursor: reactive[Cursor | None] = reactive(None, repaint=False, init=False)
    """Where all charts are read."""

    _before_press: Cursor | None = None

    def _watch_full(self) -> None:
        self.refresh_bindings()

    def _watch_cursor(self, before: Cursor | None, after: Cursor | None) -> None:
        if bool(before and before.stays) != bool(after and after.stays):
            self.refresh_bindings()

    @property
    def steps(self) -> int:
        """How many steps there are."""
        raise NotImplementedError

    @property
    def stride(self) -> int:
        """How many of them are passed when the cursor moves by as little as can be seen."""
        raise NotImplementedError

    @property
    def markable(self) -> Sequence[str]:
        """The ids of the charts, one of which is marked."""
        raise NotImplementedError

    @on(Chart.Labelled)
    def _take_labels(self, message: Chart.Labelled) -> None:
        message.stop()
        self._align()

    def _align(self) -> None:
        """Let the curves of all charts begin at one place, as far as they are drawn."""
        charts = list(self.query(Chart))
        room = max([LABELS, *(chart.labels for chart in charts if chart.display)])
        for chart in charts:
            chart.room = room

    @on(Chart.Pointed)
    def _point(self, message: Chart.Pointed) -> None:
        message.stop()
        if not (self.cursor and self.cursor.stays):
            step = self._step(message.step)
            self.cursor = None if step is None else Cursor(step)

    @on(Chart.Pressed)
    def _press(self, message: Chart.Pressed) -> None:
        """Mark a chart, and put the cursor there or take it away; the second press of two fills the screen."""
        message.stop()
        self.marked = message.chart.id or self.marked
        if message.times == 2:
            self.cursor = self._before_press
            self.action_fill()
        elif message.times == 1:
            self._before_press = self.cursor
            step = self._step(message.step)
            put = None if step is None else Cursor(step, stays=True)
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
        """The step next to a place on the axis; ``None`` before the first was taken."""
        return None if at is None or not self.steps else min(max(round(at), 0), self.steps - 1)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave escape to the screen where there is nothing to go back from."""
        del parameters
        return action != "back" or self.full or bool(self.cursor and self.cursor.stays)

    def action_zoom_in(self) -> None:
        """Show half as many steps, around the cursor if there is one."""
        self.window = self.window.zoomed(self.steps, 0.5, self._stays_at)

    def action_zoom_out(self) -> None:
        """Show twice as many steps, around the cursor if there is one."""
        self.window = self.window.zoomed(self.steps, 2, self._stays_at)

    @property
    def _stays_at(self) -> int | None:
        return self.cursor.step if self.cursor and self.cursor.stays else None

    def action_move(self, direction: int) -> None:
        """Move the cursor; without one, look at earlier or later steps."""
        if self._stays_at is None:
            self.window = self.window.moved(self.steps, direction * _SCROLL)
        else:
            self._move_cursor(direction)

    def action_far(self, direction: int) -> None:
        """The same, many times."""
        if self._stays_at is None:
            self.window = self.window.moved(self.steps, direction)
        else:
            self._move_cursor(direction * _FAR)

    def _move_cursor(self, times: int) -> None:
        step = self._step((self._stays_at or 0) + times * self.stride)
        if step is not None:
            self.cursor = Cursor(step, stays=True)
            self.window = self.window.with_step(self.steps, step)

    def action_cursor(self) -> None:
        """Put the cursor where the mouse is, else in the middle; or take it away."""
        if self._stays_at is not None:
            self.cursor = None
            return
        low, high = self.window.bounds(self.steps) or (0, self.steps)
        step = self.cursor.step if self.cursor else self._step((low + min(high, self.steps)) / 2)
        self.cursor = None if step is None else Cursor(step, stays=True)

    def action_other(self, direction: int) -> None:
        """Mark the next chart, or the one before."""
        ids = self.markable
        place = ids.index(self.marked) if self.marked in ids else 0
        self.marked = ids[(place + direction) % len(ids)]

    def action_fill(self) -> None:
        """Let the marked chart fill the screen, or no longer."""
        self.full = not self.full

    def action_back(self) -> None:
        """Take back the filling, then the cursor."""
        if self.full:
            self.full = False
        else:
            self.cursor = None

    def action_choose(self) -> None:
        """Ask which charts are to be shown."""
        raise NotImplementedError

    def action_beginning(self) -> None:
        """Look at the first steps."""
        self.window = self.window.at_beginning()

    def action_end(self) -> None:
        """Follow the last steps."""
        self.window = self.window.at_end()

    def action_whole(self) -> None:
        """Show all steps again."""
        self.window = StepWindow()
