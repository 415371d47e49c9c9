"""Mouse actions on a chart, posted as messages in steps."""

from dataclasses import dataclass

from textual import events, on
from textual.message import Message

from accel_tui.terminal.dirty_regions import DirtyRegionWidget
from accel_tui.widgets.chart.background import plot_region
from accel_tui.widgets.chart.chart_view import ChartView
from accel_tui.widgets.chart.cursor import step_at
from accel_tui.widgets.visibility import VisibilityMixin

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

    _held: tuple[int, float] | None = None  # start of the drag, and the first visible step then
    _moved = False
    _pointed: float | None = None

    @property
    def _view(self) -> ChartView | None:
        """The chart's inputs, once it is drawn."""
        raise NotImplementedError

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Post the step under the mouse, or drag the axis."""
        if self._held and self._view:
            x, first = self._held
            self._moved = self._moved or event.x != x
            if self._moved and (plot := plot_region(self._view)):
                steps_per_column = (self._view.x.high - self._view.x.low) / plot.width
                self.post_message(self.Dragged(first + (x - event.x) * steps_per_column))
        else:
            self._point(self._step_at(event.x))

    def on_leave(self) -> None:
        """Post that the mouse has left."""
        self._point(None)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Start dragging."""
        if event.button == 1 and self._view:
            self._held, self._moved = (event.x, self._view.x.low), False
            self.capture_mouse()

    def on_mouse_up(self) -> None:
        """Stop dragging."""
        self._held = None
        self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        """Post the clicked step."""
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
