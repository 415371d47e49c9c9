"""Lines as spans of text with one style each, and the difference of two such lines."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from rich.cells import cell_len
from textual.content import Content

TextSpan = tuple[str, str]
"""Text and the name of its style."""


def spans_of(content: Content) -> list[TextSpan]:
    """Spans of Textual content whose styles are names; where styles overlap, the innermost is last."""
    text, spans = content.plain, content.spans
    cuts = sorted({0, len(text), *(min(end, len(text)) for span in spans for end in (span.start, span.end))})
    return [
        (text[start:end], " ".join(str(span.style) for span in spans if span.start <= start and end <= span.end))
        for start, end in pairwise(cuts)
    ]


def plain(spans: Iterable[TextSpan]) -> str:
    """The text without styles."""
    return "".join(text for text, _ in spans)


def length(spans: Iterable[TextSpan]) -> int:
    """Width in cells."""
    return sum(len(text) if text.isascii() else cell_len(text) for text, _ in spans)


def cut(spans: Iterable[TextSpan], first: int, last: int) -> list[TextSpan]:
    """The characters from one position to before another."""
    found, x = [], 0
    for text, style in spans:
        part = text[max(0, first - x) : max(0, last - x)]
        if part:
            found.append((part, style))
        x += len(text)
    return found


def changed(old: Sequence[TextSpan], new: Sequence[TextSpan]) -> tuple[int, int]:
    """First cell that differs between two versions of a line, and the cell after the last."""
    places = [place for place, (before, after) in enumerate(zip(old, new, strict=False)) if before != after]
    if len(old) != len(new):  # after this, spans may have moved
        places += [min(len(old), len(new)), max(len(old), len(new)) - 1]
    if not places:
        return 0, 0
    first, last = places[0], places[-1] + 1
    start, before, after = (length(spans) for spans in (new[:first], old[first:], new[first:]))
    if before != after:
        return start, start + max(before, after)
    return start, start + length(new[first:last])
