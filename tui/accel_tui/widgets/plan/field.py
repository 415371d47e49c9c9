"""One field of the plan on the screen: its name, its text, and what is wrong with it."""

from textual.app import ComposeResult
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from accel_tui.formatting import field_labels
from accel_tui.plan import form
from accel_tui.widgets.plan.picker import Picker


class Field(Widget):
    """A field in a line, and under it what is wrong, if something is.

    It has a text also before it is mounted, as fields are only once they mean something.

    Args:
        name: The plan's field.
        value: Its text to begin with.
    """

    DEFAULT_CSS = """
    Field {
        height: auto;
        color: $text-muted;

        &.-wrong { color: $text-error; }
        Picker { max-width: 40; margin: 0 0 0 16; }
        .-error { height: auto; margin: 0 0 0 2; color: $text-error; }
    }
    """

    error: reactive[str] = reactive("")
    """What is wrong with the text; nothing when it is right."""

    def __init__(self, name: str, value: str) -> None:
        super().__init__(id=f"field-{name}")
        self.field = name
        self.picker = Picker(value, offers=form.has_choices(name), id=name)

    def compose(self) -> ComposeResult:
        """The text."""
        yield self.picker

    def render(self) -> Content:
        """The name, beside the text; not a widget, of which a form has enough to paint."""
        return Content.styled(
            field_labels.label(self.field), "$accent" if self.has_focus_within and not self.error else ""
        )

    def on_descendant_focus(self) -> None:
        """Show where one is."""
        self.refresh()

    def on_descendant_blur(self) -> None:
        """Show where one is no more."""
        self.refresh()

    def on_mount(self) -> None:
        """Say what the field is for wherever the mouse asks."""
        self.tooltip = self.doc

    @property
    def doc(self) -> str:
        """What the field is for."""
        return form.doc(self.field)

    def watch_error(self) -> None:
        """Show what is wrong in a line that is there only then."""
        self.set_class(bool(self.error), "-wrong")
        said = self.query(".-error").results(Static)
        if not self.error:
            self.query(".-error").remove()
        elif line := next(said, None):
            line.update(self.error)
        else:
            self.mount(Static(self.error, classes="-error", markup=False))
