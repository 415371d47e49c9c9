"""Bases of the widgets that show a run: of lines that change many times a second, and of paragraphs."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.geometry import Region
from textual.strip import Strip
from textual.style import Style as TextualStyle
from textual.widgets import Static

from accel_tui.run_state.state import RunState
from accel_tui.terminal.dirty_regions import DirtyRegionWidget
from accel_tui.widgets.styled_text import TextSpan, changed_range, show_text
from accel_tui.widgets.visibility import VisibilityMixin


class RunView(VisibilityMixin):
    """A widget that shows a run's state.

    States come five times a second to a dozen widgets, most of which do not change. They are set by a method call,
    since a bound reactive would cost as much as drawing a line.
    """

    state = RunState()
    """The state that is shown."""

    _width: int | None = None

    def on_show(self) -> None:
        """Update once visible."""
        super().on_show()
        self.update_view()

    def on_resize(self) -> None:
        self._width = None
        self.update_view()

    @property
    def width(self) -> int:
        """Width in cells, cached: Textual would search its layout each time."""
        if self._width is None:
            self._width = self.size.width
        return self._width

    def set_state(self, state: RunState) -> None:
        """Set another state and update."""
        self.state = state
        self.update_view()

    def update_view(self) -> None:
        """Update from the state and the current time."""
        raise NotImplementedError


class RunText(RunView, Static):
    """Text of a run's state, updated only when it differs.

    Most of it changes rarely, and an update would lay out the whole screen. Hidden text is not updated.
    """

    _inputs: tuple[object, ...] = ()

    def update_view(self) -> None:
        """Update the text if it differs from what is on screen."""
        if not self.in_sight:
            return
        inputs = self.inputs(self.state)
        if inputs and inputs == self._inputs:
            return
        self._inputs = inputs
        show_text(self, self.build(self.state))

    def inputs(self, state: RunState) -> tuple[object, ...]:
        """All that the text depends on; empty if it also depends on the time."""
        return ()

    def build(self, state: RunState) -> Content:
        raise NotImplementedError


def row(left: Content, right: Content, width: int) -> Content:
    """A line with text at both ends; the right one is dropped first, then the left one is cut."""
    if left.cell_length + right.cell_length + 2 > width:
        return left.truncate(max(width, 1), ellipsis=True)
    return left.pad_right(width - left.cell_length - right.cell_length) + right


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
