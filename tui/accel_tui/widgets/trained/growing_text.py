"""A text that grows at its end."""

from rich.segment import Segment
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from accel_engine.text import printable
from accel_tui.formatting.wrapping import wrapped


class GrowingText(ScrollView):
    """A text that is wrapped to the width, and scrolled to its end; of what is added, only that is wrapped.

    Args:
        id: The widget's id.
    """

    DEFAULT_CSS = """
    GrowingText { scrollbar-gutter: stable; }
    """

    def __init__(
        self,
        *,
        id: str | None = None,  # noqa: A002 (Textual's own name)
    ) -> None:
        super().__init__(id=id)
        self._text = ""
        self._lines = [""]
        self._width = 0  # that the lines are wrapped to

    def begin(self, text: str) -> None:
        """Show another text."""
        self._text, self._lines = "", [""]
        self.append(text)

    def append(self, text: str) -> None:
        """Add a text at the end."""
        part = printable(text)
        self._text += part
        if self._width:
            self._extend(part)

    def on_resize(self) -> None:
        """Wrap all to another width."""
        width = self.scrollable_content_region.width
        if width and width != self._width:
            self._width, self._lines = width, [""]
            self._extend(self._text)

    def render_line(self, y: int) -> Strip:
        """A line of the text."""
        row = y + self.scroll_offset.y
        text = self._lines[row] if row < len(self._lines) else ""
        return Strip([Segment(text, self.rich_style)]).adjust_cell_length(self.size.width, self.rich_style)

    def _extend(self, part: str) -> None:
        self._lines[-1:] = wrapped(self._lines[-1] + part, self._width)
        self.virtual_size = Size(self._width, len(self._lines))
        self.scroll_end(animate=False)
        self.refresh()
