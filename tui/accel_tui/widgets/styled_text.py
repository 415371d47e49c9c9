"""Lines as spans of text with one style each: the difference of two such lines, and wrapping; texts of widgets."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from rich.cells import cell_len, chop_cells
from textual.content import Content
from textual.widgets import Static

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


def plain_spans(spans: Iterable[TextSpan]) -> str:
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


def changed_range(old: Sequence[TextSpan], new: Sequence[TextSpan]) -> tuple[int, int]:
    """First cell that differs between two versions of a line, and the cell after the last."""
    indices = [index for index, (before, after) in enumerate(zip(old, new, strict=False)) if before != after]
    if len(old) != len(new):  # after this, spans may have moved
        indices += [min(len(old), len(new)), max(len(old), len(new)) - 1]
    if not indices:
        return 0, 0
    first, last = indices[0], indices[-1] + 1
    start, before, after = (length(spans) for spans in (new[:first], old[first:], new[first:]))
    if before != after:
        return start, start + max(before, after)
    return start, start + length(new[first:last])


def wrapped_spans(spans: Iterable[TextSpan], width: int, *, at_words: bool = True) -> Iterator[list[TextSpan]]:
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


def show_text(widget: Static, content: Content) -> None:
    """Show another text, and lay out the screen only if the widget gets another height.

    Its width does not depend on its text.
    """
    if isinstance(widget.content, Content) and content.is_same(widget.content):
        return
    size = widget.size
    # A widget has no width before its first layout, and Textual cannot wrap to none.
    resized = widget.styles.is_auto_height and (
        not size.width or content.get_height(widget.styles.get_rules(), size.width) != size.height
    )
    widget.update(content, layout=resized)
