"""Lines about a run that change many times a second."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.style import Style as TextualStyle

from accel_tui.run.state import RunState
from accel_tui.terminal.dirty_regions import DirtyRegionWidget
from accel_tui.widgets.run.run_view import RunView
from accel_tui.widgets.styled_text import Piece, changed


class RunLine(RunView, DirtyRegionWidget):
    """A line of text that is painted from the first piece that changes to the last one.

    Textual's own text is wrapped, styled and painted as a whole for a digit.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    RunLine {
        height: 1;
        padding: 0 1;
    }
    """

    _pieces: Sequence[Piece] = ()

    def tell(self) -> None:
        """Show the state in words, if they are others than those on screen."""
        if not self.in_sight:
            return
        old, self._pieces = self._pieces, self.pieces(self.state)
        first, last = changed(old, self._pieces)
        if first < last:
            self.refresh(Region(first, 0, last - first, 1))

    def pieces(self, state: RunState) -> Sequence[Piece]:
        """Put the state into words."""
        raise NotImplementedError

    def render_lines(self, crop: Region) -> list[Strip]:
        """The words of it that are asked for; what is beyond them is blank."""
        pieces, x = [(" " * self.gutter.left, ""), *self._pieces], 0
        segments: list[Segment] = []
        for text, style in pieces:
            end = x + cell_len(text)
            if end > crop.x and x < crop.right:
                if not segments:
                    first = x
                segments.append(Segment(text, self.pen(style)))
            x = end
        blank = Segment(" " * max(0, crop.right - x), self.pen(""))
        strip = Strip([*segments, blank])
        if segments:
            strip = strip.crop(crop.x - first, crop.right - first)
        return [strip if y == 0 else Strip.blank(crop.width, self.pen("")) for y in crop.line_range]

    def look(self, name: str) -> Style:
        """What a style of a piece is here."""
        return (self.visual_style + TextualStyle.parse(name)).rich_style
