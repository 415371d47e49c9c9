"""Pages of lines that scroll: their base, and the text a language model wrote."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.run.diagnostics import SequenceReport
from accel_engine.words import numbers
from accel_tui.widgets.list_keys import LIST_KEYS
from accel_tui.widgets.styled_text import TextSpan, wrapped_spans
from accel_tui.widgets.text_page import TextPage

_FAR = 100_000  # lines that are more than any page has


class ScrollPage(TextPage):
    """A heading, and lines that scroll below it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *LIST_KEYS,
        Binding("space", "page(1)", id="lines.space", tooltip="Page down"),
    ]

    first: reactive[int] = reactive(0, repaint=False)
    """The first visible line."""

    _heading_lines = 1
    _width = -1  # of the lines that were built

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 (Textual's own name)
        self._built: list[Strip] = []
        self._rest: Iterator[Strip] = iter(())
        super().__init__(id=id)

    def headings(self, width: int, visible: range, lines: int) -> Sequence[Strip]:
        """The lines above, which do not scroll.

        Args:
            width: In cells.
            visible: The lines that are visible; empty if there are none.
            lines: Number of lines built so far, at least to the end of the next page if there are as many.
        """
        raise NotImplementedError

    def lines(self, width: int) -> Iterator[Strip]:
        """All lines for a width. They are built as far as they are shown, since all may take 0.1 s."""
        raise NotImplementedError

    def show_again(self, *, from_start: bool) -> None:
        """Discard all lines and show others."""
        self._width = -1
        if from_start:
            self.first = 0
        self.rebuild()

    def notify_style_update(self) -> None:
        """Rebuild with the colours of another theme."""
        self._width = -1
        super().notify_style_update()

    def watch_first(self) -> None:
        self.rebuild()

    def action_move(self, lines: int) -> None:
        room = self.size.height - self._heading_lines
        self._build(self.first + lines + room)
        self.first = min(max(self.first + lines, 0), max(0, len(self._built) - room))

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self.size.height - self._heading_lines - 1))

    def action_go_first(self) -> None:
        self.first = 0

    def action_go_last(self) -> None:
        self.action_move(_FAR)

    def on_mouse_scroll_down(self) -> None:
        self.action_move(3)

    def on_mouse_scroll_up(self) -> None:
        self.action_move(-3)

    def build_page(self, width: int, height: int) -> Iterator[Strip]:
        """Build the headings and the visible lines."""
        if self._width != width:
            self._width, self._built, self._rest = width, [], iter(self.lines(width))
        room = max(height - self._heading_lines, 1)
        self._build(self.first + 2 * room)
        lines = self._built
        first = min(self.first, max(0, len(lines) - room))
        visible = range(first, min(first + room, len(lines)))
        heads = self.headings(width, visible, len(lines))
        self._heading_lines = len(heads)
        yield from heads
        yield from lines[visible.start : visible.stop]

    def _build(self, lines: int) -> None:
        """Build lines until there are this many, or all."""
        self._built += islice(self._rest, max(lines - len(self._built), 0))


class GeneratedText(ScrollPage):
    """The text, its prompt marked, below the model's perplexity."""

    BINDING_GROUP_TITLE = "Generated text"
    BINDINGS: ClassVar = []

    report: reactive[SequenceReport | None] = reactive(None, repaint=False)
    """Report of the last validation."""

    step: reactive[int] = reactive(0, repaint=False)
    """The step of the validation."""

    def watch_report(self) -> None:
        self.show_again(from_start=True)

    def headings(self, width: int, visible: range, lines: int) -> Sequence[Strip]:
        """Perplexity and accuracy."""
        if self.report is None:
            return ()
        words = (
            f"perplexity {numbers.metric(self.report.perplexity)}, token accuracy "
            f"{numbers.metric(self.report.accuracy)} after step {self.step:,}"
        )
        more = f"   lines {visible.start + 1} to {visible.stop}" if len(visible) < lines else ""
        return [self.line((words, "title"), ("   the prompt is ", "faint"), ("marked", "head"), (more, "faint"))]

    def lines(self, width: int) -> Iterator[Strip]:
        """The text, wrapped."""
        if self.report is not None:
            spans: list[TextSpan] = [(self.report.prompt, "head"), (self.report.generated, "")]
            yield from (self.line(*line) for line in _lines(spans, width))


def _lines(spans: Sequence[TextSpan], width: int) -> Iterator[list[TextSpan]]:
    """Spans split at the ends of lines and wrapped."""
    line: list[TextSpan] = []
    for text, style in spans:
        first, *rest = text.split("\n")
        line.append((first, style))
        for part in rest:
            yield from wrapped_spans(line, width)
            line = [(part, style)]
    yield from wrapped_spans(line, width)
