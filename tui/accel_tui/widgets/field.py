"""One field of the plan on the screen: its name, its text, and what there is to say of it."""

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.getters import query_one
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Label, Static

from accel_engine.plan import SPECS
from accel_tui.form import label
from accel_tui.widgets.picker import Picker


class Field(Widget):
    """A field in a line, and under it what is wrong, if something is.

    Args:
        name: The plan's field.
        value: Its text to begin with.
    """

    DEFAULT_CSS = """
    Field {
        height: auto;

        Horizontal { height: 1; }
        Label.field--name { width: 16; color: $text-muted; }
        &:focus-within Label.field--name { color: $accent; }
        Picker { width: 1fr; max-width: 40; }

        .field--error { display: none; height: auto; max-height: 3; margin: 0 0 0 17; color: $text-error; }
        &.-wrong .field--error { display: block; }
        &.-wrong .field--name { color: $text-error; }
    }
    """

    error: reactive[str] = reactive("")
    """What is wrong with the text; nothing when it is right."""

    picker = query_one(Picker)

    def __init__(self, name: str, value: str) -> None:
        super().__init__(id=f"field-{name}")
        self.field = name
        self._value = value

    def compose(self) -> ComposeResult:
        """A line with name and text, and what can be under it."""
        with Horizontal():
            yield Label(label(self.field), classes="field--name")
            yield Picker(self._value, label=label(self.field), id=self.field)
        yield Static(classes="field--error", markup=False)

    def on_mount(self) -> None:
        """Say what the field is for wherever the mouse asks."""
        self.tooltip = self.doc

    @property
    def doc(self) -> str:
        """What the field is for."""
        return SPECS[self.field].doc

    def watch_error(self) -> None:
        """Show what is wrong."""
        self.set_class(bool(self.error), "-wrong")
        self.query_one(".field--error", Static).update(self.error)
