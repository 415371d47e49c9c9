"""Base of the screens that find a setting by measuring: a worker, a cursor on plots, and a value to take."""

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from accel_engine.measure.trial_room import devices_of
from accel_engine.plan import Plan, isolation
from accel_engine.plan.resolved_plan import resolve
from accel_engine.text import printable
from accel_tui.formatting.runs import warnings
from accel_tui.screens.engine_errors import reported
from accel_tui.screens.working_screen import WorkingScreen
from accel_tui.widgets.finders.finder_plots import FinderPlot
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.top_bar import TopBar

SHOW_SECONDS = 0.1
"""Seconds between two drawings of what is measured."""


class FinderScreen(WorkingScreen):
    """Measures in a thread from when it is opened, and ends what it has started when it is closed."""

    CSS_PATH = "finder_screen.tcss"
    TITLE = ""
    BINDING_GROUP_TITLE = "Find"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "Take", id="find.take", tooltip="Take the value at the cursor"),
        Binding("right", "move(1)", id="find.right", tooltip="Move the cursor to the next value"),
        Binding("left", "move(-1)", id="find.left", tooltip="Move the cursor to the previous value"),
        Binding("down,tab", "select(1)", "Next", id="find.next", tooltip="Move the cursor to the next suggestion"),
        Binding("up,shift+tab", "select(-1)", id="find.previous", tooltip="Move the cursor to the previous suggestion"),
        Binding("r", "again", "Measure again", id="find.again", tooltip="Measure once more"),
        Binding("escape", "back", "Back", id="find.back", tooltip="Go back; asks first while it measures"),
    ]

    _about = getters.query_one("#about", Static)

    def __init__(self) -> None:
        super().__init__()
        self._stop = threading.Event()
        self._is_running = False
        self._shown_at = 0.0
        self._detail = ""
        self._problem = ""
        self.at: int | None = None
        """Index of the value at the cursor, in :attr:`values`; ``None`` before there is one."""

    def compose(self) -> ComposeResult:
        """Compose the plots, and below them what was found."""
        yield TopBar(self.TITLE)
        yield Static(id="about", markup=False)
        with Container(id="plots"):
            yield from self.make_plots()
        with VerticalScroll(id="results"):
            yield Static(id="table", markup=False)
            yield Static(id="notes", markup=False)
        yield KeyBar()

    def make_plots(self) -> Sequence[FinderPlot]:
        """The plots, from left to right."""
        raise NotImplementedError

    def find(self, on_progress: Callable[[Any], object], should_stop: Callable[[], bool]) -> Any:
        """Measure; in a thread."""
        raise NotImplementedError

    def take_progress(self, progress: Any) -> str:
        """Take note of what has been measured; returns what happens now, in words."""
        raise NotImplementedError

    def take_result(self, result: Any) -> str:
        """Take note of what was found; returns why nothing was, empty if something was."""
        raise NotImplementedError

    def draw(self) -> None:
        """Show plots, table and notes."""
        raise NotImplementedError

    @property
    def plan(self) -> Plan | None:
        """The plan that is measured; ``None`` for a run's."""
        return None

    @property
    def values(self) -> Sequence[float]:
        """The values that the cursor can be at, rising."""
        raise NotImplementedError

    @property
    def suggested(self) -> Sequence[float]:
        """The values that are suggested, the best first."""
        raise NotImplementedError

    def take(self, value: float) -> None:
        """Use a value."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Begin to measure."""
        self._begin()

    def on_unmount(self) -> None:
        """End the engine."""
        self._stop.set()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Move where there are values; take one once they are found; measure again after that."""
        del parameters
        if action == "again":
            return not self._is_running
        if action == "take":
            return None if self._is_running or self.at is None else True
        if action == "select":
            return bool(self.suggested)
        return bool(self.values) if action == "move" else True

    @property
    def work_in_progress(self) -> str:
        """The measurement."""
        return "the measurement" if self._is_running else ""

    def action_again(self) -> None:
        """Measure once more."""
        self._begin()

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self._go_to(0 if self.at is None else self.at + by)

    def action_select(self, by: int) -> None:
        """Move the cursor to another suggestion."""
        at = [self._nearest(each) for each in self.suggested]
        index = at.index(self.at) if self.at in at else -by
        self._go_to(at[(index + by) % len(at)])

    def action_take(self) -> None:
        """Use the value at the cursor."""
        if self.at is not None:
            self.take(self.chosen(self.values[self.at]))

    def chosen(self, value: float) -> float:
        """The value to use at the cursor: that of a suggestion at this place."""
        return next((each for each in self.suggested if self._nearest(each) == self.at), value)

    @on(FinderPlot.Pointed)
    def _point(self, event: FinderPlot.Pointed) -> None:
        event.stop()
        if self.values:
            self._go_to(self._nearest(event.value))
            if event.times > 1 and not self._is_running:
                self.action_take()

    def _nearest(self, value: float) -> int:
        """The index of the nearest value, on a logarithmic axis."""
        values = self.values
        return min(range(len(values)), key=lambda index: max(values[index] / value, value / values[index]))

    def _go_to(self, index: int) -> None:
        had_none = self.at is None
        self.at = min(max(index, 0), len(self.values) - 1)
        self.draw()
        if had_none:
            self.refresh_bindings()

    def _begin(self) -> None:
        self._stop = threading.Event()
        self._is_running, self.at, self._problem = True, None, ""
        self._about.update(Content.styled("starting an engine process", "$text-accent"))
        self.refresh_bindings()
        self._measure(self._stop)

    @work(thread=True, exit_on_error=False, group="find")
    def _measure(self, stop: threading.Event) -> None:
        app = self.app

        def post(show: Callable[..., object], *arguments: Any) -> None:
            if not stop.is_set():
                self.call_later(show, *arguments)

        def progress(reached: Any) -> None:
            now = time.monotonic()
            if now - self._shown_at >= SHOW_SECONDS or reached.detail != self._detail:
                self._shown_at, self._detail = now, reached.detail
                post(self._show_progress, reached)

        with reported(partial(post, self._fail)):
            if self.plan:
                for warning in filter(None, (*warnings(devices_of(self.plan)), isolation.warning(resolve(self.plan)))):
                    app.notify(warning, severity="warning", markup=False)
            post(self._finish, self.find(progress, lambda: stop.is_set() or not app.is_running))

    def _show_progress(self, progress: Any) -> None:
        self._about.update(Content.styled(printable(self.take_progress(progress)), "$text-accent"))
        self.draw()

    def _finish(self, result: Any) -> None:
        problem = self.take_result(result)
        self._is_running = False
        if self.suggested:
            self.at = self._nearest(self.suggested[0])
        style = "$text-error" if problem else "$text-success"
        self._about.update(Content.styled(printable(problem or self.found_text), style))
        self.draw()
        self.refresh_bindings()

    @property
    def found_text(self) -> str:
        """What was found, in a line."""
        raise NotImplementedError

    def _fail(self, problem: str) -> None:
        self._is_running = False
        self._about.update(Content.styled(printable(problem), "$text-error"))
        self.refresh_bindings()

    def show_found(self, table: Content, notes: Sequence[str]) -> None:
        """Show a table, and notes below it, a sentence each."""
        self.query_one("#table", Static).update(table)
        sentences = [f"{note[:1].upper()}{note[1:]}." for note in notes]
        self.query_one("#notes", Static).update(printable("\n".join(sentences)))
