"""The form of a prediction: the examples or the prompt, and the checkpoint."""

from dataclasses import dataclass
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.widgets import Input, Label, Static

from accel_engine.errors import UsageError
from accel_engine.requests.write_text import WritingOptions
from accel_engine.run.diagnostics import DataFormat
from accel_engine.trained.prediction_files import ARRAYS, SUFFIXES
from accel_engine.user_paths import user_path
from accel_tui.widgets.line_input import LineInput
from accel_tui.widgets.plan.picker import Picker
from accel_tui.widgets.trained.checkpoint_picker import CheckpointPicker
from accel_tui.widgets.trained.path_input import PathInput

_DEFAULTS = WritingOptions(prompt="")

_ROOM_FOR_KINDS = {"images": "images or folders of images", "audio": "WAV files or folders of them"}


@dataclass(frozen=True, slots=True)
class ChosenExamples:
    """What is to be predicted.

    Attributes:
        path: A file or folder with examples; ``None`` for none.
        texts: Texts, each an example.
        checkpoint: The checkpoint.
    """

    path: Path | None
    texts: tuple[str, ...]
    checkpoint: str


def writes_text(form: DataFormat | None) -> bool:
    """Whether a model of data of this form predicts its own vocabulary, so that it can continue a prompt."""
    if form is None or form.task != "sequence" or not form.vocabulary:
        return False
    return form.class_names in ((), form.vocabulary)


class PredictForm(VerticalScroll):
    """Asks what to predict.

    Args:
        directory: The run's directory.
        form: The form of its data; ``None`` if it is unknown.
    """

    class Asked(Message):
        """A prediction is asked for.

        Attributes:
            choice: The examples, or how to write a text.
        """

        def __init__(self, choice: ChosenExamples | WritingOptions) -> None:
            super().__init__()
            self.choice = choice

    class Mistaken(Message):
        """What was given cannot be predicted.

        Attributes:
            problem: Why.
        """

        def __init__(self, problem: str) -> None:
            super().__init__()
            self.problem = problem

    def __init__(self, directory: Path, form: DataFormat | None) -> None:
        super().__init__(id="form", can_focus=False)
        self._directory = directory
        self._form = form

    def compose(self) -> ComposeResult:
        """Compose a line for each field that the run's data has."""
        kind = self._form.kind if self._form else ""
        if writes_text(self._form):
            yield from _field("Prompt", LineInput(id="prompt", placeholder="a text to continue", compact=True))
            yield from _field("Tokens", LineInput(str(_DEFAULTS.tokens), id="tokens", compact=True))
            yield from _field("Temperature", LineInput(str(_DEFAULTS.temperature), id="temperature", compact=True))
            yield from _field("Seed", LineInput(str(_DEFAULTS.seed), id="seed", compact=True))
        else:
            if kind == "text":
                yield from _field("Text", LineInput(id="one-text", placeholder="a text to predict", compact=True))
            suffixes = SUFFIXES.get(kind, ARRAYS)
            yield from _field("Examples", PathInput(id="path", suffixes=suffixes, placeholder="a path"))
            yield Static(f"{_ROOM_FOR_KINDS.get(kind, 'a file')}: {' '.join(suffixes)}", id="takes", markup=False)
        yield from _field("Checkpoint", CheckpointPicker((self._directory,)))

    def on_mount(self) -> None:
        """Focus the first field."""
        self.focus_first()

    def focus_first(self) -> None:
        """Focus the first field."""
        self.query(Input).first().focus()

    def ask(self) -> None:
        """Ask for a prediction of what is in the fields."""
        try:
            choice = self._written() if self.query("#prompt") else self._chosen()
        except UsageError as error:
            self.post_message(self.Mistaken(str(error)))
        else:
            self.post_message(self.Asked(choice))

    @on(Input.Submitted)
    @on(Picker.Completed)
    def _submitted(self, event: Message) -> None:
        event.stop()
        self.ask()

    def _value(self, name: str) -> str:
        found = self.query(f"#{name}").results(Input)
        return next((field.value for field in found), "")

    def _chosen(self) -> ChosenExamples:
        path, text = self._value("path").strip(), self._value("one-text")
        if not path and not text:
            raise UsageError("nothing to predict: give a path" + (" or a text" if self.query("#one-text") else ""))
        return ChosenExamples(
            user_path(path) if path else None, (text,) if text else (), self.query_one(CheckpointPicker).checkpoint
        )

    def _written(self) -> WritingOptions:
        return WritingOptions(
            prompt=self._value("prompt"),
            tokens=_whole("tokens", self._value("tokens"), 1, 1_000_000),
            temperature=_number("temperature", self._value("temperature"), 100),
            seed=_whole("seed", self._value("seed"), 0, 2**31 - 1),
            checkpoint=self.query_one(CheckpointPicker).checkpoint,
        )


def _field(label: str, widget: LineInput | Picker) -> ComposeResult:
    with Horizontal(classes="field"):
        yield Label(label)
        yield widget


def _whole(name: str, text: str, low: int, high: int) -> int:
    if not text.strip().isdecimal() or not low <= int(text) <= high:
        raise UsageError(f"{name} = {text.strip()!r} must be a whole number from {low} to {high:,}")
    return int(text)


def _number(name: str, text: str, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= high:
        raise UsageError(f"{name} = {text.strip()!r} must be a number from 0 to {high:g}")
    return value
