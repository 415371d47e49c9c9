"""Predict screen: what the trained model of a run says about examples, or the text that it writes."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.widgets import Static

from accel_engine.errors import AccelError, UsageError
from accel_engine.process.ask import Asked
from accel_engine.requests.predict import ExamplePredictions, PredictionRequest
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.requests.write_text import WritingOptions, WritingRequest, WrittenPart, WrittenText
from accel_engine.run.diagnostics import DataFormat, read
from accel_engine.text import printable
from accel_engine.trained.prediction_files import check_files
from accel_engine.user_paths import exists
from accel_engine.words import numbers
from accel_tui.predictions.files import write_predictions
from accel_tui.predictions.inputs import files_of
from accel_tui.predictions.rows import most_examples
from accel_tui.screens.engine_errors import reported
from accel_tui.screens.save_predictions_screen import SavePredictionsScreen
from accel_tui.screens.working_screen import WorkingScreen
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.text_table import TextTable
from accel_tui.widgets.top_bar import TopBar
from accel_tui.widgets.trained.growing_text import GrowingText
from accel_tui.widgets.trained.predict_form import ChosenExamples, PredictForm, writes_text
from accel_tui.widgets.trained.prediction_tables import MOST_ROWS, TOP, PredictionTables, ShownTable, shown_tables


class PredictScreen(WorkingScreen):
    """Predicts examples with the trained model of a run, in an engine process of its own.

    Args:
        directory: The run's directory.
    """

    CSS_PATH: ClassVar = ["trained_form.tcss", "predict_screen.tcss"]
    AUTO_FOCUS = ""
    BINDING_GROUP_TITLE = "Predict"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "predict", "Predict", id="predict.start", tooltip="Predict what is in the fields"),
        Binding("w,ctrl+s", "save", "Save", id="predict.save", tooltip="Save the predictions to a file"),
        Binding("down", "app.focus_next", id="predict.next", tooltip="Next field"),
        Binding("up", "app.focus_previous", id="predict.previous", tooltip="Previous field"),
        Binding("escape", "end", "End", id="predict.back", tooltip="End the prediction"),
        Binding("escape", "back", "Back", id="predict.back", tooltip="Go back"),
    ]

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory
        self._form: DataFormat | None = None
        self._asked: Asked[Any] | None = None
        self._is_running = False
        self._is_cancelled = False
        self._found: ExamplePredictions | None = None
        self._parts = deque[str]()  # of the text, which are not shown yet
        self._is_update_pending = False

    def compose(self) -> ComposeResult:
        """Compose the room for predictions and texts."""
        yield TopBar(f"Predict {self._directory.name}")
        yield Static("enter predicts; tab completes a path", id="about")
        yield Container(id="tables")
        yield GrowingText(id="text")
        yield KeyBar()

    def on_mount(self) -> None:
        """Read what examples the model takes, for the form."""
        self._read_form()

    def on_unmount(self) -> None:
        """End the engine."""
        self._cancel()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Save what was predicted; end what runs."""
        del parameters
        match action:
            case "save":
                return self._found is not None and bool(self._found.outputs) and not self._is_running
            case "end":
                return self._is_running
            case "back":
                return not self._is_running
            case "predict":
                return not self._is_running and bool(self.query(PredictForm))
        return True

    def action_predict(self) -> None:
        """Predict what is in the fields."""
        self.query_one(PredictForm).ask()

    @property
    def work_in_progress(self) -> str:
        """The prediction; a text that is being written stays as far as it is."""
        return "the prediction" if self._is_running and not self.has_class("-writing") else ""

    def action_end(self) -> None:
        """End the engine; asks first if what was computed would be lost."""
        self.ask_to_end(self._cancel)

    def action_save(self) -> None:
        """Ask for a file, then save the predictions."""

        def save(path: Path | None) -> None:
            if path and self._found:
                self._save(path, self._found)

        self.app.push_screen(SavePredictionsScreen(f"{self._directory.name}-predictions.csv"), save)

    @work(thread=True, exit_on_error=False, group="form")
    def _read_form(self) -> None:
        form = None
        try:
            form = read(self._directory).format
        except AccelError as error:
            self.call_later(self._show_problem, str(error))
        self.call_later(self._show_form, form)

    async def _show_form(self, form: DataFormat | None) -> None:
        self._form = form
        await self.mount(PredictForm(self._directory, form), before="#about")
        if writes_text(form):
            self._tell("enter writes", "$text-muted")
        self.refresh_bindings()

    @on(PredictForm.Mistaken)
    def _show_mistake(self, event: PredictForm.Mistaken) -> None:
        event.stop()
        self._show_problem(event.problem)

    @on(PredictForm.Asked)
    def _start(self, event: PredictForm.Asked) -> None:
        event.stop()
        if self._is_running:
            self.app.bell()
            return
        self._is_running, self._is_cancelled = True, False
        self._tell("starting an engine", "$text-accent")
        self.remove_class("-predicted")
        self.set_class(isinstance(event.choice, WritingOptions), "-writing")
        if isinstance(event.choice, WritingOptions):
            self._parts.clear()
            self.query_one(GrowingText).begin(event.choice.prompt)
            self._write(event.choice)
        else:
            self._predict(event.choice)
        self.refresh_bindings()

    @work(thread=True, exit_on_error=False, group="predict")
    def _predict(self, choice: ChosenExamples) -> None:
        def ask() -> Callable[[], object] | None:
            if choice.path and not exists(choice.path):
                raise UsageError(f"no such file: {choice.path}")
            files = files_of(choice.path) if choice.path else []
            if self._form:
                check_files(self._directory.name, self._form, files)
            request = PredictionRequest(self._directory, tuple(files), tuple(choice.texts), choice.checkpoint)
            with Asked(request) as asked:
                self._asked = asked
                if self._is_cancelled:
                    return None
                found = asked.result(partial(self.call_later, self._show_progress))
            return partial(self._show, found, shown_tables(found))

        self._attempt(ask)

    @work(thread=True, exit_on_error=False, group="predict")
    def _write(self, options: WritingOptions) -> None:
        def ask() -> Callable[[], object] | None:
            with Asked(WritingRequest(self._directory, options)) as asked:
                self._asked = asked
                if self._is_cancelled:
                    return None
                written = asked.result(self._take_text)
            return partial(self._show_written, written)

        self._attempt(ask)

    def _attempt(self, ask: Callable[[], Callable[[], object] | None]) -> None:
        """Ask the engine, then show the answer, why there is none, or that the user has ended it before."""
        with reported(self._report):
            self.call_later(ask() or self._show_end)

    def _report(self, problem: str) -> None:
        if self._is_cancelled:
            self.call_later(self._show_end)
        else:
            self.call_later(self._finish, problem, "$text-error")

    def _cancel(self) -> None:
        self._is_cancelled = True
        if self._asked:
            self._asked.cancel()

    def _show_progress(self, part: ExamplesDone) -> None:
        self._tell(numbers.examples_done(part.done, part.of), "$text-accent")

    async def _show(self, found: ExamplePredictions, shown: Sequence[ShownTable]) -> None:
        self._found = found
        tables = self.query_one("#tables", Container)
        await tables.remove_children()
        await tables.mount(PredictionTables(shown))
        self.add_class("-predicted")
        self._finish(_summary(found), "$text-muted")
        if table := next(iter(self.query(TextTable)), None):
            table.focus()

    def _take_text(self, part: WrittenPart) -> None:
        """Add a part of the text, in the thread that waits for it; one update at a time is on its way."""
        self._parts.append(part.text)
        if not self._is_update_pending:
            self._is_update_pending = True
            self.call_later(self._show_parts)

    def _show_parts(self) -> None:
        self._is_update_pending = False
        self.query_one(GrowingText).append("".join(self._parts.popleft() for _ in range(len(self._parts))))

    def _show_written(self, written: WrittenText) -> None:
        self._show_parts()
        tokens = numbers.counted(written.tokens, "token")
        self._finish("\n".join((f"{written.name} at step {written.step:,}, {tokens}", *written.notes)), "$text-muted")

    def _finish(self, words: str, style: str) -> None:
        self._is_running = False
        self._tell(words, style)
        self.refresh_bindings()

    def _show_end(self) -> None:
        self._finish("ended", "$text-muted")

    def _show_problem(self, problem: str) -> None:
        self._tell(problem, "$text-error")

    def _tell(self, words: str, style: str) -> None:
        self.query_one("#about", Static).update(Content.styled(printable(words), style))

    @work(thread=True, exit_on_error=False, group="save")
    def _save(self, path: Path, found: ExamplePredictions) -> None:
        app = self.app
        with reported(partial(app.notify, title="Not saved", severity="error", markup=False)):
            write_predictions(path, found, TOP)
            app.notify(str(path), title="Saved", markup=False)


def _summary(found: ExamplePredictions) -> str:
    """What was predicted, and the notes of the engine."""
    total, shown = len(found.names), len(found.readable)
    step = f" at step {found.step:,}" if found.step else ""
    counts = numbers.counted(total, "example") if shown == total else f"{shown:,} of {total:,} examples predicted"
    limit = most_examples(found, MOST_ROWS)
    most = f"; the first {limit:,} are shown, w saves all" if shown > limit else ""
    return "\n".join((f"{found.name}{step}: {counts}{most}", *found.notes))
