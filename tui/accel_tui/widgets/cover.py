"""Whether anything of a screen can be seen."""

from typing import Any

from textual.screen import Screen


def is_covered(screen: "Screen[Any]") -> bool:
    """Whether another screen lies over all of this one.

    Textual counts the screen below the top one as current even then.
    """
    if screen.is_active:
        return False
    return not screen.is_current or screen.app.screen.styles.background.a == 1
