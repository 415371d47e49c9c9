"""A field of the New run form: label, input, error."""

from textual.app import ComposeResult
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from accel_tui.formatting import field_labels
from accel_tui.plan import form
from accel_tui.widgets.plan.picker import Picker


class Field(Widget):
    """A field in a line, with its error below.

    It holds its text even before it is mounted, since fields are mounted only when they apply.

    Args:
        name: The plan's field.
        value: Initial text.
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
    """What is wrong with the text; empty if valid."""

    def __init__(self, name: str, value: str) -> None:
        super().__init__(id=f"field-{name}")
        self.field = name
        self.picker = Picker(value, has_choices=form.has_choices(name), is_list=form.is_list(name), id=name)

    def compose(self) -> ComposeResult:
        """Compose the input."""
        yield self.picker

    def render(self) -> Content:
        """The label; rendered here instead of in a widget, of which a form has many."""
        return Content.styled(
            field_labels.label(self.field), "$accent" if self.has_focus_within and not self.error else ""
        )

    def on_descendant_focus(self) -> None:
        """Highlight the label."""
        self.refresh()

    def on_descendant_blur(self) -> None:
        """Remove the highlight."""
        self.refresh()

    def on_mount(self) -> None:
        """Set the tooltip."""
        self.tooltip = self.doc

    @property
    def doc(self) -> str:
        """The help text of the field."""
        return form.doc(self.field)

    def watch_error(self) -> None:
        """Show the error in a line of its own."""
        self.set_class(bool(self.error), "-wrong")
        errors = self.query(".-error").results(Static)
        if not self.error:
            self.query(".-error").remove()
        elif line := next(errors, None):
            line.update(self.error)
        else:
            self.mount(Static(self.error, classes="-error", markup=False))
