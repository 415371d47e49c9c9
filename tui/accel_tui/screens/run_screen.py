"""A run, live or ended: its curves, its devices, and the keys that steer it."""

import asyncio
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.events import ScreenResume
from textual.message import Message
from textual.notifications import SeverityLevel
from textual.reactive import reactive
from textual.widgets import Label
from textual.worker import Worker, WorkerState

from accel_engine.events import CommandAnswered, Outcome, Warned
from accel_engine.text import printable
from accel_tui.run.hardware import inventory_of, meters_of
from accel_tui.run.run_follower import RunFollower
from accel_tui.run.state import RunState
from accel_tui.screens.run_control import RunControlScreen
from accel_tui.screens.select_charts_screen import SelectChartsScreen
from accel_tui.terminal.notifications import worth_a_call
from accel_tui.widgets.charts.run_charts import RunCharts
from accel_tui.widgets.devices.device_panel import DevicePanel
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.log.log_view import LogView
from accel_tui.widgets.run.notices import Notices
from accel_tui.widgets.run.phase_line import PhaseLine
from accel_tui.widgets.run.progress_line import ProgressLine
from accel_tui.widgets.run.run_details import RunDetails
from accel_tui.widgets.run.run_outcome import RunOutcome, results
from accel_tui.widgets.run.run_title import RunTitle
from accel_tui.widgets.run.run_view import RunView
from accel_tui.widgets.run.worker_list import WorkerList, WorkerSummary
from accel_tui.widgets.visibility import is_covered

COVERED_SECONDS = 1.0
"""How long news waits while another screen covers this one: nothing but an end or a warning is told from there."""


TICK_SECONDS = 1.0
"""How often what goes by the clock is told while there is no news that it is told with."""


