"""Evaluate screen: metrics of runs on examples that training did not see, and the diagnostics of these examples."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from accel_engine import data
from accel_engine.process.engine_call import EngineCall
from accel_engine.requests.diagnose import Diagnosis, DiagnosisRequest
from accel_engine.requests.evaluate import Evaluation, EvaluationOptions, EvaluationRequest
from accel_engine.requests.protocol.model_reference import ModelReference, check_steps
from accel_engine.requests.protocol.request import ComputeDevice, ExamplesDone
from accel_engine.run.diagnostics import Diagnostics
from accel_engine.run.directory.run_paths import run_name
from accel_engine.run_queue.request_device import placed
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.app_protocol import Screens, open_screen
from accel_tui.formatting.evaluation import drawn_evaluation_tables, evaluation_headline
from accel_tui.run_state.diagnostics import DiagnosticsReading, printable_diagnostics, read_diagnostics
from accel_tui.screens.asking import CANCEL, Answer, QuestionScreen, ask_user, awaiting
from accel_tui.screens.diagnostics_screen import DiagnosticsScreen
from accel_tui.screens.job import Job, reported
from accel_tui.screens.job_screen import JobScreen
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.text_table import ResultTables

_VERDICTS = {"better": "success", "worse": "error", "may be chance": "note"}
"""Colours of verdicts on differences."""


_AWAITED = """Each metric with its confidence interval beside the baseline,
the differences between runs, and the metrics of each class.

e changes the examples, the weights and the confidence."""

MOST_ASKED = 9
"""The most runs that a question offers, each with a digit."""


class EvaluateScreen(JobScreen):
    """Evaluates runs on the same examples, in an engine process.

    Args:
        directories: The runs' directories; the others are compared with the first.
    """

    NOUN = "the evaluation"
    STAYS = "What is not evaluated yet is lost."
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
        super().__init__(f"Evaluate {numbers.counted(len(directories), 'run')}", EvaluationOptions())
        self._directories = tuple(directories)
        self._found: Evaluation | None = None

    def make_form(self) -> OptionForm:
        """The examples, the weights and how sure the intervals are."""
        names = ", ".join(run_name(directory) for directory in self._directories)
        rows = ("data", "split", "checkpoint", "resamples", "confidence", "device")
        return OptionForm(EvaluationOptions, rows, names, directories=self._directories)

    def compose_result(self) -> ComposeResult:
        yield ResultTables(colours=_VERDICTS, awaited=_AWAITED, id="result")

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
        return job.ask(EvaluationRequest(tuple(map(ModelReference.of, self._directories)), prepared))

    def take(self, part: ExamplesDone) -> None:
        """Tell the number of examples."""
        self.progress.show_examples(part)

    async def finish(self, found: Evaluation | None) -> Sequence[str]:
        """Show the metrics, and the differences."""
        self._found = found
        if found is None:
            return ()
        self.query_one(ResultTables).show(list(drawn_evaluation_tables(found, self.options.confidence)))
        notes = (f"{model.name}: {note}" for model in found.models for note in model.notes)
        return evaluation_headline(found, self.options), *notes


class EvaluatedScreen(DiagnosticsScreen):
    """Shows what a run predicts for the examples that it was evaluated on; what the run has stored stays.

    Args:
        directory: The run's directory.
        options: Which examples, and which checkpoint.
    """

    NOUN = "the prediction"

    def __init__(self, directory: Path, options: EvaluationOptions) -> None:
        super().__init__(directory)
        self._options = options

    @property
    def heading(self) -> str:
        return f"{super().heading}, evaluated"

    def _start(self) -> None:
        """Start the engine that predicts the examples; what the run stores meanwhile is not of them."""
        self.reading = DiagnosticsReading(diagnostics=Diagnostics())
        self.progress = "Predicting the evaluated examples in the background: starting TensorFlow…"
        self._diagnose()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing is validated here: the report is of other examples."""
        return False if action == "validate" else super().check_action(action, parameters)

    @work(thread=True, exit_on_error=False, group="diagnose")
    def _diagnose(self) -> None:
        with reported(self._report):
            with placed(DiagnosisRequest(self.directory, self._options)) as request, EngineCall(request) as call:
                self._call = call
                if self._is_closed:
                    return
                found = call.result(
                    partial(self.call_later, self._show_examples, request.device),
                    partial(self.call_later, self._show_doing, request.device),
                )
            self.call_later(self._show, self._reading_with(found), found.notes, found.device)

    def _report(self, problem: str) -> None:
        if not self._is_closed:
            self.call_later(self._show_failure, problem)

    def _reading_with(self, found: Diagnosis) -> DiagnosticsReading:
        """The layers that the run has stored, with the report on the evaluated examples."""
        stored = read_diagnostics(self.directory, DiagnosticsReading())
        before = stored.diagnostics or Diagnostics()
        steps = {**before.steps, "validation": found.step}
        own = printable_diagnostics(replace(before, validation=found.report, steps=steps))
        return replace(stored, live=False, media=None, diagnostics=own)

    def _show(self, reading: DiagnosticsReading, notes: tuple[str, ...], device: ComputeDevice) -> None:
        self.progress = ""
        self._take_reading(reading)
        self._show_device(device)
        for note in notes:
            self.notify(note, severity="warning", markup=False)

    def _show_failure(self, problem: str) -> None:
        self.progress, self.validation_problem = "", problem

    def _show_doing(self, device: ComputeDevice, what: str) -> None:
        self.progress = f"Predicting {device.text}: {what}"

    def _show_examples(self, device: ComputeDevice, part: ExamplesDone) -> None:
        self.progress = f"Predicting {device.text}: {numbers.examples_done(part.done, part.of)}"
