"""The curves of several runs, each series in a chart of its own, on one axis of steps."""

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message
from textual.reactive import reactive

from accel_engine.run.steps import RATE
from accel_tui import figures
from accel_tui.comparison import Side, series_of
from accel_tui.widgets.chart.axes import significant
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart.series import NOTHING, Colour, Series
from accel_tui.window import Part, Window, part_of

_SCROLL = 0.25  # of what is shown
_STYLES: tuple[Colour, ...] = ("primary", "secondary", "success", "error", "warning")  # the accent is the first's


def letter(place: int) -> str:
    """What tells a run apart where there are no colours."""
    return "abcdefgh"[place]


def style_of(place: int) -> Colour:
    """The colour of a run's curves."""
    return _STYLES[place % len(_STYLES)]


class CompareCharts(Container, can_focus=True):
    """A chart for each series that any of the runs has, as many as there is room for; a key shows the others.

    Every chart has a curve for each run, with its validations as points.
    """

    BINDING_GROUP_TITLE = "Charts"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "next", "Series", id="compare.next", tooltip="Show the other series"),
        Binding("plus,equals_sign", "zoom_in", "Zoom", id="compare.in", tooltip="Show half as many steps"),
        Binding("minus", "zoom_out", "Zoom out", show=False, id="compare.out", tooltip="Show twice as many steps"),
        Binding("left", "move(-1)", "Earlier", show=False, id="compare.left", tooltip="Look at earlier steps"),
        Binding("right", "move(1)", "Later", show=False, id="compare.right", tooltip="Look at later steps"),
        Binding("home", "beginning", "Beginning", show=False, id="compare.home", tooltip="Look at the first steps"),
        Binding("end", "end", "End", show=False, id="compare.end", tooltip="Follow the last steps"),
        Binding("0", "whole", "Whole run", show=False, id="compare.whole", tooltip="Show all steps again"),
    ]

    @dataclass
    class Looked(Message):
        """Somebody looks closely at a part of the runs, or no longer at any."""

        part: Part | None

    sides: reactive[tuple[Side, ...]] = reactive((), repaint=False, init=False)
    """The runs."""

    window: reactive[Window] = reactive(Window(), repaint=False, init=False)
    """Which steps are shown."""

    first: reactive[int] = reactive(0, repaint=False, init=False)
    """The place of the series that the first chart shows."""

    part: reactive[Part | None] = reactive(None, repaint=False, init=False)
    """What the ``details`` of the states should be of."""

    def compose(self) -> ComposeResult:
        """All charts; the sheet of the screen says for which there is room."""
        for place in range(3):
            yield Chart(id=f"chart-{place}")

    @property
    def names(self) -> list[str]:
        """The series that there are, and the throughput."""
        return [*series_of(self.sides), RATE]

    @property
    def steps(self) -> int:
        """Steps of the longest run."""
        return max((side.state.step for side in self.sides), default=0)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There are others only where not all are shown."""
        del parameters
        return len(self.names) > self._room or None if action == "next" else True

    def on_resize(self) -> None:
        """See for how many there is room, and whether more can be told apart."""
        self._draw()

    def watch_sides(self) -> None:
        """Draw what is new."""
        self._draw()

    def watch_first(self) -> None:
        """Draw others."""
        self._draw()

    def watch_window(self) -> None:
        """Draw at once what is known of it, and have the rest read."""
        self._draw()

    def watch_part(self, part: Part | None) -> None:
        """Ask for it."""
        self.post_message(self.Looked(part))

    @property
    def _room(self) -> int:
        return 3 if self.screen.has_class("-tall") else 2

    def _draw(self) -> None:
        names = self.names
        bounds = self.window.bounds(self.steps)
        room = min(self._room, len(names))
        for place, chart in enumerate(self.query(Chart)):
            chart.display = place < room
            if place < room:
                name = names[(self.first + place) % len(names)]
                chart.title = name
                chart.format = figures.compact if name == RATE else significant
                chart.empty = "no step was taken" if self.sides else "reading the runs"
                chart.window = bounds
                chart.series = tuple(_series(at, side, name) for at, side in enumerate(self.sides))
        known = max((side.state.throughput.width for side in self.sides), default=1)
        self.part = part_of(bounds, 2 * self.size.width, known)

    def action_next(self) -> None:
        """Show the series that are not shown."""
        self.first = (self.first + self._room) % len(self.names)

    def action_zoom_in(self) -> None:
        """Show half as many steps."""
        self.window = self.window.zoomed(self.steps, 0.5)

    def action_zoom_out(self) -> None:
        """Show twice as many steps."""
        self.window = self.window.zoomed(self.steps, 2)

    def action_move(self, direction: int) -> None:
        """Look at earlier or later steps."""
        self.window = self.window.moved(self.steps, direction * _SCROLL)

    def action_beginning(self) -> None:
        """Look at the first steps."""
        self.window = self.window.at_beginning()

    def action_end(self) -> None:
        """Follow the last steps."""
        self.window = self.window.at_end()

    def action_whole(self) -> None:
        """Show all steps again."""
        self.window = Window()


def _series(place: int, side: Side, name: str) -> Series:
    """What a run has of a series; nothing, where it has none of that name."""
    state = side.state
    curve = state.throughput if name == RATE else state.curves.get(name, NOTHING)
    # A validation after N steps is of the weights that step N - 1 left, steps being counted from 0.
    points = tuple((step - 1, value) for step, value in state.validation.get(name, ()))
    detail = state.details.get(name, NOTHING)
    return Series(letter(place), curve, points, style_of(place), detail)
