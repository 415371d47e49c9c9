"""The curves of a run, one chart below the other, on one axis of steps."""

from dataclasses import dataclass
from typing import ClassVar

from textual import getters
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.reactive import reactive

from accel_engine.run.steps import RATE
from accel_tui import figures
from accel_tui.state import RunState
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart.series import NOTHING, Series
from accel_tui.window import Part, Window, part_of

_SCROLL = 0.25  # of what is shown


class RunCharts(Vertical, can_focus=True):
    """The loss, the second series where there is one (the accuracy, mostly), and the throughput.

    All show the same window on the run's steps, which keys change.
    """

    BINDING_GROUP_TITLE = "Charts"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus,equals_sign", "zoom_in", "Zoom", id="charts.in", tooltip="Show half as many steps"),
        Binding("minus", "zoom_out", "Zoom out", show=False, id="charts.out", tooltip="Show twice as many steps"),
        Binding("left", "move(-1)", "Earlier", show=False, id="charts.left", tooltip="Look at earlier steps"),
        Binding("right", "move(1)", "Later", show=False, id="charts.right", tooltip="Look at later steps"),
        Binding("home", "beginning", "Beginning", show=False, id="charts.home", tooltip="Look at the first steps"),
        Binding("end", "end", "End", show=False, id="charts.end", tooltip="Follow the last steps"),
        Binding("0", "whole", "Whole run", show=False, id="charts.whole", tooltip="Show all steps again"),
    ]

    @dataclass
    class Looked(Message):
        """Somebody looks closely at a part of the run, or no longer at any."""

        part: Part | None

    state: reactive[RunState] = reactive(RunState(), repaint=False, init=False)
    """What is drawn; bind it with ``data_bind``."""

    window: reactive[Window] = reactive(Window(), repaint=False, init=False)
    """Which steps are shown."""

    part: reactive[Part | None] = reactive(None, repaint=False, init=False)
    """What the ``details`` of the state should be of."""

    _loss = getters.query_one("#loss", Chart)
    _second = getters.query_one("#second", Chart)
    _throughput = getters.query_one("#throughput", Chart)

    def compose(self) -> ComposeResult:
        """All charts; the sheet of the screen says for which there is room."""
        yield Chart("loss", id="loss")
        yield Chart("accuracy", id="second")
        yield Chart("steps/s", id="throughput")

    def on_mount(self) -> None:
        """Write rates as they are written elsewhere."""
        self._throughput.format = figures.compact

    def on_show(self) -> None:
        """Take the keys, when nothing else on the screen has them."""
        if self.screen.focused is None:
            self.focus(scroll_visible=False)

    def on_resize(self) -> None:
        """See whether more can be told apart now."""
        self._look()

    def watch_state(self, before: RunState, state: RunState) -> None:
        """Draw what is new."""
        names = _names(state)
        if (names, state.over, state.total_steps) != (_names(before), before.over, before.total_steps):
            self._label(names)
        for chart, name in zip((self._loss, self._second), names, strict=False):
            # A validation after N steps is of the weights that step N - 1 left, steps being counted from 0.
            points = tuple((step - 1, value) for step, value in state.validation.get(name, ()))
            series = (Series("training", state.curves.get(name, NOTHING), detail=state.details.get(name, NOTHING)),)
            chart.series = (*series, Series("validation", points=points, style="secondary")) if points else series
        detail = state.details.get(RATE, NOTHING)
        self._throughput.series = (Series("steps/s", state.throughput, style="success", detail=detail),)
        self._look()

    def _label(self, names: list[str]) -> None:
        for chart, name in zip((self._loss, self._second), names, strict=False):
            chart.title = name
        self._second.set_class(len(names) < 2, "-absent")
        for chart in (self._loss, self._second, self._throughput):
            chart.empty = "no step was taken" if self.state.over else "waiting for the first step"
            chart.end = self.state.total_steps

    def watch_window(self) -> None:
        """Draw at once what is known of it, and have the rest read."""
        self._look()

    def watch_part(self, part: Part | None) -> None:
        """Ask for it."""
        self.post_message(self.Looked(part))

    def _look(self) -> None:
        bounds = self.window.bounds(self.state.step)
        for chart in (self._loss, self._second, self._throughput):
            chart.window = bounds
        self.part = part_of(bounds, 2 * self.size.width, self.state.throughput.width)

    def action_zoom_in(self) -> None:
        """Show half as many steps."""
        self.window = self.window.zoomed(self.state.step, 0.5)

    def action_zoom_out(self) -> None:
        """Show twice as many steps."""
        self.window = self.window.zoomed(self.state.step, 2)

    def action_move(self, direction: int) -> None:
        """Look at earlier or later steps."""
        self.window = self.window.moved(self.state.step, direction * _SCROLL)

    def action_beginning(self) -> None:
        """Look at the first steps."""
        self.window = self.window.at_beginning()

    def action_end(self) -> None:
        """Follow the last steps."""
        self.window = self.window.at_end()

    def action_whole(self) -> None:
        """Show all steps again."""
        self.window = Window()


def _names(state: RunState) -> list[str]:
    """The series that there are charts for."""
    return list(state.built.series if state.built else state.curves)[:2] or ["loss", "accuracy"]
