"""A panel of New run, and the panel that a widget is in."""

from textual.containers import Vertical
from textual.content import Content
from textual.events import Resize
from textual.reactive import reactive
from textual.widget import Widget

from accel_tui.terminal.textual_private import show_border_title


class PlanPanel(Vertical):
    """A framed part of the screen: its title at the left of the border, its state at the right.

    Args:
        title: The title, which begins with the panel's number.
        id: The widget's id.
        classes: Its CSS classes.
    """

    DEFAULT_CSS = """
    PlanPanel {
        width: 1fr;
        border: round $border;
        border-title-color: $foreground;
        border-title-style: bold;
        &.-current { border: round $accent; }
    }
    """

    state: reactive[str] = reactive("", repaint=False, init=False)
    """What is shown at the right."""

    tabs: reactive[tuple[str, ...]] = reactive((), repaint=False, init=False)
    """The titles of all panels, where only one of them is shown at a time; empty where all are."""

    def __init__(self, title: str, *, id: str, classes: str = "") -> None:  # noqa: A002 (Textual's own name)
        super().__init__(id=id, classes=classes)
        self.title = title

    def watch_state(self) -> None:
        self._show_title()

    def watch_tabs(self) -> None:
        self._show_title()

    def on_resize(self, event: Resize) -> None:
        self._show_title()

    def _show_title(self) -> None:
        titles = [
            Content.styled(title, "$foreground bold" if title == self.title else "$text-muted not bold")
            for title in self.tabs or (self.title,)
        ]
        left = Content(" ─ ").join(titles)
        state = Content.styled(f" {self.state}", "$text-muted not bold") if self.state else Content("")
        room = self.outer_size.width - 6 - left.cell_length - state.cell_length
        line = Content.styled(f" {'─' * (room - 1)}", "$border not bold") if room > 1 and self.state else Content("")
        show_border_title(self, Content.assemble(left, line, state if room > 1 else Content("")))


def panel_of(widget: Widget | None) -> PlanPanel | None:
    """The panel that a widget is in; ``None`` if it is in none."""
    return next((each for each in widget.ancestors_with_self if isinstance(each, PlanPanel)), None) if widget else None
