"""Cuts and pads text to a width in terminal cells."""

import textwrap

from rich.cells import cell_len, set_cell_size


def shorten(text: str, width: int) -> str:
    """Cut the end of a text that is wider than ``width`` cells, with an ellipsis."""
    return text if cell_len(text) <= width else set_cell_size(text, max(width - 1, 0)) + "…"[: max(width, 0)]


def shorten_lines(text: str, width: int, lines: int) -> str:
    """Cut a text that takes more than some lines of ``width`` cells when it is wrapped, with an ellipsis."""
    wrapped = textwrap.wrap(text, width, break_on_hyphens=False) if width > 0 else []
    if len(wrapped) <= lines:
        return text
    end = shorten(f"{wrapped[lines - 1]} …", width)
    return " ".join((*wrapped[: lines - 1], end))


def shorten_start(text: str, width: int) -> str:
    """Cut the start of a text that is wider than ``width`` cells, since the end of a path matters more."""
    if cell_len(text) <= width:
        return text
    room = max(width - 1, 0)
    end = text[max(len(text) - room, 0) :]
    while cell_len(end) > room:
        end = end[1:]
    return "…"[: max(width, 0)] + end


def shorten_middle(text: str, width: int) -> str:
    """Cut the middle of a text that is wider than ``width`` cells: names of one script often begin alike."""
    half = max(width - 1, 0) // 2
    return text if cell_len(text) <= width else shorten(text, width - half) + shorten_start(text, half + 1)[1:]


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Cut or pad a text to ``width`` cells; ``right`` aligns it at the right."""
    text = shorten(text, width)
    space = " " * (width - cell_len(text))
    return space + text if right else text + space