class RunScreen(RunControlScreen):
    """Follows a run.

    Args:
        directory: The run's.
    """

    CSS_PATH = "run_screen.tcss"

    AUTO_FOCUS = "RunCharts"  # not what there is first, from Python 3.12 on: the log, which is hidden, takes keys too

    BINDING_GROUP_TITLE = "Run"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p,space", "pause", "Pause", id="run.pause", tooltip="Pause between two steps; go on"),
        Binding("p,space", "go_on", "Go on", id="run.go-on", tooltip="Go on training after a pause"),
        Binding("s", "stop", "Stop", id="run.stop", tooltip="End the run, with or without a last checkpoint"),
        Binding("r", "learning_rate", "Rate", id="run.learning-rate", tooltip="Change the learning rate"),
        Binding("c", "checkpoint", "Save", id="run.checkpoint", tooltip="Write a checkpoint now"),
        Binding("R", "take_up", "Resume", id="run.resume", tooltip="Train on from the last checkpoint"),
        Binding("l", "log", "Log", id="run.log", tooltip="Show or hide the engine's log"),
        Binding("slash", "search_log", show=False, id="run.search", tooltip="Search the engine's log"),
        Binding("i", "details", "Info", id="run.details", tooltip="Show or hide what is trained, and the notices"),
        Binding("w", "inside", "Inside", id="run.inside", tooltip="Show what is confused, pictures, the layers"),
        Binding("d", "detach", "Detach", id="run.detach", tooltip="Leave the run; it goes on"),
        Binding("escape", "leave", "Back", id="run.back", tooltip="Go back to where you came from; asks as q does"),
        Binding("q", "quit", "Quit", id="run.quit", tooltip="Leave; asks what becomes of a run that goes on"),
    ]

    problem: reactive[str] = reactive("", repaint=False, init=False)
    """Why the run cannot be read."""

    _devices = getters.query_one(DevicePanel)

    @dataclass
    class Unreadable(Message):
        """The run cannot be read."""

        words: str

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._taken = 0.0
        self._news = asyncio.Event()
        self._curveless = False  # ended before its first step: what there is to see is in the log
        self._shown_devices: tuple[object, ...] = (None,) * 5
        self._follower = RunFollower(
            directory,
            on_news=lambda: self._loop.call_soon_threadsafe(self._news.set),
            on_problem=lambda words: self.post_message(self.Unreadable(words)),
        )

    def compose(self) -> ComposeResult:
        """What, how far and how fast; charts beside details; log; devices; keys."""
        self._loop = asyncio.get_running_loop()
        self._follow()  # it is read while all this is made
        yield RunTitle()
        yield PhaseLine().data_bind(RunScreen.asked)
        yield ProgressLine()
        yield WorkerSummary()
        yield RunOutcome().data_bind(RunScreen.problem)
        with Horizontal(id="middle"):
            yield RunCharts()
            with VerticalScroll(id="details", can_focus=False):
                yield RunDetails()
                yield WorkerList()
                yield Label("Notices", classes="heading")
                yield Notices()
        yield LogView(self.directory)
        yield DevicePanel()
        yield KeyBar()

    def on_mount(self) -> None:
        """Find who shows the run, and let time pass for them."""
        self._views = self.walk_children(RunView)
        self._listen()
        self.set_interval(TICK_SECONDS, self._tick)
        self.watch(self.query_one(RunCharts), "full", self._fill, init=False)
        # A run that has ended has no news, with which it would be shown.
        self.watch(self._host, "inventory", lambda: self._show_devices(self.state), init=False)

    def on_unmount(self) -> None:
        """Let the follower end, and let go of the terminal's title."""
        self._follower.stop()
        self._host.announcer.restore()

    @work(thread=True, exclusive=True, exit_on_error=False, group="follow")
    def _follow(self) -> None:
        app = self.app
        self._follower.run(lambda: app.is_running)  # a screen that is left while it is made is never unmounted

    @work(exclusive=True, group="news")
    async def _listen(self) -> None:
        """Take what is new, without a message: ten times a second that would cost as much as the words of a line."""
        while await self._news.wait() and not self._pruning:  # then the widgets go away one by one
            self._news.clear()
            self.problem = ""
            if is_covered(self):
                self.set_timer(COVERED_SECONDS, self._take_state)
            else:
                self._take_state()

    def _tick(self) -> None:
        """Let the time go on while nothing else happens."""
        if time.monotonic() - self._taken >= TICK_SECONDS / 5 and not is_covered(self):
            with self.painted_at_once():
                for view in self._views:
                    view.tell()

    @on(ScreenResume)
    def _take_state(self) -> None:
        self._taken = time.monotonic()
        with self.painted_at_once():
            self.state = self._follower.take()

    @on(RunCharts.Looked)
    def _look(self, message: RunCharts.Looked) -> None:
        message.stop()
        self._follower.look(message.part)
        self._follower.read(message.readings)

    def _fill(self, full: bool) -> None:
        self.set_class(full, "-full")

    @on(RunCharts.Choosing)
    def _choose_charts(self, message: RunCharts.Choosing) -> None:
        message.stop()

        def choose(chosen: tuple[str, ...] | None) -> None:
            if chosen is not None:
                self.query_one(RunCharts).chosen = chosen

        self.app.push_screen(SelectChartsScreen(message.panels, message.shown), choose)

    @on(Unreadable)
    def _tell_problem(self, message: Unreadable) -> None:
        message.stop()
        self.problem = message.words

    @on(Worker.StateChanged)
    def _tell_failure(self, event: Worker.StateChanged) -> None:
        if event.worker.group == "follow" and event.state is WorkerState.ERROR:
            self.problem = printable(f"run {self.directory.name} cannot be followed: {event.worker.error}")

    def watch_state(self, before: RunState, state: RunState) -> None:
        """Hand what is new to the widgets that know nothing of runs, and tell what must not be missed."""
        for view in self._views:
            view.take(state)
        curveless = state.over and not state.step and not self._is_script  # a script's output is its own
        if curveless is not self._curveless:
            self._curveless = curveless
            self.query_one(LogView).set_class(curveless, "-open")
            self._make_room()
        self._show_devices(state)
        self._host.announcer.show(state)
        if before.info is None:
            self.refresh_bindings()  # what was said before anybody looked is not told again
            return
        self._tell_notices(before, state)
        if state.over and not before.over:
            self.asked = ()
            if worth_a_call(state):
                title, words = _end_of(state)
                which = state.info.title if state.info else ""
                self._host.announcer.ended(title, " · ".join(filter(None, (which, words))))
            if self.app.screen is not self:  # else it is said large enough
                self._tell_end(state)
            if self._question and self._question.is_active:
                self._question.dismiss(None)  # it was about a run that goes on
        if (before.live, before.paused) != (state.live, state.paused):
            self.refresh_bindings()

    def _show_devices(self, state: RunState) -> None:
        """Show what was read of devices, once a second."""
        shown = (state.info, state.devices, state.meters, state.workers, self._host.inventory)
        if any(new is not old for new, old in zip(shown, self._shown_devices, strict=True)):
            self._shown_devices = shown
            self.set_class(not state.live, "-ended")
            local = state.info is not None and state.info.host == socket.gethostname()
            self._devices.inventory = inventory_of(state, self._host.inventory if local else None)
            self._devices.meters = meters_of(state)

    def _tell_notices(self, before: RunState, state: RunState) -> None:
        fresh = state.noticed - before.noticed
        if not fresh:
            return
        listed = self.query_one(Notices).is_on_screen  # then a toast would only say it twice
        for notice in state.notices[-fresh:]:
            match notice:
                case CommandAnswered():
                    self._forget(notice.command)
                    if not listed:
                        severity: SeverityLevel = "information" if notice.obeyed else "error"
                        self.notify(notice.answer, severity=severity, markup=False, timeout=3)
                case Warned() if not listed:
                    self.notify(notice.message, severity="warning", markup=False, timeout=10)

    def _tell_end(self, state: RunState) -> None:
        title, words = _end_of(state)
        bad = state.ended is None or state.ended.outcome is Outcome.FAILED
        self.notify(words, title=title, severity="error" if bad else "information", markup=False)

    def action_log(self) -> None:
        """Show or hide the log."""
        log = self.query_one(LogView)
        log.toggle_class("-open")  # not the screen's: all of it would be styled anew
        had_focus = log.has_focus_within
        self._make_room()
        if had_focus:
            self.query_one(RunCharts).focus()

    def action_search_log(self) -> None:
        """Show the log, and ask what to search in it."""
        self.query_one(LogView).add_class("-open")
        self._make_room()
        self.query_one(LogView).action_search()

    def action_details(self) -> None:
        """Show or hide the details, which are there by default where there is room."""
        self.query_one("#details").toggle_class("-toggled")  # as above
        self._make_room()

    def on_resize(self) -> None:
        """See whether there is room for details beside the charts."""
        self.call_after_refresh(self._make_room)

    def _make_room(self) -> None:
        """Show details in place of the charts where both do not fit, and the log where there is nothing in them."""
        if self._pruning:
            return  # after a resize the screen calls this that is in front by then
        taken = self.has_class("-narrow") and self.query_one("#details").has_class("-toggled")
        charts, log = self.query_one(RunCharts), self.query_one(LogView)
        instead = self._curveless and log.has_class("-open")
        if instead and self.focused in (None, charts):
            log.lines.focus()
        charts.display = not (taken or instead)
        self.query_one("#middle").set_class(instead, "-curveless")

    def action_inside(self) -> None:
        """Look inside the run."""
        self._host.show_inside(self.directory)


def _end_of(state: RunState) -> tuple[str, str]:
    """How a run ended, and what came of it or why."""
    if state.ended is None:
        who = "script" if state.info and state.info.script else "training process"
        return "Run lost", f"the {who} ended without a word"
    if state.ended.outcome is Outcome.FAILED:
        return "Training failed", state.ended.reason
    return f"Training {state.ended.outcome}", results(state.ended.metrics)
