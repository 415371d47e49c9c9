"""Evaluate screen: metrics of runs on examples that training did not see, and whether one of them is better."""

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
from textual.widgets import Static

from accel_engine import data
from accel_engine.process.ask import Asked
from accel_engine.requests.evaluate import Evaluation, EvaluationOptions, EvaluationRequest
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.text import printable, printable_line
from accel_engine.words import numbers
from accel_tui.formatting.evaluation import headline, tables
from accel_tui.host import Screens, open_screen
from accel_tui.screens.engine_errors import reported
from accel_tui.screens.question_screen import CANCEL, Answer, QuestionScreen
from accel_tui.screens.working_screen import WorkingScreen
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.text_table import table_content
from accel_tui.widgets.top_bar import TopBar
from accel_tui.widgets.trained.evaluate_form import EvaluateForm

_VERDICTS = {"better": "$text-success", "worse": "$text-error", "may be chance": "$text-muted"}
"""Colours of verdicts on differences."""


MOST_ASKED = 9
"""The most runs that a question offers, each with a digit."""


class EvaluateScreen(WorkingScreen):
    """Evaluates runs on the same examples, in an engine process of its own.

    Args:
        directories: The runs' directories; the others are compared with the first.
    """

    CSS_PATH: ClassVar = ["trained_form.tcss", "evaluate_screen.tcss"]
    AUTO_FOCUS = "ScrollableContainer"
    BINDING_GROUP_TITLE = "Evaluate"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "d",
            "diagnostics",
            "Diagnostics",
            id="evaluate.diagnostics",
            tooltip="Show the confusion matrix, scores and samples of the evaluated examples",
        ),
        Binding("s,ctrl+s", "start", "Evaluate", id="evaluate.start", tooltip="Evaluate what is chosen"),
        Binding("o", "options", "Options", id="evaluate.options", tooltip="Choose data, split and checkpoint"),
        Binding("down", "app.focus_next", id="evaluate.next", tooltip="Next field"),
        Binding("up", "app.focus_previous", id="evaluate.previous", tooltip="Previous field"),
        Binding("escape", "back", "Back", id="evaluate.back", tooltip="Go back; asks first while it evaluates"),
    ]

    def __init__(self, directories: Sequence[Path]) -> None:
        super().__init__()
        self._directories = tuple(directories)
        self._options = EvaluationOptions()
        self._asked: list[Asked[Evaluation]] = []
        self._number = 0  # of the evaluation; nothing of earlier ones is shown
        self._found: Evaluation | None = None
        self._is_running = False

    def compose(self) -> ComposeResult:
        """Compose the form, which is hidden at first, the progress, and the room for the tables."""
        yield TopBar(f"Evaluate {numbers.counted(len(self._directories), 'run')}")
        yield EvaluateForm(self._directories)
        yield Static(id="about")
        yield ScrollableContainer(id="tables")
        yield KeyBar()

    def on_mount(self) -> None:
        """Start the evaluation."""
        self._start(self._options)

    def on_unmount(self) -> None:
        """End the engine."""
        self._cancel()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Diagnostics are of evaluated runs; the form starts an evaluation."""
        del parameters
        is_form = self.has_class("-choosing")
        match action:
            case "diagnostics":
                return self._found is not None and not is_form
            case "start":
                return is_form
            case "options":
                return not is_form
        return True

    def action_start(self) -> None:
        """Evaluate what is chosen in the form."""
        self.query_one(EvaluateForm).submit()

    def action_options(self) -> None:
        """End the evaluation, and show the form."""
        self._cancel()
        self.add_class("-choosing")
        self.query_one(EvaluateForm).focus_first()
        self.refresh_bindings()

    def action_diagnostics(self) -> None:
        """Open the diagnostics of the evaluated examples; of several runs, ask of which."""
        if len(self._directories) == 1:
            self._diagnose(self._directories[0])
            return
        runs = {f"run-{number}": run for number, run in enumerate(self._directories[:MOST_ASKED], 1)}
        answers = [Answer(name, printable_line(run.name), name.removeprefix("run-")) for name, run in runs.items()]

        def choose(answer: str | None) -> None:
            if answer in runs:
                self._diagnose(runs[answer])

        question = "Diagnostics of which run?"
        self.app.push_screen(
            QuestionScreen(question, "On the examples that were evaluated.", [*answers, CANCEL]), choose
        )

    def _diagnose(self, directory: Path) -> None:
        """Open the diagnostics of the weights that were evaluated: a live run may have saved others since."""
        if self._found is None:
            return
        steps = {run: model.step for run, model in zip(self._directories, self._found.models, strict=True)}
        open_screen(self, Screens.EVALUATED, directory, replace(self._options, checkpoint=str(steps[directory])))

    @property
    def work_in_progress(self) -> str:
        """The evaluation."""
        return "the evaluation" if self._is_running else ""

    @on(EvaluateForm.Submitted)
    def _take_options(self, event: EvaluateForm.Submitted) -> None:
        event.stop()
        self._start(event.options)

    def _start(self, options: EvaluationOptions) -> None:
        self._cancel()
        self._options, self._found, self._is_running = options, None, True
        self.remove_class("-choosing")
        tables = self.query_one("#tables")
        tables.remove_children()
        tables.focus()
        self.query_one("#about", Static).update(Content.styled("starting an engine", "$text-accent"))
        self._evaluate(options, self._number)
        self.refresh_bindings()

    def _cancel(self) -> None:
        """End the engine, of which nothing more is shown."""
        self._number += 1
        self._is_running = False
        for asked in self._asked:
            asked.cancel()

    @work(thread=True, exit_on_error=False, group="evaluate")
    def _evaluate(self, options: EvaluationOptions, number: int) -> None:
        def post(show: Callable[..., object], *arguments: object) -> None:
            if number == self._number:
                self.call_later(show, *arguments)

        with reported(partial(post, self._show_problem)):
            if options.data:
                data.find(options.data)  # before TensorFlow starts
            models = tuple(map(ModelReference.of, self._directories))
            with Asked(EvaluationRequest(models, options)) as asked:
                self._asked.append(asked)
                if number == self._number:
                    post(self._show, asked.result(partial(post, self._show_progress)))

    def _show_progress(self, part: ExamplesDone) -> None:
        words = numbers.examples_done(part.done, part.of)
        self.query_one("#about", Static).update(Content.styled(words, "$text-accent"))

    def _show_problem(self, problem: str) -> None:
        self._is_running = False
        self.query_one("#about", Static).update(Content.styled(printable(problem), "$text-error"))

    async def _show(self, found: Evaluation) -> None:
        self._found, self._is_running = found, False
        self.refresh_bindings()
        notes = [f"{model.name}: {note}" for model in found.models for note in model.notes]
        words = Content("\n").join(
            [Content(headline(found, self._options)), *(Content(printable(note)) for note in notes)]
        )
        self.query_one("#about", Static).update(words)
        room = self.query_one("#tables", ScrollableContainer)
        for table in tables(found, self._options.confidence):
            await room.mount(Static(table_content(table.header, table.rows, _VERDICTS), classes="table"))
            if table.note:
                await room.mount(Static(table.note, classes="note", markup=False))
