"""Diagnostics screen of the examples that a run was evaluated on."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from textual import work

from accel_engine.process.ask import Asked
from accel_engine.requests.diagnose import Diagnosis, DiagnosisRequest
from accel_engine.requests.evaluate import EvaluationOptions
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.run.diagnostics import Diagnostics
from accel_engine.words import numbers
from accel_tui.run_state.diagnostics import DiagnosticsReading, printable_diagnostics, read_diagnostics
from accel_tui.screens.diagnostics_screen import DiagnosticsScreen
from accel_tui.screens.job import reported


class EvaluatedScreen(DiagnosticsScreen):
    """Shows what a run predicts for the examples that it was evaluated on; what the run has stored stays.

    Args:
        directory: The run's directory.
        options: Which examples, and which checkpoint.
    """

    def __init__(self, directory: Path, options: EvaluationOptions) -> None:
        super().__init__(directory)
        self._options = options

    @property
    def heading(self) -> str:
        """The title in the top bar."""
        return f"{super().heading}, evaluated examples"

    def _start(self) -> None:
        """Start the engine that predicts the examples; what the run stores meanwhile is not of them."""
        self.reading = DiagnosticsReading(diagnostics=Diagnostics())
        self.progress = "Predicting the evaluated examples in the background: starting TensorFlow…"
        self._diagnose()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing is validated here: the report is of other examples."""
        return False if action == "validate" else super().check_action(action, parameters)

    async def action_quit(self) -> None:
        """Quit."""
        self.app.exit()

    @work(thread=True, exit_on_error=False, group="diagnose")
    def _diagnose(self) -> None:
        with reported(self._report):
            with Asked(DiagnosisRequest(self.directory, self._options)) as asked:
                self._asked = asked
                if self._is_closed:
                    return
                found = asked.result(partial(self.call_later, self._show_examples))
            self.call_later(self._show, self._reading_with(found), found.notes)

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

    def _show(self, reading: DiagnosticsReading, notes: tuple[str, ...]) -> None:
        self.progress = ""
        self._take_reading(reading)
        for note in notes:
            self.notify(note, severity="warning", markup=False)

    def _show_failure(self, problem: str) -> None:
        self.progress, self.validation_problem = "", problem

    def _show_examples(self, part: ExamplesDone) -> None:
        self.progress = f"Predicting on the CPU: {numbers.examples_done(part.done, part.of)}"
