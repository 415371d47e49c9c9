"""A widget of lines that repaints only the cells whose texts or styles have changed."""

from collections.abc import Sequence
from itertools import zip_longest

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.geometry import Region
from textual.renderables.text_opacity import TextOpacity
from textual.strip import Strip
from textual.style import Style as TextualStyle

from accel_tui.terminal.dirty_regions import DirtyRegionWidget
from accel_tui.widgets.styled_text import TextSpan, changed_range, spans_of


class ContentLines(DirtyRegionWidget):
    """Lines whose number and width follow from the widget's size."""

    ALLOW_SELECT = False

    _lines: Sequence[Sequence[TextSpan]] = ()
    _laid_out_for: object = None

    def make_lines(self) -> Sequence[Content]:
        """The lines for the present size; styles are names or colours."""
        raise NotImplementedError

    def layout_key(self) -> object:
        """The values on which the layout of the lines depends; where they change, all is repainted."""
        return self.size

    def show_changes(self) -> None:
        """Make the lines anew, and repaint what has changed of them."""
        before, laid_out_for = self._lines, self._laid_out_for
        self._make()
        if self._laid_out_for != laid_out_for:
            self.refresh()
            return
        spans = (changed_range(old, new) for old, new in zip_longest(before, self._lines, fillvalue=()))
        if regions := [Region(a, row, b - a, 1) for row, (a, b) in enumerate(spans) if a < b]:
            self.refresh(*regions)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The requested lines, within the border and the padding."""
        if self._laid_out_for != self.layout_key():
            self._make()
        return [self._line(y - self.gutter.top).crop(crop.x, crop.right) for y in crop.line_range]

    def resolve_style(self, name: str) -> Style:
        """The style of that name in the current theme."""
        style = (self.visual_style + TextualStyle.parse(name)).rich_style
        app, opacity = self.app, self.styles.text_opacity  # as in Textual's rendering of text
        faded = TextOpacity.process_segments([Segment(" ", style)], opacity, app.ansi_theme, app.native_ansi_color)
        return next(iter(faded)).style or style

    def _make(self) -> None:
        self._laid_out_for = self.layout_key()
        self._lines = [spans_of(line) for line in self.make_lines()]

    def _line(self, row: int) -> Strip:
        spans = self._lines[row] if 0 <= row < len(self._lines) else ()
        blank = self.cell_style("")
        words = [
            Segment(" " * self.gutter.left, blank),
            *(Segment(text, self.cell_style(name)) for text, name in spans),
        ]
        return Strip(words).adjust_cell_length(self.outer_size.width, blank)
