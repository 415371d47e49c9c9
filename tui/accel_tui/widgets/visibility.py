"""Whether anything of a screen, or of a widget, can be seen."""

from typing import Any

from textual.screen import Screen
from textual.widget import Widget


def is_covered(screen: "Screen[Any]") -> bool:
    """Whether another screen lies over all of this one.

    Textual counts the screen below the top one as current even then.
    """
    if screen.is_active:
        return False
    return not screen.is_current or screen.app.screen.styles.background.a == 1


class VisibilityMixin(Widget):
    """A widget that knows whether it is in sight, but for what covers its screen."""

    in_sight = False
    """Whether it has a place on its screen."""

    def on_show(self) -> None:
        """Be in sight."""
        self.in_sight = True

    def on_hide(self) -> None:
        """Be out of it."""
        self.in_sight = False
