"""Diagnostics screen: confusion matrix, samples with the highest loss, and layers of a run."""

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import ContentSwitcher, Static, Tab, Tabs

from accel_engine.errors import AccelError, RunError
from accel_engine.launch.model_query import ModelQuery
from accel_engine.run import RunReader, request
from accel_engine.run.diagnostics import Diagnostics, modification_times, read
from accel_engine.run.run_paths import latest_checkpoint
from accel_engine.text import printable_fields
from accel_tui.terminal.dirty_regions import DirtyRegionScreen
from accel_tui.widgets.diagnostics.confusion_matrix import ConfusionMatrix
from accel_tui.widgets.diagnostics.layer_list import LayerList
from accel_tui.widgets.diagnostics.sample_gallery import SampleGallery
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.top_bar import TopBar

POLL_SECONDS = 0.5
"""Seconds between two checks for new diagnostics; a check takes 1 to 2 ms in a thread."""

TABS = {"confusion": "1 Confusion matrix", "pictures": "2 Samples", "layers": "3 Layers"}
"""Tab labels by the id of their widget."""

_TAB = "-tab"


@dataclass(frozen=True, slots=True)
class _Reading:
    """What was read of a run.

    Attributes:
        live: Whether it has a live engine that can validate.
        has_checkpoint: Whether it has a checkpoint to validate after its end.
        stamp: When its diagnostics were written.
        diagnostics: Its diagnostics; ``None`` before they are read.
        problem: Why it cannot be read.
    """

    live: bool = False
    has_checkpoint: bool = False
    stamp: tuple[float, ...] | None = None
    diagnostics: Diagnostics | None = None
    problem: str = ""


