"""A form of options: a row for each, made from its specification, with what is wrong below it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Label, Static

from accel_engine.errors import PlanError, UsageError
from accel_engine.plan.options import OptionSpec, default_of, option_problem, specs_of, text_of
from accel_engine.run.directory.run_paths import checkpoint_steps
from accel_engine.text import printable_line
from accel_tui.plan.form import FieldChoice
from accel_tui.widgets.jobs.option_inputs import Checklist, PathInput
from accel_tui.widgets.line_input import LineInput
from accel_tui.widgets.plan.picker import Picker

HINT = "[@click=screen.start]$keys $does[/], [@click=screen.back]esc goes back[/]"

Editor = LineInput | Picker | Checklist
"""A widget with the text of an option."""


class OptionRow(Vertical):
    """An option: its label, its value, and what is wrong with it.

    Args:
        name: The option.
        spec: Its specification.
        editor: The widget with its text.
    """

    DEFAULT_CSS = """
    OptionRow {
        height: auto;
        & > Horizontal { height: auto; }
        &.-list > Horizontal { layout: vertical; }
        &.-list { margin: 0 0 1 0; }
        .label { width: 16; color: $text-muted; }
        &:focus-within .label { color: $accent; }
        LineInput, Picker { width: 1fr; max-width: 80; background: $surface; }
        .error { display: none; height: auto; margin: 0 0 0 16; color: $text-error; }
        &.-wrong .error { display: block; }
        &.-wrong .label { color: $text-error; }
    }
    """

    def __init__(self, name: str, spec: OptionSpec, editor: Editor) -> None:
        super().__init__()
        self.option, self.spec, self.editor = name, spec, editor
        editor.id = name
        self.set_class(isinstance(editor, Checklist), "-list")

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Label(self.label, classes="label")
            yield self.editor
        yield Static(classes="error", markup=False)

    @property
    def label(self) -> str:
        """The text before the editor."""
        return self.spec.label or self.option.replace("_", " ")

    @property
    def text(self) -> str:
        return self.editor.value

    def show_problem(self, problem: str) -> None:
        """Show what is wrong; nothing if it is empty."""
        self.set_class(bool(problem), "-wrong")
        self.query_one(".error", Static).update(printable_line(problem))


class OptionForm(VerticalScroll):
    """Asks for options; posts :class:`Submitted` if they are valid.

    Args:
        kind: The dataclass of the options.
        names: The options that have a row, in order.
        heading: What the options are for.
        texts: Texts at first, where they are not the defaults.
        specs: Specifications in place of the dataclass's.
        editors: Widgets in place of those that the specifications make.
        directories: The runs whose common checkpoints the option ``checkpoint`` offers.
        does: What enter does with valid options.
    """

    DEFAULT_CSS = """
    OptionForm {
        padding: 1 1 0 1;
        #heading { height: auto; margin: 0 0 1 0; color: $text-muted; }
        #hint { height: auto; margin: 1 0 0 0; color: $text-muted; }
        #hint.wrong { color: $text-error; }
    }
    """
    BINDING_GROUP_TITLE = "Options"

    @dataclass
    class Submitted(Message):
        """The user wants to start."""

        options: Any

    def __init__(
        self,
        kind: type,
        names: Sequence[str],
        heading: str = "",
        *,
        texts: Mapping[str, str] | None = None,
        specs: Mapping[str, OptionSpec] | None = None,
        editors: Mapping[str, Editor] | None = None,
        directories: Sequence[Path] = (),
        does: str = "starts",
    ) -> None:
        super().__init__(can_focus=False, classes="panel")
        self._kind, self._heading, self._directories, self._does = kind, heading, tuple(directories), does
        known, given = {**specs_of(kind), **(specs or {})}, texts or {}
        made = editors or {}
        self._rows = {
            name: OptionRow(
                name,
                known[name],
                made.get(name) or _editor(known[name], given.get(name, text_of(default_of(kind, name)))),
            )
            for name in names
        }

    def compose(self) -> ComposeResult:
        self.border_title = self.BINDING_GROUP_TITLE
        if self._heading:
            yield Static(self._heading, id="heading", markup=False)
        yield from self._rows.values()
        yield Static(id="hint")

    def on_mount(self) -> None:
        """Show the rows that go with the values, and read which checkpoints there are."""
        self._check()
        if self._directories and "checkpoint" in self._rows:
            self._read_steps()

    def focus_first(self) -> None:
        """Focus the first row."""
        editor = next(iter(self._rows.values())).editor
        (editor.input if isinstance(editor, Picker) else editor).focus()

    def submit(self, entered: Mapping[str, str] | None = None) -> None:
        """Post the options if they are valid.

        Args:
            entered: Texts that replace those in the rows, which keys may have changed since.
        """
        options = self._check(entered)
        if options is None:
            self.app.bell()
        else:
            self.post_message(self.Submitted(options))

    def show_problem(self, error: UsageError | str) -> None:
        """Show what is wrong with the options: in the row of one if it is about it, else below."""
        in_row = isinstance(error, PlanError) and error.field in self._rows
        for name, row in self._rows.items():
            is_here = isinstance(error, PlanError) and name == error.field
            row.show_problem(option_problem(error, row.text) if isinstance(error, PlanError) and is_here else "")
        self._show_hint("" if in_row else str(error))

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.submit({str(event.input.id): event.value})

    @on(Picker.Completed)
    def _completed(self, event: Picker.Completed) -> None:
        event.stop()
        if event.is_entered:
            self.submit()
        else:
            self.screen.focus_next()

    @on(Picker.Chosen)
    def _chosen(self, event: Picker.Chosen) -> None:
        """Nothing else is asked: enter again would only open the list again."""
        event.stop()
        if len(list(self._shown())) == 1:
            self.submit()

    @on(Input.Changed)
    @on(Picker.Changed)
    @on(Checklist.Changed)
    def _changed(self, event: Message) -> None:
        event.stop()
        self._check()

    def on_descendant_focus(self) -> None:
        if not any(row.has_class("-wrong") for row in self._rows.values()):
            self._show_hint("")

    def _check(self, entered: Mapping[str, str] | None = None) -> Any | None:
        """The options, if they are valid; shows what is wrong."""
        values, problems = dict[str, Any](), dict[str, str]()
        for row in self._shown():
            text = (entered or {}).get(row.option, row.text)
            try:
                values[row.option] = row.spec.value_of(row.option, text)
            except UsageError as error:
                problems[row.option] = option_problem(error, text)
            if row.spec.is_required and not text.strip():
                problems[row.option] = f"give a {row.label}"
        for name, row in self._rows.items():
            row.show_problem(problems.get(name, ""))
        self._show_hint("")
        if problems:
            return None
        try:
            return self._kind(**values)
        except UsageError as error:
            self.show_problem(error)
            return None

    def _shown(self) -> Iterator[OptionRow]:
        """The rows that go with the values of others; all others are hidden."""
        for row in self._rows.values():
            name, values = row.spec.goes_with or ("", ())
            parts = self._rows[name].text.strip().split(",") if name in self._rows else []
            kinds = {part.partition(":")[0] for part in parts}  # such as slurm of slurm:PARTITION
            row.display = name not in self._rows or not kinds.union(parts).isdisjoint(values)
            if row.display:
                yield row

    def _show_hint(self, problem: str) -> None:
        hint = self.query_one("#hint", Static)
        hint.set_class(bool(problem), "wrong")
        about = next((row.spec.doc for row in self._rows.values() if row.has_focus_within), "")
        told = Content(printable_line(problem)) if problem else Content(about)
        keys = next((_KEYS[type(row.editor)] for row in self._rows.values() if row.has_focus_within), "enter or ctrl+s")
        hint.update(Content("\n").join([told, Content.from_markup(HINT, keys=keys, does=self._does)]))

    @work(thread=True, exit_on_error=False, group="steps")
    def _read_steps(self) -> None:
        steps = set.intersection(*(set(checkpoint_steps(directory)) for directory in self._directories))
        found = tuple(FieldChoice(str(step), f"step {step:,}") for step in sorted(steps, reverse=True))
        self.call_later(self._add_checkpoints, found)

    def _add_checkpoints(self, steps: tuple[FieldChoice, ...]) -> None:
        editor = self._rows["checkpoint"].editor
        if isinstance(editor, Picker):
            editor.choices = (*editor.choices, *steps)


_CHOOSES = "enter chooses, ctrl+s"
_KEYS: Mapping[type[Editor], str] = {
    LineInput: "enter or ctrl+s",
    PathInput: "enter or ctrl+s",
    Picker: _CHOOSES,
    Checklist: _CHOOSES,
}
"""The keys that start in each kind of row."""


def _editor(spec: OptionSpec, text: str) -> Editor:
    """A widget for the text of an option."""
    if spec.suffixes is not None:
        return PathInput(text, suffixes=spec.suffixes, placeholder=spec.hint)
    if not spec.completions:
        return LineInput(text, placeholder=spec.hint, compact=True)
    picker = Picker(text, has_choices=True, is_list=spec.type is tuple)
    picker.placeholder = spec.hint
    picker.set_reactive(Picker.choices, tuple(FieldChoice(name, spec.notes.get(name, "")) for name in spec.completions))
    return picker
