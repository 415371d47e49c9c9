"""Diagnostics screen: confusion matrix, samples with the highest loss, and layers of a run."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
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


class DiagnosticsScreen(DirtyRegionScreen):
    """Shows a run's diagnostics, updated after each validation.

    Args:
        directory: The run's directory.
    """

    CSS_PATH = "diagnostics_screen.tcss"
    AUTO_FOCUS = "ConfusionMatrix"
    BINDING_GROUP_TITLE = "Diagnostics"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "tab('confusion')", show=False, id="diagnostics.confusion", tooltip="Show the confusion matrix"),
        Binding(
            "2",
            "tab('pictures')",
            show=False,
            id="diagnostics.samples",
            tooltip="Show validation samples, highest loss first",
        ),
        Binding("3", "tab('layers')", show=False, id="diagnostics.layers", tooltip="Show the layers of the model"),
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

    diagnostics: reactive[Diagnostics | None] = reactive(None, repaint=False, init=False)
    """The run's diagnostics; ``None`` before they are read."""

    live: reactive[bool] = reactive(False, repaint=False)
    """Whether the run has a live engine that can validate."""

    has_checkpoint: reactive[bool] = reactive(False, repaint=False)
    """Whether the run has a checkpoint to validate after its end."""

    problem: reactive[str] = reactive("", repaint=False, init=False)
    """Why the run cannot be read."""

    progress: reactive[str] = reactive("", repaint=False, init=False)
    """Progress of validating an ended run; empty while none is in progress."""

    validation_problem: reactive[str] = reactive("", repaint=False, init=False)
    """Why validation failed."""

    @dataclass
    class DiagnosticsRead(Message):
        """The run's diagnostics were read."""

        live: bool
        stamp: tuple[float, ...]
        diagnostics: Diagnostics | None
        problem: str = ""
        has_checkpoint: bool = False

    @dataclass
    class RequestFailed(Message):
        """A command could not be sent to the engine."""

        words: str

    @dataclass
    class Progressed(Message):
        """Examples of an ended run were evaluated."""

        done: int
        total: int

    @dataclass
    class ValidationEnded(Message):
        """The validation of an ended run has ended."""

        validation_problem: str

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self._stamp: tuple[float, ...] | None = None
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
        self._read(self._stamp)
        self.set_interval(POLL_SECONDS, lambda: self._read(self._stamp))

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
        return (not self.progress or None) if self.live or self.has_checkpoint else False

    def action_tab(self, name: str) -> None:
        """Switch to a tab."""
        self.query_one(Tabs).active = f"{name}{_TAB}"

    def action_validate(self) -> None:
        """Validate: by the engine of a live run, else in a new process."""
        self.validation_problem = ""
        if self.live:
            self._request()
        else:
            self.progress = "Validating the last checkpoint in the background: starting TensorFlow…"
            self._revalidate()

    async def action_quit(self) -> None:
        """Quit as the run screen below does, which may ask first."""
        await self.app.run_action("quit", self.app.screen_stack[-2])

    def watch_diagnostics(self) -> None:
        """Show new diagnostics."""
        diagnostics = self.diagnostics or Diagnostics()
        for widget in (self.query_one(ConfusionMatrix), self.query_one(SampleGallery)):
            widget.step = diagnostics.steps.get("evaluation", 0)
            widget.report = diagnostics.evaluation
        self.query_one(LayerList).table = diagnostics.layers
        self._update_status()

    def watch_live(self) -> None:
        """Update the status line and the keys."""
        self.refresh_bindings()
        self._update_status()

    def watch_has_checkpoint(self) -> None:
        """Update the status line and the keys."""
        self.refresh_bindings()
        self._update_status()

    def watch_problem(self) -> None:
        """Show why the run cannot be read."""
        self._update_status()

    @on(Tabs.TabActivated)
    def _show_tab(self, event: Tabs.TabActivated) -> None:
        event.stop()
        self.query_one(ContentSwitcher).current = self.tab
        self.query_one(f"#{self.tab}").focus()
        self._update_status()

    @on(DiagnosticsRead)
    def _update(self, event: DiagnosticsRead) -> None:
        event.stop()
        self.problem, self.live, self.has_checkpoint = event.problem, event.live, event.has_checkpoint
        if event.diagnostics is not None:
            self._stamp, self.diagnostics = event.stamp, event.diagnostics

    def watch_progress(self) -> None:
        """Show the progress."""
        self.refresh_bindings()
        self._update_status()

    def watch_validation_problem(self) -> None:
        """Show why validation failed."""
        self._update_status()

    @on(Progressed)
    def _update_progress(self, event: Progressed) -> None:
        event.stop()
        self.progress = f"Validating the last checkpoint on the CPU: {event.done:,} of {event.total:,} examples"

    @on(ValidationEnded)
    def _finish_validation(self, event: ValidationEnded) -> None:
        event.stop()
        self.progress, self.validation_problem = "", event.validation_problem
        self._read(self._stamp)

    @on(RequestFailed)
    def _notify_failure(self, event: RequestFailed) -> None:
        event.stop()
        self.notify(event.words, severity="error", markup=False)

    def _update_status(self) -> None:
        if not self.is_mounted or self.diagnostics is None:
            words = Content.styled(self.problem, "$text-error")
        else:
            words = _status_text(self.diagnostics, self.tab, live=self.live, has_checkpoint=self.has_checkpoint)
            if problem := self.problem or self.validation_problem:
                words = Content.styled(problem, "$text-error")
            elif self.progress:
                words = Content.styled(self.progress, "$text-accent")
        about = self.query_one("#about", Static)
        about.display = bool(words)
        about.update(words)

    @work(thread=True, exclusive=True, exit_on_error=False, group="look")
    def _read(self, known: tuple[float, ...] | None) -> None:
        try:
            with closing(RunReader(self.directory)) as reader:
                live = reader.info().status.live
            now = modification_times(self.directory)
            inside = printable_fields(read(self.directory)) if now != known else None
            saved = latest_checkpoint(self.directory) > 0
            self.post_message(self.DiagnosticsRead(live, now, inside, has_checkpoint=saved))
        except RunError as error:
            self.post_message(self.DiagnosticsRead(False, (), None, str(error)))

    @work(thread=True, exit_on_error=False, group="request")
    def _request(self) -> None:
        try:
            request(self.directory, "validate")
        except RunError as error:
            self.post_message(self.RequestFailed(str(error)))

    @work(thread=True, exit_on_error=False, group="revalidate")
    def _revalidate(self) -> None:
        validation_problem = ""
        try:
            with ModelQuery("--revalidate", self.directory, {}) as self._query:
                if not self._is_closed:
                    self._query.answer(lambda done, total: self.post_message(self.Progressed(done, total)))
        except AccelError as error:
            validation_problem = str(error)
        self.post_message(self.ValidationEnded(validation_problem))


def _status_text(diagnostics: Diagnostics, tab: str, *, live: bool, has_checkpoint: bool) -> Content:
    """Text of the status line of a tab."""
    if tab == "layers":
        return (
            Content("")
            if diagnostics.layers
            else Content.styled(_empty_text("layers", live=live, has_checkpoint=has_checkpoint), "$text-muted")
        )
    if diagnostics.evaluation is None or not (diagnostics.evaluation.names or diagnostics.evaluation.reason):
        return Content.styled(_empty_text("validation", live=live, has_checkpoint=has_checkpoint), "$text-muted")
    shown = diagnostics.evaluation.counts if tab == "confusion" else diagnostics.evaluation.worst or None
    return Content(diagnostics.evaluation.reason if shown is None else "")


def _empty_text(what: str, *, live: bool, has_checkpoint: bool) -> str:
    if what == "layers":
        return "Layers are listed once the first step is traced." if live else "This run did not record its layers."
    if live:
        return "No validation yet. Press V to validate now, once the first step is done."
    if not has_checkpoint:
        return "No validation results: the run ended before its first checkpoint."
    return "No validation results were recorded. Press V to validate the last checkpoint in the background."