class DiagnosticsScreen(DirtyRegionScreen):
    """Shows a run's diagnostics, updated after each validation.

    Args:
        directory: The run's directory.
    """

    CSS_PATH = "diagnostics_screen.tcss"
    AUTO_FOCUS = "ConfusionMatrix"
    BINDING_GROUP_TITLE = "Diagnostics"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "tab('confusion')", id="diagnostics.confusion", tooltip="Show the confusion matrix"),
        Binding(
            "2", "tab('pictures')", id="diagnostics.samples", tooltip="Show validation samples, highest loss first"
        ),
        Binding("3", "tab('layers')", id="diagnostics.layers", tooltip="Show the layers of the model"),
        Binding(
            "V",
            "validate",
            "Validate",
            id="diagnostics.validate",
            tooltip="Validate now; an ended run from its last checkpoint, in the background",
        ),
        Binding("escape,w", "app.pop_screen", "Back", id="diagnostics.back", tooltip="Go back to the run"),
        Binding("q", "quit", "Quit", id="diagnostics.quit", tooltip="Quit accel-tui; asks first while the run is live"),
    ]

    reading: reactive[_Reading] = reactive(_Reading(), repaint=False, init=False)
    """What was read of the run."""

    progress: reactive[str] = reactive("", repaint=False, init=False)
    """Progress of validating an ended run; empty while none is in progress."""

    validation_problem: reactive[str] = reactive("", repaint=False, init=False)
    """Why validation failed."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self._query: ModelQuery | None = None
        self._is_closed = False

    @property
    def tab(self) -> str:
        """The id of the active tab."""
        return self.query_one(Tabs).active.removesuffix(_TAB) or next(iter(TABS))

    def compose(self) -> ComposeResult:
        """Compose the tabs, a status line, and the three pages."""
        yield TopBar(f"Diagnostics  {self.directory.name}")
        yield Tabs(*(Tab(label, id=f"{name}{_TAB}") for name, label in TABS.items()))
        yield Static(id="about", markup=False)
        with ContentSwitcher(initial="confusion"):
            yield ConfusionMatrix(id="confusion")
            yield SampleGallery(id="pictures")
            yield LayerList(id="layers")
        yield KeyBar()

    def on_mount(self) -> None:
        """Read the diagnostics now and periodically."""
        self._read(self.reading)
        self.set_interval(POLL_SECONDS, lambda: self._read(self.reading))

    def on_unmount(self) -> None:
        """Cancel a validation in progress."""
        self._is_closed = True
        if self._query:
            self._query.cancel()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer validation only of a live run or a checkpoint, and only while none is in progress."""
        del parameters
        if action != "validate":
            return True
        return (not self.progress or None) if self.reading.live or self.reading.has_checkpoint else False

    def action_tab(self, name: str) -> None:
        """Switch to a tab."""
        self.query_one(Tabs).active = f"{name}{_TAB}"

    def action_validate(self) -> None:
        """Validate: by the engine of a live run, else in a new process."""
        self.validation_problem = ""
        if self.reading.live:
            self._request()
        else:
            self.progress = "Validating the last checkpoint in the background: starting TensorFlow…"
            self._revalidate()

    async def action_quit(self) -> None:
        """Quit as the run screen below does, which may ask first."""
        await self.app.run_action("quit", self.app.screen_stack[-2])

    def watch_reading(self, before: _Reading, reading: _Reading) -> None:
        """Show new diagnostics, and update the status line and the keys."""
        if reading.diagnostics is not before.diagnostics:
            diagnostics = reading.diagnostics or Diagnostics()
            for widget in (self.query_one(ConfusionMatrix), self.query_one(SampleGallery)):
                widget.step = diagnostics.steps.get("evaluation", 0)
                widget.report = diagnostics.evaluation
            self.query_one(LayerList).table = diagnostics.layers
        self._update_status()

    def watch_progress(self) -> None:
        """Show the progress."""
        self._update_status()

    def watch_validation_problem(self) -> None:
        """Show why validation failed."""
        self._update_status()

    @on(Tabs.TabActivated)
    def _show_tab(self, event: Tabs.TabActivated) -> None:
        event.stop()
        self.query_one(ContentSwitcher).current = self.tab
        self.query_one(f"#{self.tab}").focus()
        self._update_status()

    def _show_progress(self, done: int, total: int) -> None:
        self.progress = f"Validating the last checkpoint on the CPU: {done:,} of {total:,} examples"

    def _finish_validation(self, problem: str) -> None:
        self.progress, self.validation_problem = "", problem
        self._read(self.reading)

    def _notify_failure(self, problem: str) -> None:
        self.notify(problem, severity="error", markup=False)

    def _update_status(self) -> None:
        self.refresh_bindings()
        if not self.is_mounted or self.reading.diagnostics is None:
            words = Content.styled(self.reading.problem, "$text-error")
        else:
            words = _status_text(self.reading, self.tab)
            if problem := self.reading.problem or self.validation_problem:
                words = Content.styled(problem, "$text-error")
            elif self.progress:
                words = Content.styled(self.progress, "$text-accent")
        about = self.query_one("#about", Static)
        about.display = bool(words)
        about.update(words)

    @work(thread=True, exclusive=True, exit_on_error=False, group="look")
    def _read(self, before: _Reading) -> None:
        try:
            with closing(RunReader(self.directory)) as reader:
                live = reader.info().status.live
            stamp, diagnostics = modification_times(self.directory), before.diagnostics
            if stamp != before.stamp:
                diagnostics = printable_fields(read(self.directory))
            reading = _Reading(live, latest_checkpoint(self.directory) > 0, stamp, diagnostics)
        except RunError as error:
            reading = _Reading(False, False, before.stamp, before.diagnostics, str(error))
        self.call_later(setattr, self, "reading", reading)

    @work(thread=True, exit_on_error=False, group="request")
    def _request(self) -> None:
        try:
            request(self.directory, "validate")
        except RunError as error:
            self.call_later(self._notify_failure, str(error))

    @work(thread=True, exit_on_error=False, group="revalidate")
    def _revalidate(self) -> None:
        problem = ""
        try:
            with ModelQuery("--revalidate", self.directory, {}) as self._query:
                if not self._is_closed:
                    self._query.answer(partial(self.call_later, self._show_progress))
        except AccelError as error:
            problem = str(error)
        self.call_later(self._finish_validation, problem)


def _status_text(reading: _Reading, tab: str) -> Content:
    """Text of the status line of a tab."""
    diagnostics = reading.diagnostics or Diagnostics()
    if tab == "layers":
        return Content("") if diagnostics.layers else Content.styled(_empty_text("layers", reading), "$text-muted")
    if diagnostics.evaluation is None or not (diagnostics.evaluation.names or diagnostics.evaluation.reason):
        return Content.styled(_empty_text("validation", reading), "$text-muted")
    shown = diagnostics.evaluation.counts if tab == "confusion" else diagnostics.evaluation.worst or None
    return Content(diagnostics.evaluation.reason if shown is None else "")


def _empty_text(what: str, reading: _Reading) -> str:
    if what == "layers":
        unread = "Layers are listed once the first step is traced."
        return unread if reading.live else "This run did not record its layers."
    if reading.live:
        return "No validation yet. Press V to validate now, once the first step is done."
    if not reading.has_checkpoint:
        return "No validation results: the run ended before its first checkpoint."
    return "No validation results were recorded. Press V to validate the last checkpoint in the background."
