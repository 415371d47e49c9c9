"""Lines of text as pieces, each in one style, and what differs between two of them."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from rich.cells import cell_len
from textual.content import Content

Piece = tuple[str, str]
"""Text, and the name of its style, which means something to what shows it."""


def pieces_of(content: Content) -> list[Piece]:
    """Words that Textual would render, whose styles have names; where several hold, the last goes before the others."""
    text, spans = content.plain, content.spans
    cuts = sorted({0, len(text), *(min(end, len(text)) for span in spans for end in (span.start, span.end))})
    return [
        (text[start:end], " ".join(str(span.style) for span in spans if span.start <= start and end <= span.end))
        for start, end in pairwise(cuts)
    ]


def plain(pieces: Iterable[Piece]) -> str:
    """The text alone."""
    return "".join(text for text, _ in pieces)


def length(pieces: Iterable[Piece]) -> int:
    """In cells."""
    return sum(len(text) if text.isascii() else cell_len(text) for text, _ in pieces)


def cut(pieces: Iterable[Piece], first: int, last: int) -> list[Piece]:
    """The characters of a line from one on to before another."""
    found, x = [], 0
    for text, style in pieces:
        part = text[max(0, first - x) : max(0, last - x)]
        if part:
            found.append((part, style))
        x += len(text)
    return found


def changed(old: Sequence[Piece], new: Sequence[Piece]) -> tuple[int, int]:
    """From which cell of a line on, and up to before which, two versions of it differ."""
    places = [place for place, (before, after) in enumerate(zip(old, new, strict=False)) if before != after]
    if len(old) != len(new):  # from there on any piece may stand elsewhere
        places += [min(len(old), len(new)), max(len(old), len(new)) - 1]
    if not places:
        return 0, 0
    first, last = places[0], places[-1] + 1
    start, before, after = (length(pieces) for pieces in (new[:first], old[first:], new[first:]))
    if before != after:
        return start, start + max(before, after)
    return start, start + length(new[first:last])
