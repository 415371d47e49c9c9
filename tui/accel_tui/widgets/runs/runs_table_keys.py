"""Keys of the list of runs: cursor and sorting."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.scroll_view import ScrollView

from accel_tui.run_list.columns import TITLES, SortOrder
from accel_tui.widgets.runs.runs_layout import RunsLayout


class RunsTableKeys(ScrollView, can_focus=True):
    """A list of runs with a cursor and a sort order; subclasses draw it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("S", "reverse", "Reverse the order", show=False, id="runs.reverse", tooltip="Reverse the sort order"),
        Binding("j,down", "move(1)", "Next run", id="runs.down", show=False, tooltip="Go to the next run"),
        Binding("k,up", "move(-1)", "Previous run", id="runs.up", show=False, tooltip="Go to the previous run"),
        Binding("pagedown", "page(1)", id="runs.page-down", show=False, tooltip="Page down"),
        Binding("pageup", "page(-1)", id="runs.page-up", show=False, tooltip="Page up"),
        Binding("home", "move(-1000000)", id="runs.home", show=False, tooltip="First run"),
        Binding("end", "move(1000000)", id="runs.end", show=False, tooltip="Last run"),
    ]

    order: reactive[SortOrder] = reactive(SortOrder(), repaint=False)
    """The sort order."""

    lines: RunsLayout
    """The columns that fit."""

    _cursor = 0

    def action_sort(self, direction: int) -> None:
        """Sort by the next visible column, or the previous one."""
        titles = [column.title for column in self.lines.columns] or list(TITLES)
        at = titles.index(self.order.column) if self.order.column in titles else -1
        self.order = SortOrder(titles[(at + direction) % len(titles)])

    def action_reverse(self) -> None:
        """Reverse the sort order."""
        self.order = self.order.by(self.order.column)

    def action_move(self, lines: int) -> None:
        """Move the cursor by lines."""
        self._go_to(self._cursor + lines)

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self._go_to(self._cursor + pages * max(1, self.size.height - 2))

    def _go_to(self, line: int) -> None:
        """Move the cursor to a line."""
        raise NotImplementedError
