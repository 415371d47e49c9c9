"""Cells of tables; a table would take a string for markup."""

from rich.style import Style
from rich.text import Text


def plain_cell(text: str, style: Style | str = "", *, right: bool = False) -> Text:
    """A cell of a table.

    Args:
        text: Shown as it is.
        style: Of Rich.
        right: Whether it is aligned at the right.
    """
    return Text(text, style, justify="right" if right else "left")
