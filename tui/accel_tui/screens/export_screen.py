"""Export screen: writes the trained model of a run in other formats, and shows what each of them costs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import ScrollableContainer
from textual.content import Content
from textual.widgets import Input, Static

from accel_engine.errors import AccelError
from accel_engine.model_export.export_targets import existing_folder, overwritten
from accel_engine.process.ask import Asked
from accel_engine.requests.export_model import Export, ExportRequest, ExportTarget, MeasuredModel, WritingFormat
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.text import printable
from accel_engine.words import numbers
from accel_tui.formatting.model_export import (
    FASTEST,
    FASTEST_EXPORT,
    NOT_WRITTEN,
    SIGNATURE,
    WRITTEN,
    ExportProgress,
    headline,
    model_header,
    model_rows,
    problems,
    signature_rows,
    written_to,
)
from accel_tui.formatting.runs import warnings
from accel_tui.screens.engine_errors import reported
from accel_tui.screens.question_screen import CANCEL, Answer, QuestionScreen
from accel_tui.screens.working_screen import WorkingScreen
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.text_table import table_content
from accel_tui.widgets.top_bar import TopBar
from accel_tui.widgets.trained.export_form import ChosenExport, ExportForm

OVERWRITE = Answer("overwrite", "Overwrite", "o", is_destructive=True)

_MARKS = {
    FASTEST: "bold $text-success",
    FASTEST_EXPORT: "bold $text-success",
    WRITTEN: "$text-success",
    NOT_WRITTEN: "$text-error",
}
_STATES = dict.fromkeys(("waiting", "to be compared"), "$text-muted") | dict.fromkeys(
    ("writing", "comparing", "measuring"), "$text-accent"
)
_STYLES = _MARKS | _STATES
"""Colours of the last column."""


class ExportScreen(WorkingScreen):
    """Exports the trained model of a run, in an engine process of its own.

    Args:
        directory: The run's directory.
    """

    CSS_PATH: ClassVar = ["trained_form.tcss", "export_screen.tcss"]
    AUTO_FOCUS = "Checklist"
    BINDING_GROUP_TITLE = "Export"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s,ctrl+s", "start", "Export", id="export.start", tooltip="Export the chosen formats"),
        Binding("o", "options", "Options", id="export.options", tooltip="Choose again what to export"),
        Binding("down", "app.focus_next", id="export.next", tooltip="Next field"),
        Binding("up", "app.focus_previous", id="export.previous", tooltip="Previous field"),
        Binding("escape", "back", "Back", id="export.back", tooltip="Go back; asks first while it exports"),
    ]

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory
        self._asked: Asked[Export] | None = None
        self._progress = ExportProgress(())
        self._is_running = False
        self._is_closed = False

    def compose(self) -> ComposeResult:
        """Compose the form, and the room for the progress and the tables."""
        yield TopBar(f"Export {self._directory.name}")
        yield ExportForm(self._directory)
        yield Static(id="about")
        with ScrollableContainer(id="found"):
            yield Static(id="parts")
        yield KeyBar()

    def on_unmount(self) -> None:
        """End the engine."""
        self._is_closed = True
        if self._asked:
            self._asked.cancel()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Start from the form; return to it after the end."""
        del parameters
        is_form = not self.has_class("-started")
        if action == "start":
            return is_form
        return not is_form and not self._is_running if action == "options" else True

    @property
    def work_in_progress(self) -> str:
        """The export."""
        return "the export" if self._is_running else ""

    @property
    def work_detail(self) -> str:
        """What is kept."""
        return "What is written already stays."

    def leave(self) -> None:
        """Go back to the screen below; of an export that is not done, say what was written."""
        written = [each.name for each in self._progress.models[1:] if not each.problem]
        if self._is_running:
            self.app.notify(
                f"written before: {', '.join(written)}" if written else "nothing written", title="Export ended"
            )
        self.app.pop_screen()

    def action_options(self) -> None:
        """Go back to the form."""
        self.remove_class("-started")
        self.query_one(ExportForm).focus_first()
        self.refresh_bindings()

    @on(Input.Submitted)
    def action_start(self) -> None:
        """Check what was chosen, ask before files are overwritten, and export."""
        self._check(self.query_one(ExportForm).choice)

    @work(thread=True, exclusive=True, exit_on_error=False, group="check")
    def _check(self, choice: ChosenExport) -> None:
        try:
            targets, latency = choice.targets(), choice.target_latency
            folder = existing_folder(choice.folder)
        except AccelError as error:
            self.call_later(self._show_mistake, str(error))
            return
        there = [path for target in targets for path in overwritten(target)]
        start = partial(self._start, targets, folder, choice.checkpoint, latency)
        self.call_later(self._ask, start, choice.folder, there)

    def _show_mistake(self, problem: str) -> None:
        self.query_one(ExportForm).problem = printable(problem)

    def _ask(self, start: Callable[[], object], folder: Path, there: Sequence[Path]) -> None:
        def answer(chosen: str | None) -> None:
            if chosen == "overwrite":
                start()

        self.query_one(ExportForm).problem = ""
        if self.has_class("-started") or isinstance(self.app.screen, QuestionScreen):
            return  # the key was pressed again while the choice was checked
        if not there:
            start()
            return
        names = printable(", ".join(path.name for path in there))
        detail = f"In {printable(str(folder))}: {names}. A file is replaced only by a model within the tolerance."
        question = f"Overwrite {numbers.counted(len(there), 'file')}?"
        self.app.push_screen(QuestionScreen(question, detail, (CANCEL, OVERWRITE)), answer)

    def _start(self, targets: Sequence[ExportTarget], folder: Path, checkpoint: str, latency: float | None) -> None:
        self._is_running = True
        self._progress = ExportProgress(tuple(target.name for target in targets))
        self.add_class("-started")
        self.query_one("#found").focus()
        self._show_progress()
        self._export(targets, folder, checkpoint, latency)
        self.refresh_bindings()

    @work(thread=True, exit_on_error=False, group="export")
    def _export(self, targets: Sequence[ExportTarget], folder: Path, checkpoint: str, latency: float | None) -> None:
        app = self.app
        with reported(self._report):
            for warning in warnings(("cpu",), can_choose=False):
                app.notify(warning, severity="warning", markup=False)
            model = ModelReference.of(self._directory)
            with Asked(ExportRequest(model, tuple(targets), folder, checkpoint, latency)) as asked:
                self._asked = asked
                if not self._is_closed:
                    self.call_later(self._show, asked.result(partial(self.call_later, self._take)))

    def _report(self, problem: str) -> None:
        if not self._is_closed:
            self.call_later(self._show_problem, problem)

    def _take(self, part: ExamplesDone | WritingFormat | MeasuredModel) -> None:
        match part:
            case ExamplesDone():
                self._progress = replace(self._progress, examples=(part.done, part.of))
            case WritingFormat():
                self._progress = replace(self._progress, writing=part.name, examples=None)
            case MeasuredModel():
                self._progress = replace(self._progress, models=(*self._progress.models, part))
        self._show_progress()

    def _show_progress(self) -> None:
        self.query_one("#about", Static).update(Content.styled(self._progress.phase, "$text-accent"))
        models = self._progress.models
        metrics = tuple(models[0].metrics) if models else ()
        table = table_content(model_header(metrics), list(self._progress.rows(metrics)), _STYLES)
        self._fill(table)

    def _show_problem(self, problem: str) -> None:
        self._finish()
        self.query_one("#about", Static).update(Content.styled(printable(problem), "$text-error"))
        self._fill()

    def _show(self, found: Export) -> None:
        self._finish()
        notes = map(printable, found.notes)
        self.query_one("#about", Static).update(Content("\n").join(map(Content, (headline(found), *notes))))
        metrics = tuple(found.original.metrics)
        signature = list(signature_rows((found.written or (found.original,))[0]))
        self._fill(
            table_content(model_header(metrics), model_rows(found, metrics), _STYLES),
            _listed("Not written", list(problems(found)), "$text-error"),
            table_content(SIGNATURE, signature, {}),
            _listed(*written_to(found), "$text-muted"),
        )

    def _finish(self) -> None:
        self._is_running = False
        self.refresh_bindings()

    def _fill(self, *parts: Content) -> None:
        """Show parts one below the other; a part without text has no line."""
        self.query_one("#parts", Static).update(Content("\n\n").join([part for part in parts if part]))


def _listed(title: str, lines: Sequence[str], style: str) -> Content:
    """Lines under a title; nothing without lines."""
    if not lines:
        return Content("")
    return Content("\n").join(
        [Content.styled(title, "bold"), *(Content.styled(printable(line), style) for line in lines)]
    )
