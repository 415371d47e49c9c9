"""Outputs that cannot be interpreted, with the reason."""

from collections.abc import Iterator, Sequence

from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.run.diagnostics import CustomReport
from accel_engine.words import numbers
from accel_tui.formatting.text import fit
from accel_tui.widgets.diagnostics.scroll_page import ScrollPage


class OutputList(ScrollPage):
    """A line per output: its name, dtype and shape."""

    BINDING_GROUP_TITLE = "Outputs"

    report: reactive[CustomReport | None] = reactive(None, repaint=False)
    """Report of the last validation."""

    step: reactive[int] = reactive(0, repaint=False)
    """The step of the validation."""

    def watch_report(self) -> None:
        """Show another validation."""
        self.show_again(from_start=False)

    def headings(self, width: int, visible: range, lines: int) -> Sequence[Strip]:
        """Number of examples."""
        del width, visible, lines
        if self.report is None:
            return ()
        words = f"outputs of {numbers.counted(self.report.examples, 'example')}"
        return [self.line((words, "title"), (f" after step {self.step:,}", "faint"))]

    def lines(self, width: int) -> Iterator[Strip]:
        """The outputs."""
        shapes = self.report.shapes if self.report else ()
        room = min(max((len(name) for name, _ in shapes), default=0), width // 2)
        yield from (
            self.line((fit(name or "output", max(room, 6)), ""), (f"  {spec}", "faint")) for name, spec in shapes
        )
