"""A field of the New run form: mark, label, input, and a note on its value or what is wrong with it."""

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from accel_engine.plan import SPECS
from accel_engine.text import printable_line
from accel_tui.formatting.text import fit, shorten
from accel_tui.plan import field_labels, form
from accel_tui.widgets.plan.picker import Picker

_GAP = 2
"""Cells between the input and a note beside it."""


class Field(Widget):
    """A field with a note below its value, or beside it in a single line; a dot marks what is not the default.

    The note has its place also while it is empty, so that an error moves nothing.

    Args:
        name: The plan's field.
        value: Initial text.
    """

    DEFAULT_CSS = """
    Field {
        height: 2;
        color: $text-muted;
        Picker { margin: 0 0 0 18; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f7", "reset", id="field.reset", tooltip="Reset the field to its default"),
    ]

    error: reactive[str] = reactive("")
    """What is wrong with the text; empty if valid."""

    note: reactive[str] = reactive("")
    """What its value means, in a few words."""

    is_changed: reactive[bool] = reactive(False)
    """Whether the value differs from the default."""

    @dataclass
    class Reset(Message):
        """The field is to get its default."""

        field: str

    def __init__(self, name: str, value: str) -> None:
        super().__init__(id=f"field-{name}")
        self.field = name
        self.picker = Picker(
            value,
            has_choices=form.has_choices(name) and name != "data",  # whose choices are a list of files
            is_list=form.is_list(name),
            completes=name == "data",
            id=name,
        )

    def compose(self) -> ComposeResult:
        yield self.picker

    def render(self) -> Content:
        """The mark, the label and the note; rendered here instead of in widgets, of which a form has many."""
        style = "$accent" if self.has_focus_within else "$foreground" if self.is_changed else ""
        label = Content.assemble(
            ("• " if self.is_changed else "  ", "$text-error" if self.error else "$accent bold"),
            (field_labels.label(self.field), "$text-error" if self.error else style),
        )
        note = (printable_line(self.error or self.note), "$text-error" if self.error else "$text-disabled")
        margin = self.picker.styles.margin.left
        if self.size.height > 1:
            return Content.assemble(label, "\n  ", (shorten(note[0], self.size.width - 2), note[1]))
        beside = margin + self.picker.outer_size.width + _GAP
        room = self.size.width - beside
        return Content.assemble(label, " " * (beside - label.cell_length), (fit(note[0], room), note[1]))

    @property
    def cuts_note(self) -> bool:
        """Whether there is no room for all of the note."""
        return self.size.height < 2 or len(self.note) > self.size.width - 2

    def on_descendant_focus(self) -> None:
        self.refresh()

    def on_descendant_blur(self) -> None:
        self.refresh()

    def on_mount(self) -> None:
        self.tooltip = SPECS[self.field].doc

    def action_reset(self) -> None:
        self.post_message(self.Reset(self.field))
