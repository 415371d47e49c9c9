"""Base of lines that change many times a second."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.style import Style as TextualStyle

from accel_tui.run_state.state import RunState
from accel_tui.terminal.dirty_regions import DirtyRegionWidget
from accel_tui.widgets.run.run_view import RunView
from accel_tui.widgets.styled_text import TextSpan, changed_range


class RunLine(RunView, DirtyRegionWidget):
    """A line of text that repaints only the cells that change.

    Textual's Static wraps, styles and paints the whole text for a changed digit.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    RunLine {
        height: 1;
        padding: 0 1;
    }
    """

    _spans: Sequence[TextSpan] = ()

    def update_view(self) -> None:
        """Repaint what differs from the text on screen."""
        if not self.in_sight:
            return
        old, self._spans = self._spans, self.spans(self.state)
        first, last = changed_range(old, self._spans)
        if first < last:
            self.refresh(Region(first, 0, last - first, 1))

    def spans(self, state: RunState) -> Sequence[TextSpan]:
        """The text of a state."""
        raise NotImplementedError

    def render_lines(self, crop: Region) -> list[Strip]:
        """The requested part of the line."""
        spans, x = [(" " * self.gutter.left, ""), *self._spans], 0
        segments: list[Segment] = []
        for text, style in spans:
            end = x + cell_len(text)
            if end > crop.x and x < crop.right:
                if not segments:
                    first = x
                segments.append(Segment(text, self.cell_style(style)))
            x = end
        blank = Segment(" " * max(0, crop.right - x), self.cell_style(""))
        strip = Strip([*segments, blank])
        if segments:
            strip = strip.crop(crop.x - first, crop.right - first)
        return [strip if y == 0 else Strip.blank(crop.width, self.cell_style("")) for y in crop.line_range]

    def resolve_style(self, name: str) -> Style:
        """The style of that name in the current theme."""
        return (self.visual_style + TextualStyle.parse(name)).rich_style
