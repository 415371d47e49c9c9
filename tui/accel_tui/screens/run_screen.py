"""Run screen: charts, devices, log, and the keys that control the run."""

import socket
import time
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import ScreenResume
from textual.reactive import reactive

from accel_engine.advice import Finding
from accel_engine.events import CommandAnswered
from accel_engine.run.directory.run_paths import reference
from accel_tui.app_protocol import app_of, settings_of
from accel_tui.follower import Unreadable
from accel_tui.formatting.runs import DIRECTORY_LOST
from accel_tui.run_state.advice import AdviceFollower
from accel_tui.run_state.run_devices import inventory_of, meters_of
from accel_tui.run_state.run_follower import RunFollower
from accel_tui.run_state.state import RunState
from accel_tui.screens.asking import ask_user, awaiting
from accel_tui.screens.run_actions import ACTIONS, NEXT_STEPS, RUN, RunActionsScreen, TargetRun, run_bindings
from accel_tui.screens.run_questions import DETACH, after_detach, leave_question, stop_command
from accel_tui.screens.select_charts_screen import SelectChartsScreen
from accel_tui.terminal.dirty_regions import DirtyRegionScreen
from accel_tui.terminal.textual_private import is_being_removed
from accel_tui.widgets.chart_panels.run_charts import RunCharts
from accel_tui.widgets.device_panel import DevicePanel
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.log.log_view import LogView
from accel_tui.widgets.run.next_steps import NextStep, NextSteps
from accel_tui.widgets.run.phase_line import PhaseLine
from accel_tui.widgets.run.run_details import RunDetails
from accel_tui.widgets.run.run_events import RunEvents
from accel_tui.widgets.run.run_lines import SHOWN, AdviceLines, ProgressLine, RunTitle
from accel_tui.widgets.run.run_monitor import RunMonitor
from accel_tui.widgets.run.run_outcome import RunOutcome, notify_end, notify_notices
from accel_tui.widgets.run.run_view import RunView
from accel_tui.widgets.run.worker_list import WorkerList, WorkerSummary
from accel_tui.widgets.visibility import is_covered

COVERED_SECONDS, BEHIND_SECONDS = 1.0, 0.5
"""Seconds between updates while another screen covers this one, and while it is seen around a dialog."""


TICK_SECONDS = 1.0
"""Seconds between updates of elapsed times while the run has no news."""


OFFERED_BY = ("live", "is_queued", "paused", "checkpoint", "can_control_training", "is_directory_lost")
"""What of a state decides which actions are offered."""


