"""Cuts, pads and wraps text to a width in terminal cells."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import PurePath

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


def wrapped(text: str, width: int) -> list[str]:
    r"""The lines of a text, at least one, which break at blanks if they can.

    All but the last are final: of a longer text, they are the same, and the last one can be wrapped with what follows.

    Args:
        text: Printable, its lines end with ``\n``.
        width: Cells of a line, at least 1.
    """
    return [line for paragraph in text.split("\n") for line in _lines(paragraph, width)]


def paragraph_lines(text: str, width: int) -> list[str]:
    """The lines of a printable text as one paragraph, at least one line."""
    return wrapped(text.replace("\n", " "), max(width, 1))


def _lines(paragraph: str, width: int) -> Iterator[str]:
    start, end = 0, _end(paragraph, 0, width)
    while end < len(paragraph):
        blank = end if paragraph[end] == " " else paragraph.rfind(" ", start, end)
        if blank > start:
            yield paragraph[start:blank]
            start = blank + 1
        else:
            yield paragraph[start:end]
            start = end
        end = _end(paragraph, start, width)
    yield paragraph[start:]


def _end(text: str, start: int, width: int) -> int:
    """The place after the last character that fits on a line; one character always does."""
    end = min(start + width, len(text))
    if text[start:end].isascii():
        return end
    end = start + 1
    cells = cell_len(text[start:end])
    while end < len(text) and (cells := cells + cell_len(text[end])) <= width:
        end += 1
    return end


@lru_cache(maxsize=1024)
def base_name(spec: str) -> str:
    """The name of a model or dataset without its folder: ``net.py:build``, ``mine.npz``."""
    return PurePath(spec).name or spec


_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None], columns: int, low: float = 0, high: float = 100) -> str:
    """Draw the latest values as a row of blocks, the newest at the right.

    Args:
        values: Oldest first; ``None`` or NaN if missing.
        columns: Width in characters, one per value.
        low: Value of the lowest block.
        high: Value of the full block.

    Returns:
        Exactly ``columns`` characters; a space for each missing value.
    """
    latest = values[-columns:] if columns > 0 else ()
    return "".join(_height(value, low, high) for value in latest).rjust(columns)


def _height(value: float | None, low: float, high: float) -> str:
    if value is None or math.isnan(value):
        return " "
    share = (value - low) / (high - low)
    return _BLOCKS[round(min(max(share, 0.0), 1.0) * (len(_BLOCKS) - 1))]
