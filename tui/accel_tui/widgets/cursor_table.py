"""A table of lines below a header, with a cursor; only the visible lines are rendered."""

from textual.scroll_view import ScrollView


class CursorTable(ScrollView, can_focus=True):
    """Moves a cursor over lines, and keeps it in view. Subclasses have the lines, and render them."""

    _cursor = 0

    @property
    def line_count(self) -> int:
        """Number of lines, without the header."""
        raise NotImplementedError

    def cursor_moved(self, before: int) -> None:
        """Repaint, and tell of it.

        Args:
            before: The line that the cursor was on, perhaps the same.
        """
        raise NotImplementedError

    def action_move(self, lines: int) -> None:
        """Move the cursor by lines."""
        self.go_to(self._cursor + lines)

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self.action_move(pages * max(1, self.size.height - 2))

    def go_to(self, line: int) -> None:
        """Move the cursor to a line, or to the nearest one that there is."""
        before = self._cursor
        line = self._cursor = max(0, min(line, self.line_count - 1))
        top, visible = self.scroll_offset.y, max(1, self.size.height - 1)
        if not top <= line < top + visible:
            self.scroll_to(y=line if line < top else line - visible + 1, animate=False, immediate=True)
        self.cursor_moved(before)
