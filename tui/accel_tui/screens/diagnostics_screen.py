"""What a run looks like inside: which classes it confuses, what it is the most wrong about, its layers."""

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
from accel_engine.model_query import ModelQuery
from accel_engine.run import RunReader, request
from accel_engine.run.diagnostics import Diagnostics, modification_times, read
from accel_engine.text import printable_fields
from accel_tui.terminal.dirty_regions import DirtyRegionScreen
from accel_tui.widgets.diagnostics.confusion_matrix import ConfusionMatrix
from accel_tui.widgets.diagnostics.layer_list import LayerList
from accel_tui.widgets.diagnostics.sample_gallery import SampleGallery
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.top_bar import TopBar

LOOK_SECONDS = 0.5
"""How often it is looked whether there is something new; a look takes a millisecond or two, in a thread."""

TABS = {"confusion": "1 Confusion", "pictures": "2 Pictures", "layers": "3 Layers"}
"""What there is to see, by the id of its widget."""

_TAB = "-tab"


class DiagnosticsScreen(DirtyRegionScreen):
    """Looks into a run, and again whenever its engine has validated.

    Args:
        directory: The run's.
    """

    CSS_PATH = "diagnostics_screen.tcss"
    AUTO_FOCUS = "ConfusionMatrix"
    BINDING_GROUP_TITLE = "Inside a run"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "tab('confusion')", show=False, id="inside.confusion", tooltip="Show which classes are confused"),
        Binding("2", "tab('pictures')", show=False, id="inside.pictures", tooltip="Show what is the most wrong"),
        Binding("3", "tab('layers')", show=False, id="inside.layers", tooltip="Show the layers of the model"),
        Binding(
            "V",
            "validate",
            "Validate",
            id="inside.validate",
            tooltip="Have the run validated now; one that has ended from its last checkpoint, in the background",
        ),
        Binding("escape,w", "app.pop_screen", "Back", id="inside.back", tooltip="Go back to the run"),
        Binding("q", "quit", "Quit", id="inside.quit", tooltip="Leave; asks what becomes of a run that goes on"),
    ]

    inside: reactive[Diagnostics | None] = reactive(None, repaint=False, init=False)
    """What was kept of the run; ``None`` before it was read."""

    live: reactive[bool] = reactive(False, repaint=False)
    """Whether there is an engine that can be asked."""

    problem: reactive[str] = reactive("", repaint=False, init=False)
    """Why the run cannot be read."""

    progress: reactive[str] = reactive("", repaint=False, init=False)
    """How far an ended run is validated; empty when that is not being done."""

    refusal: reactive[str] = reactive("", repaint=False, init=False)
    """Why it could not be validated."""

    @dataclass
    class Looked(Message):
        """The run was looked at."""

        live: bool
        stamp: tuple[float, ...]
        inside: Diagnostics | None
        problem: str = ""

    @dataclass
    class Refused(Message):
        """The engine could not be asked."""

        words: str

    @dataclass
    class Progressed(Message):
        """Examples of an ended run were looked at."""

        done: int
        of: int

    @dataclass
    class Revalidated(Message):
        """An ended run was validated, or could not be."""

        refusal: str

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self._stamp: tuple[float, ...] | None = None
        self._question: ModelQuery | None = None
        self._left = False

    @property
    def tab(self) -> str:
        """Which of the three is shown."""
        return self.query_one(Tabs).active.removesuffix(_TAB) or next(iter(TABS))

    def compose(self) -> ComposeResult:
        """Three of which one is shown, and a line of what there is to say of it."""
        yield TopBar(f"Inside {self.directory.name}")
        yield Tabs(*(Tab(label, id=f"{name}{_TAB}") for name, label in TABS.items()))
        yield Static(id="about", markup=False)
        with ContentSwitcher(initial="confusion"):
            yield ConfusionMatrix(id="confusion")
            yield SampleGallery(id="pictures")
            yield LayerList(id="layers")
        yield KeyBar()

    def on_mount(self) -> None:
        """Look, now and again."""
        self._look(self._stamp)
        self.set_interval(LOOK_SECONDS, lambda: self._look(self._stamp))

    def on_unmount(self) -> None:
        """End what nobody waits for any more."""
        self._left = True
        if self._question:
            self._question.cancel()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Validate once at a time."""
        del parameters
        return None if action == "validate" and self.progress else True

    def action_tab(self, name: str) -> None:
        """Show one of the three."""
        self.query_one(Tabs).active = f"{name}{_TAB}"

    def action_validate(self) -> None:
        """Ask the engine, whose answer the screen of the run tells; where there is none, begin a process."""
        self.refusal = ""
        if self.live:
            self._request()
        else:
            self.progress = "Validating the last checkpoint, in the background: TensorFlow is starting."
            self._revalidate()

    async def action_quit(self) -> None:
        """Leave the program, as from the screen of the run, which is below."""
        await self.app.run_action("quit", self.app.screen_stack[-2])

    def watch_inside(self) -> None:
        """Show what is new."""
        inside = self.inside or Diagnostics()
        for widget in (self.query_one(ConfusionMatrix), self.query_one(SampleGallery)):
            widget.step = inside.steps.get("evaluation", 0)
            widget.examined = inside.evaluation
        self.query_one(LayerList).table = inside.layers
        self._tell()

    def watch_live(self) -> None:
        """Offer to validate, or not."""
        self.refresh_bindings()
        self._tell()

    def watch_problem(self) -> None:
        """Say that the run cannot be read."""
        self._tell()

    @on(Tabs.TabActivated)
    def _show(self, event: Tabs.TabActivated) -> None:
        event.stop()
        self.query_one(ContentSwitcher).current = self.tab
        self.query_one(f"#{self.tab}").focus()
        self._tell()

    @on(Looked)
    def _take(self, event: Looked) -> None:
        event.stop()
        self.problem, self.live = event.problem, event.live
        if event.inside is not None:
            self._stamp, self.inside = event.stamp, event.inside

    def watch_progress(self) -> None:
        """Say how far it is."""
        self.refresh_bindings()
        self._tell()

    def watch_refusal(self) -> None:
        """Say why it could not be done, until something else is done."""
        self._tell()

    @on(Progressed)
    def _take_progress(self, event: Progressed) -> None:
        event.stop()
        self.progress = f"Validating the last checkpoint, on the CPU: {event.done:,} of {event.of:,} examples."

    @on(Revalidated)
    def _take_end(self, event: Revalidated) -> None:
        event.stop()
        self.progress, self.refusal = "", event.refusal
        self._look(self._stamp)

    @on(Refused)
    def _tell_refusal(self, event: Refused) -> None:
        event.stop()
        self.notify(event.words, severity="error", markup=False)

    def _tell(self) -> None:
        if not self.is_mounted or self.inside is None:
            words = Content.styled(self.problem, "$text-error")
        else:
            words = _about(self.inside, self.tab, live=self.live)
            if problem := self.problem or self.refusal:
                words = Content.styled(problem, "$text-error")
            elif self.progress:
                words = Content.styled(self.progress, "$text-accent")
        about = self.query_one("#about", Static)
        about.display = bool(words)
        about.update(words)

    @work(thread=True, exclusive=True, exit_on_error=False, group="look")
    def _look(self, known: tuple[float, ...] | None) -> None:
        try:
            with closing(RunReader(self.directory)) as reader:
                live = reader.info().status.live
            now = modification_times(self.directory)
            self.post_message(self.Looked(live, now, printable_fields(read(self.directory)) if now != known else None))
        except RunError as error:
            self.post_message(self.Looked(False, (), None, str(error)))

    @work(thread=True, exit_on_error=False, group="request")
    def _request(self) -> None:
        try:
            request(self.directory, "validate")
        except RunError as error:
            self.post_message(self.Refused(str(error)))

    @work(thread=True, exit_on_error=False, group="revalidate")
    def _revalidate(self) -> None:
        refusal = ""
        try:
            with ModelQuery("--revalidate", self.directory, {}) as self._question:
                if not self._left:
                    self._question.answer(lambda done, of: self.post_message(self.Progressed(done, of)))
        except AccelError as error:
            refusal = str(error)
        self.post_message(self.Revalidated(refusal))


def _about(inside: Diagnostics, tab: str, *, live: bool) -> Content:
    """What there is to say above one of the three."""
    if tab == "layers":
        return Content("") if inside.layers else Content.styled(_nothing("layers", live=live), "$text-muted")
    if inside.evaluation is None or not (inside.evaluation.names or inside.evaluation.reason):
        return Content.styled(_nothing("validation", live=live), "$text-muted")
    shown = inside.evaluation.counts if tab == "confusion" else inside.evaluation.worst or None
    return Content(inside.evaluation.reason if shown is None else "")


def _nothing(what: str, *, live: bool) -> str:
    if what == "layers":
        return "The layers are listed once the first step is traced." if live else "This run did not list its layers."
    if live:
        return "Nothing was validated yet: that is done after each epoch, or now with V, once a step was taken."
    return (
        "Nothing was kept of a validation: there was none, or an older accel-tui made it. "
        "Press V to have the last checkpoint's model validated now, in the background."
    )
