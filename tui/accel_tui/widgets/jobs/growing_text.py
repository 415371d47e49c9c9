"""A text that grows at its end."""

from rich.text import Text
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from accel_engine.text import printable
from accel_tui.formatting.text import wrapped


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
        self._pieces = list[str]()
        self._lines = [""]
        self._width = 0  # that the lines are wrapped to

    def begin(self, text: str) -> None:
        """Show another text."""
        self._pieces, self._lines = [], [""]
        self.append(text)

    def append(self, text: str) -> None:
        """Add a text at the end."""
        part = printable(text)
        self._pieces.append(part)
        if self._width:
            self._extend(part)

    def on_resize(self) -> None:
        """Wrap all to another width."""
        width = self.scrollable_content_region.width
        if width and width != self._width:
            self._width, self._lines = width, [""]
            self._extend("".join(self._pieces))

    def render_line(self, y: int) -> Strip:
        """A line of the text."""
        row = y + self.scroll_offset.y
        line = Text(self._lines[row] if row < len(self._lines) else "", self.rich_style)
        if self.text_selection and (span := self.text_selection.get_span(row)):
            start, end = span
            style = self.screen.get_component_rich_style("screen--selection")
            line.stylize(style, start, len(line) if end == -1 else end)
        strip = Strip(line.render(self.app.console)).adjust_cell_length(self.size.width, self.rich_style)
        return strip.apply_offsets(0, row)

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """The lines that are selected, as they are wrapped, and how they end."""
        return selection.extract("\n".join(self._lines)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Show what is selected."""
        del selection
        self.refresh()

    def _extend(self, part: str) -> None:
        self._lines[-1:] = wrapped(self._lines[-1] + part, self._width)
        self.virtual_size = Size(self._width, len(self._lines))
        self.scroll_end(animate=False)
        self.refresh()
