"""Evaluate screen: metrics of runs on examples that training did not see, and whether one of them is better."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from accel_engine import data
from accel_engine.requests.evaluate import Evaluation, EvaluationOptions, EvaluationRequest
from accel_engine.requests.protocol.model_reference import ModelReference, check_steps
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.formatting.evaluation import headline, tables
from accel_tui.host import Screens, open_screen
from accel_tui.screens.asking import ask_user, awaiting
from accel_tui.screens.job import Job
from accel_tui.screens.job_screen import JobScreen
from accel_tui.screens.question_screen import CANCEL, Answer, QuestionScreen
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.text_table import ResultTables

_VERDICTS = {"better": "success", "worse": "error", "may be chance": "note"}
"""Colours of verdicts on differences."""


MOST_ASKED = 9
"""The most runs that a question offers, each with a digit."""


class EvaluateScreen(JobScreen):
    """Evaluates runs on the same examples, in an engine process of its own.

    Args:
        directories: The runs' directories; the others are compared with the first.
    """

    NOUN = "the evaluation"
    KEPT = "What is not evaluated yet is lost."
    BINDING_GROUP_TITLE = "Evaluate"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "w",
            "diagnostics",
            "Diagnostics",
            id="evaluate.diagnostics",
            tooltip="Show the confusion matrix, scores and samples of the evaluated examples",
        )
    ]

    def __init__(self, directories: Sequence[Path]) -> None:
        super().__init__()
        self._directories = tuple(directories)
        self._found: Evaluation | None = None

    @property
    def heading(self) -> str:
        """The title in the top bar."""
        return f"Evaluate {numbers.counted(len(self._directories), 'run')}"

    @property
    def first_options(self) -> EvaluationOptions:
        """The runs' own examples."""
        return EvaluationOptions()

    def make_form(self) -> OptionForm:
        """The examples, the weights and how sure the intervals are."""
        names = ", ".join(directory.name for directory in self._directories)
        rows = ("data", "split", "checkpoint", "resamples", "confidence")
        return OptionForm(EvaluationOptions, rows, names, directories=self._directories)

    def compose_result(self) -> ComposeResult:
        """Compose the tables."""
        yield ResultTables(colours=_VERDICTS, id="result")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Diagnostics need an evaluation."""
        if action == "diagnostics":
            return self._found is not None and not self.has_class("-form")
        return super().check_action(action, parameters)

    @awaiting
    async def action_diagnostics(self) -> None:
        """Open the diagnostics of the evaluated examples; of several runs, ask of which."""
        if len(self._directories) == 1:
            self._diagnose(self._directories[0])
            return
        runs = {f"run-{number}": run for number, run in enumerate(self._directories[:MOST_ASKED], 1)}
        answers = [Answer(name, printable_line(run.name), name.removeprefix("run-")) for name, run in runs.items()]
        detail = "On the examples that were evaluated."
        answer = await ask_user(self, QuestionScreen("Diagnostics of which run?", detail, [*answers, CANCEL]))
        if answer in runs:
            self._diagnose(runs[answer])

    def _diagnose(self, directory: Path) -> None:
        """Open the diagnostics of the weights that were evaluated: a live run may have saved others since."""
        if self._found is None:
            return
        steps = {run: model.step for run, model in zip(self._directories, self._found.models, strict=True)}
        open_screen(self, Screens.EVALUATED, directory, replace(self.options, checkpoint=str(steps[directory])))

    def prepare(self, options: EvaluationOptions) -> EvaluationOptions:
        """Check that the data and the checkpoint are there."""
        check_steps(self._directories, options.checkpoint)
        if options.data:
            data.find(options.data)
        return options

    def run(self, job: Job, prepared: EvaluationOptions) -> Evaluation:
        """Evaluate all runs."""
        found: Evaluation = job.ask(EvaluationRequest(tuple(map(ModelReference.of, self._directories)), prepared))
        return found

    def begin(self, prepared: EvaluationOptions) -> None:
        """Remove the tables."""
        del prepared
        self._found = None
        self.query_one(ResultTables).show(())

    def take(self, part: ExamplesDone) -> None:
        """Tell the number of examples."""
        self.progress.tell_examples(part)

    async def finish(self, found: Evaluation | None) -> Sequence[str]:
        """Show the metrics, and the differences."""
        self._found = found
        if found is None:
            return ()
        self.query_one(ResultTables).show(list(tables(found, self.options.confidence)))
        notes = (f"{model.name}: {note}" for model in found.models for note in model.notes)
        return headline(found, self.options), *notes
