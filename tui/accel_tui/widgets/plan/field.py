"""A field of the New run form: mark, label, input, error."""

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from accel_engine.plan import SPECS
from accel_tui.plan import field_labels, form
from accel_tui.widgets.plan.picker import Picker


class Field(Widget):
    """A field in a line, with its error below; a dot marks a value that differs from the default.

    Args:
        name: The plan's field.
        value: Initial text.
    """

    DEFAULT_CSS = """
    Field {
        height: auto;
        color: $text-muted;

        &.-wrong { color: $text-error; }
        Picker { max-width: 40; margin: 0 0 0 18; }
        .-error { display: none; height: auto; margin: 0 0 0 2; color: $text-error; }
        &.-wrong .-error { display: block; }
        &.-open .-error { display: none; }  /* the list is over it; Start's line has it too */
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f7", "reset", "Default", id="field.reset", tooltip="Reset the field to its default"),
    ]

    error: reactive[str] = reactive("")
    """What is wrong with the text; empty if valid."""

    is_changed: reactive[bool] = reactive(False)
    """Whether the value differs from the default."""

    @dataclass
    class Reset(Message):
        """The field is to get its default."""

        field: str

    def __init__(self, name: str, value: str) -> None:
        super().__init__(id=f"field-{name}")
        self.field = name
        self.picker = Picker(value, has_choices=form.has_choices(name), is_list=form.is_list(name), id=name)

    def compose(self) -> ComposeResult:
        yield self.picker

    def render(self) -> Content:
        """The mark and the label; rendered here instead of in widgets, of which a form has many."""
        style = "$accent" if self.has_focus_within else "$foreground" if self.is_changed else ""
        return Content.assemble(
            ("• " if self.is_changed else "  ", "" if self.error else "$accent bold"),
            (field_labels.label(self.field), "" if self.error else style),
        )

    @on(Picker.Opened)
    def _hide_error(self) -> None:  # the screen handles it too
        self.set_class(self.picker.is_open, "-open")

    def on_descendant_focus(self) -> None:
        self.refresh()

    def on_descendant_blur(self) -> None:
        self.refresh()

    def on_mount(self) -> None:
        self.tooltip = SPECS[self.field].doc

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Resetting needs another value than the default."""
        return self.is_changed if action == "reset" else True

    def action_reset(self) -> None:
        self.post_message(self.Reset(self.field))

    def watch_is_changed(self) -> None:
        """Offer the key only where it changes something."""
        if self.has_focus_within:
            self.refresh_bindings()

    def watch_error(self) -> None:
        """Show the error in a line below, which stays once there was one: the next key may need it again."""
        self.set_class(bool(self.error), "-wrong")
        if line := next(self.query(".-error").results(Static), None):
            line.update(self.error)
        elif self.error:
            self.mount(Static(self.error, classes="-error", markup=False))
