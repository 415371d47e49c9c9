"""What the mouse does on a chart: it says so in messages, in steps."""

from dataclasses import dataclass

from textual import events
from textual.message import Message

from accel_tui.terminal.dirty_regions import DirtyRegionWidget
from accel_tui.widgets.chart.background import plot_of
from accel_tui.widgets.chart.chart_view import ChartView
from accel_tui.widgets.chart.cursor import step_at
from accel_tui.widgets.visibility import VisibilityMixin

NOTCH = 0.8
"""As many of the steps that are shown stay when the wheel is turned by a notch."""


class ChartMouse(DirtyRegionWidget, VisibilityMixin):
    """A widget that shows a view of a chart, and says what the mouse does on it."""

    ALLOW_SELECT = False

    @dataclass
    class Pointed(Message):
        """The mouse is over a step, or no longer over any."""

        step: float | None

    @dataclass
    class Pressed(Message):
        """The mouse's button was pressed and let go over a step, or left of all, so many times at one place."""

        chart: "ChartMouse"
        step: float | None
        times: int

    @dataclass
    class Zoomed(Message):
        """The wheel asks for more or fewer steps, around one."""

        step: float | None
        factor: float

    @dataclass
    class Dragged(Message):
        """The first step on the axis shall be another, so that what was taken hold of is where the mouse is."""

        first: float

    @dataclass
    class Scrolled(Message):
        """The wheel asks for earlier steps, -1, or later ones, 1."""

        direction: int

    _held: tuple[int, float] | None = None  # where the mouse took hold, and what was the first step then
    _moved = False
    _pointed: float | None = None

    @property
    def _view(self) -> ChartView | None:
        """What is seen of the chart, once it is drawn."""
        raise NotImplementedError

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Say which step the mouse is over, or pull the axis along."""
        if self._held and self._view:
            x, first = self._held
            self._moved = self._moved or event.x != x
            if self._moved and (plot := plot_of(self._view)):
                steps_a_column = (self._view.x.high - self._view.x.low) / plot.width
                self.post_message(self.Dragged(first + (x - event.x) * steps_a_column))
        else:
            self._point(self._step_at(event.x))

    def on_leave(self) -> None:
        """Say that the mouse is over no step any more."""
        self._point(None)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the axis."""
        if event.button == 1 and self._view:
            self._held, self._moved = (event.x, self._view.x.low), False
            self.capture_mouse()

    def on_mouse_up(self) -> None:
        """Let go of the axis."""
        self._held = None
        self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        """Say which step was meant."""
        event.stop()
        if event.button == 1 and not self._moved:
            self.post_message(self.Pressed(self, self._step_at(event.x), event.chain))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Show fewer steps, or earlier ones where a key is held."""
        self._turn(event, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Show more steps, or later ones where a key is held."""
        self._turn(event, 1)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """Show earlier steps."""
        self._turn(event, -1, sideways=True)

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        """Show later steps."""
        self._turn(event, 1, sideways=True)

    def _turn(self, event: events.MouseEvent, direction: int, *, sideways: bool = False) -> None:
        event.stop()
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
