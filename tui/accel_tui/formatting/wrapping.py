"""Wraps a text that grows at its end."""

from collections.abc import Iterator

from rich.cells import cell_len


def wrapped(text: str, width: int) -> list[str]:
    r"""The lines of a text, at least one, which break at blanks if they can.

    All but the last are final: of a longer text, they are the same, and the last one can be wrapped with what follows.

    Args:
        text: Printable, its lines end with ``\n``.
        width: Cells of a line, at least 1.
    """
    return [line for paragraph in text.split("\n") for line in _lines(paragraph, width)]


def hanging(text: str, width: int, indent: str = "  ") -> list[str]:
    """The lines of a text, at least one; all but the first are indented.

    Args:
        text: Printable.
        width: Cells of a line.
        indent: What the second and later lines begin with.
    """
    lines = wrapped(text.replace("\n", " "), max(width - len(indent), 1))
    return [lines[0], *(f"{indent}{line}" for line in lines[1:])]


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
