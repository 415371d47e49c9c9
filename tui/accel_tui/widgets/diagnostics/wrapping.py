"""Wraps styled text to a width."""

from collections.abc import Iterable, Iterator

from rich.cells import cell_len, chop_cells

from accel_tui.widgets.styled_text import TextSpan


def wrapped(spans: Iterable[TextSpan], width: int, *, at_words: bool = True) -> Iterator[list[TextSpan]]:
    """The lines of a text without line ends; one empty line for no text.

    Args:
        spans: The text.
        width: In cells.
        at_words: Whether words stay whole if they fit; else spans do.
    """
    line: list[TextSpan] = []
    used = 0
    width = max(width, 2)
    for text, style in spans:
        for word in _words(text) if at_words else [text]:
            length = cell_len(word.rstrip())
            if used and used + length > width:
                yield line
                line, used = [], 0
            if length > width:
                *full, word = chop_cells(word, width)
                yield from ([(part, style)] for part in full)
            line.append((word, style))
            used += cell_len(word)
    yield line


def _words(text: str) -> Iterator[str]:
    """Words, each with the blanks that follow it."""
    start = 0
    for index in range(1, len(text)):
        if text[index] != " " and text[index - 1] == " ":
            yield text[start:index]
            start = index
    if text:
        yield text[start:]
