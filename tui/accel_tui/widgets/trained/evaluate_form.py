"""The form of an evaluation: data, split, checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.getters import query_one
from textual.message import Message
from textual.widgets import Input, Label, Static

from accel_engine.data import FILE_SUFFIXES
from accel_engine.errors import UsageError
from accel_engine.requests.evaluate import EvaluationOptions
from accel_engine.text import printable
from accel_tui.plan.evaluation_choice import evaluation_options, split_choices
from accel_tui.widgets.plan.picker import Picker
from accel_tui.widgets.trained.checkpoint_picker import CheckpointPicker
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
    _checkpoint = query_one(CheckpointPicker)
    _problem = query_one("#problem", Static)

    def __init__(self, directories: Sequence[Path]) -> None:
        super().__init__(id="form", can_focus=False)
        self._directories = tuple(directories)

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
            yield CheckpointPicker(self._directories)
        yield Static(id="problem", markup=False)

    def on_mount(self) -> None:
        """Offer the splits."""
        self._split.choices = split_choices()

    def focus_first(self) -> None:
        """Focus the first field."""
        self._data.focus()

    def submit(self) -> None:
        """Post what is chosen, or say what is wrong."""
        problem = ""
        try:
            options = evaluation_options(self._data.value, self._split.value, self._checkpoint.checkpoint)
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
