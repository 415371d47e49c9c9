"""The form of an evaluation: data, split, checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.getters import query_one
from textual.message import Message
from textual.widgets import Input, Label, Static

from accel_engine.data import FILE_SUFFIXES
from accel_engine.errors import UsageError
from accel_engine.launch.evaluation import EvaluationOptions
from accel_engine.run.run_paths import checkpoint_steps
from accel_engine.text import printable
from accel_tui.plan.checkpoint_choice import checkpoint_choices
from accel_tui.plan.evaluation_choice import evaluation_options, split_choices
from accel_tui.widgets.plan.picker import Picker
from accel_tui.widgets.trained.path_input import PathInput


class EvaluateForm(VerticalScroll):
    """Asks for the examples and the weights; posts :class:`Submitted`.

    Args:
        directories: The runs' directories.
    """

    @dataclass
    class Submitted(Message):
        """The user wants to evaluate.

        Attributes:
            options: How.
        """

        options: EvaluationOptions

    _data = query_one("#data", PathInput)
    _split = query_one("#split", Picker)
    _checkpoint = query_one("#checkpoint", Picker)
    _problem = query_one("#problem", Static)

    def __init__(self, directories: Sequence[Path]) -> None:
        super().__init__(id="form", can_focus=False)
        self._directories = tuple(directories)
        self._steps: tuple[int, ...] = ()

    def compose(self) -> ComposeResult:
        """Compose a line for each field."""
        with Horizontal(classes="field"):
            yield Label("Data")
            yield PathInput(
                id="data", suffixes=FILE_SUFFIXES, placeholder="that of the run; a path or a name for other data"
            )
        with Horizontal(classes="field"):
            yield Label("Split")
            yield Picker("auto", has_choices=True, id="split")
        with Horizontal(classes="field"):
            yield Label("Checkpoint")
            yield Picker("auto", has_choices=True, id="checkpoint")
        yield Static(id="problem", markup=False)

    def on_mount(self) -> None:
        """Offer the splits, and read which checkpoints there are."""
        self._split.choices = split_choices()
        self._read_steps()

    def focus_first(self) -> None:
        """Focus the first field."""
        self._data.focus()

    def submit(self) -> None:
        """Post what is chosen, or say what is wrong."""
        problem = ""
        try:
            options = evaluation_options(self._data.value, self._split.value, self._checkpoint.value, self._steps)
        except UsageError as error:
            problem = printable(str(error))
        else:
            self.post_message(self.Submitted(options))
        self._problem.update(problem)

    @on(Input.Submitted)
    @on(Picker.Completed)
    def _submitted(self, event: Message) -> None:
        event.stop()
        self.submit()

    @work(thread=True, exit_on_error=False, group="steps")
    def _read_steps(self) -> None:
        steps = [set(checkpoint_steps(directory)) for directory in self._directories]
        self.call_later(self._offer, tuple(sorted(set.intersection(*steps))))

    def _offer(self, steps: tuple[int, ...]) -> None:
        self._steps = steps
        self._checkpoint.choices = checkpoint_choices(steps)
