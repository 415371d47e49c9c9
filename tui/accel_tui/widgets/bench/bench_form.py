"""The choices of a bench."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Label, Select, Static

from accel_engine.errors import UsageError
from accel_engine.inference.candidate import SCENARIOS
from accel_engine.text import printable_line
from accel_tui.plan.bench_choices import XLA, BenchChoices
from accel_tui.widgets.line_input import LineInput

_LABELS = {
    "scenario": ("scenario", "how requests come, as in MLPerf"),
    "target_latency": ("target latency", "of p99, such as 10ms"),
    "target_rate": ("target rate", "examples/s: how many machines?"),
    "seconds": ("time limit", "seconds for each batch size"),
    "devices": ("devices", "cpu,gpu:0; empty for all"),
    "xla": ("XLA", "compile with XLA"),
    "precisions": ("precision", "float32; empty for fast ones"),
}


class Choices(Select[str]):
    """A field with a few choices; arrows go to other fields, as in text fields."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.focus_next", id="bench.next", show=False, tooltip="Next field"),
        Binding("up", "app.focus_previous", id="bench.previous", show=False, tooltip="Previous field"),
    ]


class BenchForm(Vertical):
    """Asks how to measure; posts :class:`Submitted`."""

    DEFAULT_CSS = """
    BenchForm {
        height: auto;
        padding: 1 2;
        Horizontal { height: 1; }
        .name { width: 15; color: $text-muted; }
        .help { width: 1fr; padding: 0 0 0 2; color: $text-muted; }
        Input, Select { width: 28; }
        #hint { height: auto; margin: 1 0 0 0; color: $text-muted; }
        #hint.wrong { color: $text-error; }
    }
    """

    BINDING_GROUP_TITLE = "Choices"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.focus_next", id="bench.next", tooltip="Next field"),
        Binding("up", "app.focus_previous", id="bench.previous", tooltip="Previous field"),
    ]

    HINT: ClassVar[str] = "[@click=screen.start]enter starts[/] in a field, [@click=screen.back]esc goes back[/]"

    @dataclass
    class Submitted(Message):
        """The user wants to measure."""

        choices: BenchChoices

    def compose(self) -> ComposeResult:
        """Compose a line for each choice."""
        for name, field in _fields():
            label, help_text = _LABELS[name]
            with Horizontal():
                yield Label(label, classes="name")
                yield field
                yield Label(help_text, classes="help")
        yield Static(self.HINT, id="hint")

    @property
    def choices(self) -> BenchChoices:
        """The choices as they are."""
        texts = {
            field.id: str(field.value) for field in (*self.query(Input), *self.query(Select)) if field.id in _LABELS
        }
        return BenchChoices(**texts)

    def focus_first(self) -> None:
        """Focus the field in which the screen begins."""
        self.query_one("#target_latency").focus()

    def submit(self) -> None:
        """Post the choices if they are valid, else say what is wrong."""
        choices = self.choices
        if not self._problem(choices):
            self.post_message(self.Submitted(choices))
        self._check()

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        event.stop()
        self.submit()

    @on(Input.Changed)
    @on(Select.Changed)
    def _check(self) -> None:
        problem = self._problem(self.choices)
        hint = self.query_one("#hint", Static)
        hint.set_class(bool(problem), "wrong")
        # What was typed is no markup.
        hint.update(Content(printable_line(problem)) if problem else self.HINT)

    @staticmethod
    def _problem(choices: BenchChoices) -> str:
        try:
            choices.options()
            choices.rate()
        except UsageError as error:
            return str(error)
        return ""


def _fields() -> Iterator[tuple[str, Widget]]:
    default = BenchChoices()
    for name in _LABELS:
        options = {"scenario": SCENARIOS, "xla": tuple(XLA)}.get(name)
        value = getattr(default, name)
        yield name, _select(name, options, value) if options else LineInput(value, id=name, compact=True)


def _select(name: str, options: Iterable[str], value: str) -> Choices:
    return Choices([(each, each) for each in options], value=value, allow_blank=False, compact=True, id=name)
