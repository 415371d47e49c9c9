"""Text that a language model has written so far."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.run.diagnostics import SequenceReport
from accel_engine.words import numbers
from accel_tui.widgets.diagnostics.scroll_page import ScrollPage
from accel_tui.widgets.styled_text import TextSpan, wrapped


class GeneratedText(ScrollPage):
    """The text, its prompt marked, below the model's perplexity."""

    BINDING_GROUP_TITLE = "Generated text"
    BINDINGS: ClassVar = []

    report: reactive[SequenceReport | None] = reactive(None, repaint=False)
    """Report of the last validation."""

    step: reactive[int] = reactive(0, repaint=False)
    """The step of the validation."""

    def watch_report(self) -> None:
        """Show the text of another validation."""
        self.show_again(from_start=True)

    def headings(self, width: int, visible: range, lines: int) -> Sequence[Strip]:
        """Perplexity and accuracy."""
        del width
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
            yield from wrapped(line, width)
            line = [(part, style)]
    yield from wrapped(line, width)