class RunScreen(DirtyRegionScreen, RunActionsScreen):
    """Shows a run, live or ended.

    Args:
        directory: The run's directory.
        evidence: Steps to zoom the charts to, once the run is read: the first one, the one after the last one, and the
            series whose chart is selected, with ``validation_`` before one of validation.
    """

    CSS_PATH = "run_screen.tcss"

    AUTO_FOCUS = "RunCharts"  # From Python 3.12 on, the first focusable widget would be the hidden log.

    BINDING_GROUP_TITLE = "Run"
    PLACE = RUN
    BINDINGS: ClassVar[list[BindingType]] = [
        *run_bindings(RUN),
        Binding("l", "log", "Log", id="run.log", tooltip="Show or hide the log"),
        Binding("slash", "search_log", id="run.search", tooltip="Search the log"),
        Binding("i", "details", "Details", id="run.details", tooltip="Show or hide the events and details"),
        Binding("d", "detach", "Detach", id="run.detach", tooltip="Leave the run; it keeps training"),
        Binding("q", "app.quit", "Quit", id="run.quit", tooltip="Quit accel-tui; asks first while the run is live"),
    ]

    state: reactive[RunState] = reactive(RunState(), repaint=False, init=False)
    """The latest state of the run."""

    problem: reactive[str] = reactive("", repaint=False, init=False)
    """Why the run cannot be read, or why its host does not answer."""

    findings: reactive[tuple[Finding, ...]] = reactive((), repaint=False, init=False)
    """Advice on the run."""

    _devices = getters.query_one(DevicePanel)

    def __init__(self, directory: Path, evidence: tuple[int, int, str] | None = None) -> None:
        super().__init__()
        self.directory = directory
        self._updated_at = 0.0
        self._has_no_steps = False  # ended before its first step: only the log has something to show
        self._shown_devices: tuple[object, ...] = (None,) * 5
        self._evidence = evidence
        self._advice = AdviceFollower(directory, partial(is_covered, self))
        self._follower = RunFollower(directory)
        self._read_problem = ""

    def compose(self) -> ComposeResult:
        self._follower.start(self.app)  # reads the run while the widgets are made
        yield RunTitle()
        yield PhaseLine().data_bind(RunScreen.pending_commands, RunScreen.problem)
        yield ProgressLine()
        yield WorkerSummary()
        yield RunOutcome().data_bind(RunScreen.problem)
        yield NextSteps()
        yield AdviceLines().data_bind(RunScreen.findings)
        with Horizontal(id="middle"):
            yield RunCharts().data_bind(RunScreen.problem)
            with Vertical(id="details"):
                yield RunMonitor()
                yield RunEvents().data_bind(RunScreen.findings)
                with VerticalScroll(id="facts", can_focus=False) as facts:
                    facts.border_title = "Details"
                    yield RunDetails()
                    yield WorkerList()
        yield LogView(self.directory)
        yield DevicePanel()
        yield KeyBar()

    def on_mount(self) -> None:
        """Collect the widgets that show the run, and start the timers."""
        self._views = self.walk_children(RunView)
        self._listen()
        self.set_interval(TICK_SECONDS, self._update_times)
        self.watch(self.query_one(RunCharts), "is_full_screen", self._set_full_screen, init=False)
        # An ended run has no news that would show the devices.
        self.watch(self.app, "inventory", lambda: self._show_devices(self.state), init=False)

    def on_unmount(self) -> None:
        self._follower.stop()
        app_of(self).notifier.restore()

    @work(exclusive=True, group="news")
    async def _listen(self) -> None:
        """Update the state without messages, which five times a second would cost as much as drawing a line."""
        async for news in self._follower.news(self.app):
            if is_being_removed(self):
                return  # its widgets are, too
            self._read_problem = news.problem if isinstance(news, Unreadable) else ""
            self._update_problem()
            if self._read_problem:
                continue
            if self.is_active:
                self._update_state()
            else:
                self.set_timer(COVERED_SECONDS if is_covered(self) else BEHIND_SECONDS, self._update_state)

    def _update_problem(self) -> None:
        self.problem = self._read_problem or self.state.link_problem

    def _update_times(self) -> None:
        """Update elapsed times while the run has no news."""
        if time.monotonic() - self._updated_at >= TICK_SECONDS / 5 and not is_covered(self):
            with self.immediate_paint():
                for view in self._views:
                    view.update_view()

    @on(ScreenResume)
    def _update_state(self) -> None:
        self._updated_at = time.monotonic()
        with self.immediate_paint():
            self.state = self._follower.latest()

    @on(RunCharts.VisibleStepsChanged)
    def _load_details(self, message: RunCharts.VisibleStepsChanged) -> None:
        message.stop()
        self._follower.load_visible_steps(message.visible_steps)
        self._follower.load_device_curves(message.readings)

    def _set_full_screen(self, full: bool) -> None:
        self.set_class(full, "-full")

    @on(RunCharts.SelectionRequested)
    @awaiting
    async def _select_charts(self, message: RunCharts.SelectionRequested) -> None:
        selected = await ask_user(self, SelectChartsScreen(message.panels, message.shown))
        if selected is not None:
            self.query_one(RunCharts).selected = selected

    def watch_state(self, before: RunState, state: RunState) -> None:
        """Update the widgets, and notify of warnings, answers and the end."""
        self._update_problem()
        for view in self._views:
            view.set_state(state)
        self.query_one(LogView).set_state(state)
        has_no_steps = state.has_ended and not state.step and has_log(state)
        if has_no_steps is not self._has_no_steps:
            self._has_no_steps = has_no_steps
            self.query_one(LogView).set_class(has_no_steps, "-open")
            self._update_layout()
        self._show_devices(state)
        self._offer_next_steps(state)
        app_of(self).notifier.show(state)
        if state.info and before.info is None:
            self.call_after_refresh(self._listen_to_advice)
        elif state.live is not before.live:
            self._advice.read()
        self._show_evidence()
        if state.has_ended and not before.has_ended:
            app_of(self).expect_requests()
        if before.info is None:
            self.refresh_bindings()  # earlier notices are not repeated
            return
        self._notify_notices(before, state)
        if state.has_ended and not before.has_ended:
            if state.info and state.info.memory_loss:
                app_of(self).launcher.restart_with_less_memory(self.directory)
            notify_end(self, app_of(self).notifier, state)
            self.pending_commands = ()
            self.withdraw_question()  # it was about a live run
        if any(getattr(before, name) != getattr(state, name) for name in OFFERED_BY):
            self.refresh_bindings()

    @work(exclusive=True, group="advice")
    async def _listen_to_advice(self) -> None:
        async for _ in self._advice.news(self.app):
            if is_being_removed(self):
                return
            if advice := self._advice.latest():
                self.findings = advice.findings
                self.query_one(RunCharts).findings = advice.findings[:SHOWN]

    def show_subject(self, directory: Path, evidence: tuple[int, int, str] | None = None) -> bool:
        """Show steps of the same run; of another one, nothing."""
        if directory != self.directory:
            return False
        self._evidence = evidence
        self._show_evidence()
        return True

    def _show_evidence(self) -> None:
        if self._evidence and self.state.step:
            self.query_one(RunCharts).show_steps(*self._evidence)
            self._evidence = None

    def _offer_next_steps(self, state: RunState) -> None:
        """Show what can be done with an ended run; only then, as its engine decides what a live one allows."""
        if not (state.has_ended or self.query_one(NextSteps).steps):
            return
        rows = [ACTIONS[name] for name in NEXT_STEPS if state.has_ended and self.check_action(name, ())]
        keys = settings_of(self).keys
        self.query_one(NextSteps).steps = tuple(
            NextStep(row.id, row.label, self.app.get_key_display(Binding(keys.get(row.binding_id(RUN), row.key), "")))
            for row in rows
        )

    def _show_devices(self, state: RunState) -> None:
        """Update the devices, which change once a second."""
        shown = (state.info, state.devices, state.meters, state.workers, app_of(self).inventory)
        if any(new is not old for new, old in zip(shown, self._shown_devices, strict=True)):
            self._shown_devices = shown
            self._devices.set_class(not state.live, "-ended")
            local = state.info is not None and state.info.host == socket.gethostname()
            self._devices.inventory = inventory_of(state, app_of(self).inventory if local else None)
            self._devices.meters = meters_of(state, self._devices.inventory)

    def _notify_notices(self, before: RunState, state: RunState) -> None:
        new_count = state.notice_count - before.notice_count
        if not new_count:
            return
        notices = state.notices[-new_count:]
        self.drop_pending(*(notice.command for notice in notices if isinstance(notice, CommandAnswered)))
        if not self.query_one(RunEvents).is_on_screen:  # no toast for a notice that is visible
            notify_notices(self, notices)

    def watch_pending_commands(self) -> None:
        """Update the keys: a pending command is not offered again."""
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the actions that the run's state allows."""
        if action == "detach":
            return self.state.live
        if action in ("log", "search_log"):
            return has_log(self.state)
        return super().check_action(action, parameters)

    @property
    def current_run(self) -> TargetRun:
        state = self.state
        has_engine = state.info is None or state.info.has_engine
        has_model = state.checkpoint is not None and has_engine and not state.is_directory_lost
        return TargetRun(
            self.directory,
            state.info,
            has_model or (None if state.live and has_engine else False),
            state=state,
            pending=self.pending_commands,
        )

    def action_detach(self) -> None:
        """Leave the run; it keeps training."""
        self.tell_left()
        self.go_back()

    def tell_left(self) -> None:
        """Tell that a live run continues, and how to see it again."""
        if not self.state.live:
            return
        self.notify(
            f"But {DIRECTORY_LOST}"
            if self.state.is_directory_lost
            else f"Show it again: accel-tui watch {reference(self.directory)}",
            title=f"The run {after_detach(self.state)}",
            markup=False,
        )

    def action_back(self) -> None:
        """Go back, as every other key that leaves: a live run continues."""
        self.action_detach()

    @awaiting
    async def action_quit(self) -> None:
        """Quit; asks first while the run is live."""
        if await self._may_quit():
            self.app.exit()

    async def _may_quit(self) -> bool:
        """Ask whether to detach from a live run, and stop it if that is the answer; returns whether to quit."""
        run = self.current_run
        if not run.state.live or run.state.is_queued:
            return True
        answer = await self.ask(leave_question("Quit accel-tui?", run.id, run.state))
        if answer in ("stop", "stop_now"):
            return await self.send(run, *stop_command(str(answer), run.state))
        return answer == DETACH.id

    def action_log(self) -> None:
        log = self.query_one(LogView)
        log.toggle_class("-open")  # a class of the screen would restyle all of it
        had_focus = log.has_focus_within
        self._update_layout()
        if had_focus:
            self.query_one(RunCharts).focus()

    def action_search_log(self) -> None:
        self.query_one(LogView).add_class("-open")
        self._update_layout()
        self.query_one(LogView).action_search()

    def action_details(self) -> None:
        """Show or hide the details, which are shown by default where there is room."""
        self.query_one("#details").toggle_class("-toggled")  # see action_log
        self._update_layout()

    def on_resize(self) -> None:
        """Update which parts fit."""
        self.call_after_refresh(self._update_layout)

    def _update_layout(self) -> None:
        """Show details instead of the charts where both do not fit, and the log instead of charts without steps."""
        if is_being_removed(self):
            return  # a resize may call this after the screen was closed
        shows_details_only = self.has_class("-narrow") and self.query_one("#details").has_class("-toggled")
        charts, log = self.query_one(RunCharts), self.query_one(LogView)
        shows_log = self._has_no_steps and log.has_class("-open")
        if shows_log and self.focused in (None, charts):
            log.lines.focus()
        charts.display = not (shows_details_only or shows_log)
        self.query_one("#middle").set_class(shows_log, "-curveless")
        self.query_one(AdviceLines).set_class(shows_log, "-curveless")


def has_log(state: RunState) -> bool:
    """Whether the output of the process that trains is in the run's log."""
    return state.is_launched or state.info is None or state.info.has_engine
