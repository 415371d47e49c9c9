"""Whether a screen or a widget is visible."""

from typing import Any

from textual.screen import Screen
from textual.widget import Widget


def is_covered(screen: "Screen[Any]") -> bool:
    """Whether another opaque screen covers this one; Textual counts a covered screen as current."""
    if screen.is_active:
        return False
    return not screen.is_current or screen.app.screen.styles.background.a == 1


def has_shades(widget: Widget) -> bool:
    """Whether the terminal can show shades of colours."""
    return not widget.app.no_color and widget.app.console.color_system != "standard"


class VisibilityMixin(Widget):
    """A widget that tracks whether it is displayed; screens above its own do not count."""

    in_sight = False
    """Whether the widget has a place in the layout."""

    def on_show(self) -> None:
        self.in_sight = True

    def on_hide(self) -> None:
        self.in_sight = False
