"""Diagnostics screen: what the last validation found, in the tabs that fit the task, and the layers of a run."""

from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import ContentSwitcher, Select, Static, Tab, Tabs

from accel_engine.errors import RunError
from accel_engine.process.engine_call import EngineCall
from accel_engine.requests.protocol.request import ComputeDevice, ExamplesDone
from accel_engine.requests.revalidate import RevalidationRequest
from accel_engine.run import send_command
from accel_engine.run.diagnostics import OutputReport
from accel_engine.run.directory.run_paths import run_name
from accel_engine.run_queue.request_device import placed
from accel_engine.words import numbers
from accel_tui.run_state.diagnostics import DiagnosticsReading, read_diagnostics
from accel_tui.screens.asking import WorkingScreen
from accel_tui.screens.job import reported
from accel_tui.terminal.dirty_regions import DirtyRegionScreen
from accel_tui.widgets.diagnostics.pages import LABELS, fill, make_page, status_text, tabs_of
from accel_tui.widgets.key_bar import KeyBar, TopBar

POLL_SECONDS = 0.5
"""Seconds between two checks for new diagnostics; a check takes 1 to 2 ms in a thread."""

_TAB: Final = "-tab"
_MOST_TABS: Final = 7


class DiagnosticsScreen(DirtyRegionScreen, WorkingScreen):
    """Shows a run's diagnostics, updated after each validation.

    Args:
        directory: The run's directory.
    """

    CSS_PATH = "diagnostics_screen.tcss"
    AUTO_FOCUS = "ConfusionMatrix"
    BINDING_GROUP_TITLE = "Diagnostics"
    NOUN: ClassVar[str] = "the validation"
    """What is done in the background, in questions."""
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(at), f"tab_at({at})", id=f"diagnostics.tab-{at}", tooltip=f"Show tab {at}")
            for at in range(1, _MOST_TABS + 1)
        ),
        Binding("O", "output", "Output", id="diagnostics.output", tooltip="Show the next output of the model"),
        Binding(
            "V",
            "validate",
            "Validate",
            id="diagnostics.validate",
            tooltip="Validate now; an ended run from its last checkpoint, in the background",
        ),
        Binding("w", "back", "Back", id="diagnostics.back", tooltip="Go back, with the key that opened this screen"),
        Binding(
            "q", "app.quit", "Quit", id="diagnostics.quit", tooltip="Quit accel-tui; asks first while the run is live"
        ),
    ]

    reading: reactive[DiagnosticsReading] = reactive(DiagnosticsReading(), repaint=False, init=False)
    """The latest reading of the run's diagnostics."""

    output: reactive[int] = reactive(0, repaint=False, init=False)
    """Index of the selected output."""

    progress: reactive[str] = reactive("", repaint=False, init=False)
    """Progress of validating an ended run; empty without a validation."""

    validation_problem: reactive[str] = reactive("", repaint=False, init=False)
    """Why validation failed."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self._call: EngineCall[Any] | None = None
        self._is_closed = False
        self._output_names: list[str] = []
        self._is_read = False
        self._early_tab = 0  # chosen before the first reading, which says what tabs there are

    @property
    def tab(self) -> str:
        """The id of the active tab."""
        return self.query_one(Tabs).active.removesuffix(_TAB) or next(iter(LABELS))

    @property
    def heading(self) -> str:
        return f"Diagnostics  {run_name(self.directory)}"

    @property
    def outputs(self) -> tuple[OutputReport, ...]:
        """The reports of the last validation, one for each output of the model."""
        diagnostics = self.reading.diagnostics
        found = diagnostics.validation.outputs if diagnostics and diagnostics.validation else ()
        return tuple(report for report in found if report.examples)

    @property
    def report(self) -> OutputReport | None:
        """The report of the selected output."""
        return self.outputs[min(self.output, len(self.outputs) - 1)] if self.outputs else None

    @property
    def tabs(self) -> tuple[str, ...]:
        """The ids of the tabs that there are."""
        return tabs_of(self.report, has_media=self.reading.media is not None, has_engine=self.reading.has_engine)

    def compose(self) -> ComposeResult:
        """Compose the tabs, the choice of the output, a status line, and the page of the tab."""
        yield TopBar(self.heading)
        with Horizontal(id="choice"):
            yield Tabs(*(Tab(label, id=f"{name}{_TAB}") for name, label in LABELS.items()))
            yield Select[tuple[int, str]]([("", (-1, ""))], allow_blank=False, compact=True, id="output")
        yield Static(id="about", markup=False)
        with ContentSwitcher(initial="confusion", classes="panel"):
            yield make_page("confusion")
        yield KeyBar()

    def on_mount(self) -> None:
        """Show the tabs, and read the diagnostics."""
        self._update_tabs()
        self._start()

    def _start(self) -> None:
        """Read the diagnostics now and periodically."""
        self._read()
        self.set_interval(POLL_SECONDS, self._read)

    def on_unmount(self) -> None:
        self._is_closed = True
        if self._call:
            self._call.cancel()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only the tabs and outputs that there are, and validation only if it is possible and not in progress."""
        if action == "tab_at":
            return not self._is_read or parameters[0] in range(1, len(self.tabs) + 1)
        if action == "output":
            return len(self.outputs) > 1
        if action != "validate":
            return True
        return (not self.progress or None) if self.reading.live or self.reading.has_checkpoint else False

    def why_not(self, action: str) -> str:
        """Why an action is not possible whose key is dimmed."""
        return "A validation is in progress." if action == "validate" else ""

    def action_tab_at(self, number: int) -> None:
        """Switch to a tab, counted from 1, once the tabs are known."""
        if not self._is_read:
            self._early_tab = number
            return
        self.query_one(Tabs).active = f"{self.tabs[number - 1]}{_TAB}"

    def action_output(self) -> None:
        names = self._output_names
        index = (self.output + 1) % len(names)
        self.query_one("#output", Select).value = (index, names[index])

    def action_validate(self) -> None:
        """Validate: by the engine of a live run, else in a new process."""
        self.validation_problem = ""
        if self.reading.live:
            self._request()
        else:
            self.progress = "Validating the last checkpoint in the background: starting TensorFlow…"
            self._revalidate()

    def watch_reading(self, before: DiagnosticsReading, reading: DiagnosticsReading) -> None:
        """Show new diagnostics, and update the status line and the keys."""
        if reading.diagnostics is not before.diagnostics:
            self._update_outputs()
        if reading.diagnostics is not before.diagnostics or reading.media is not before.media:
            self._fill_page()
        self._update_status()

    def watch_output(self) -> None:
        self._fill_page()
        self._update_status()

    @property
    def work_in_progress(self) -> str:
        """What is done in the background."""
        return self.NOUN if self.progress else ""

    def watch_progress(self) -> None:
        """Update the status line; close the question about work that has ended meanwhile."""
        if not self.progress:
            self.withdraw_question()
        self._update_status()

    def watch_validation_problem(self) -> None:
        self._update_status()

    @on(Tabs.TabActivated)
    async def _show_tab(self, event: Tabs.TabActivated) -> None:
        event.stop()
        name = self.tab
        switcher = self.query_one(ContentSwitcher)
        page = next((each for each in switcher.children if each.id == name), None)
        if page is None:  # pages are made when they are first shown
            page = make_page(name)
            page.display = False
            fill(page, self.reading, self.report)
            await switcher.mount(page)
        if self.tab == name:
            fill(page, self.reading, self.report)  # there may be a new one since it was last shown
            switcher.current = name
            if widget := next((each for each in (page, *page.query("*")) if each.focusable), None):
                self.set_focus(widget)
            self._update_status()

    @on(Select.Changed, "#output")
    def _choose_output(self, event: Select.Changed) -> None:
        event.stop()
        if isinstance(event.value, tuple):
            self.output = max(event.value[0], 0)

    def _fill_page(self) -> None:
        self._update_tabs()
        page = self.query_one(ContentSwitcher).visible_content  # others are filled when they are shown
        if page and page.id in self.tabs:
            fill(page, self.reading, self.report)

    def _update_outputs(self) -> None:
        select = self.query_one("#output", Select)
        names = [report.output or f"output {index}" for index, report in enumerate(self.outputs)]
        select.display = len(names) > 1
        if names and names != self._output_names:
            self._output_names = names
            self.output = min(self.output, len(names) - 1)
            with self.prevent(Select.Changed):
                select.set_options([(Content(name), (index, name)) for index, name in enumerate(names)])
                select.value = (self.output, names[self.output])

    def _update_tabs(self) -> None:
        """Show the tabs that fit, numbered; the first of them if the active one does not."""
        tabs, shown = self.query_one(Tabs), self.tabs
        for number, name in enumerate(shown, 1):
            tabs.query_one(f"#{name}{_TAB}", Tab).label = Content(f"{number} {LABELS[name]}")
            tabs.show(f"{name}{_TAB}")
        if self.tab not in shown:
            tabs.active = f"{shown[0]}{_TAB}"
        for name in LABELS:
            if name not in shown:
                tabs.hide(f"{name}{_TAB}")

    def _take_reading(self, reading: DiagnosticsReading) -> None:
        is_first, self._is_read = not self._is_read, True
        self.reading = reading
        if is_first and 0 < self._early_tab <= len(self.tabs):
            self.action_tab_at(self._early_tab)

    def _show_progress(self, device: ComputeDevice, part: ExamplesDone) -> None:
        self.progress = f"Validating the last checkpoint {device.text}: {numbers.examples_done(part.done, part.of)}"

    def _show_doing(self, device: ComputeDevice, what: str) -> None:
        self.progress = f"Validating the last checkpoint {device.text}: {what}"

    def _show_device(self, device: ComputeDevice) -> None:
        """Tell on which device the examples were predicted; not on a machine without GPUs."""
        if device.is_notable:
            self.notify(f"Predicted {device.text}", markup=False)

    def _finish_validation(self, problem: str) -> None:
        self.progress, self.validation_problem = "", problem
        self._read()

    def _notify_failure(self, problem: str) -> None:
        self.notify(problem, severity="error", markup=False)

    def _update_status(self) -> None:
        self.refresh_bindings()
        if not self.is_mounted or self.reading.diagnostics is None:
            words = Content.styled(self.reading.problem, "$text-error")
        else:
            words = status_text(self.reading, self.report, self.tab)
            if problem := self.reading.problem or self.validation_problem:
                words = Content.styled(problem, "$text-error")
            elif self.progress:
                words = Content.styled(self.progress, "$text-accent")
        about = self.query_one("#about", Static)
        about.display = bool(words)
        about.update(words)

    @work(thread=True, exclusive=True, exit_on_error=False, group="look")
    def _read(self) -> None:
        # The last reading is no argument: Textual describes a worker by all its arguments, and repr() takes long.
        self.call_later(self._take_reading, read_diagnostics(self.directory, self.reading))

    @work(thread=True, exit_on_error=False, group="request")
    def _request(self) -> None:
        try:
            send_command(self.directory, "validate")
        except RunError as error:
            self.call_later(self._notify_failure, str(error))

    @work(thread=True, exit_on_error=False, group="revalidate")
    def _revalidate(self) -> None:
        with reported(partial(self.call_later, self._finish_validation)):
            with placed(RevalidationRequest(self.directory)) as on_device, EngineCall(on_device) as call:
                self._call = call
                if not self._is_closed:
                    found = call.result(
                        partial(self.call_later, self._show_progress, on_device.device),
                        partial(self.call_later, self._show_doing, on_device.device),
                    )
                    self.call_later(self._show_device, found.device)
                    for note in found.notes:
                        self.call_later(self.notify, note, severity="warning", markup=False)
            self.call_later(self._finish_validation, "")
