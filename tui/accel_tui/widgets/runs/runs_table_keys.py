"""The keys that move the cursor of a list of runs, and that order it."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.scroll_view import ScrollView

from accel_tui.runs.columns import TITLES, SortOrder
from accel_tui.widgets.runs.runs_layout import RunsLayout


class RunsTableKeys(ScrollView, can_focus=True):
    """A list of runs with a cursor and an order; what is shown in it, others decide."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("S", "turn", "Turn", show=False, id="runs.turn", tooltip="Turn the order the other way round"),
        Binding("j,down", "move(1)", "Down", id="runs.down", show=False, tooltip="The next run"),
        Binding("k,up", "move(-1)", "Up", id="runs.up", show=False, tooltip="The run before"),
        Binding("pagedown", "page(1)", id="runs.page-down", show=False, tooltip="A screen further"),
        Binding("pageup", "page(-1)", id="runs.page-up", show=False, tooltip="A screen back"),
        Binding("home", "move(-1000000)", id="runs.home", show=False, tooltip="The first run"),
        Binding("end", "move(1000000)", id="runs.end", show=False, tooltip="The last run"),
    ]

    order: reactive[SortOrder] = reactive(SortOrder(), repaint=False)
    """The order that runs are shown in."""

    lines: RunsLayout
    """The columns that there is room for."""

    _cursor = 0

    def action_order(self, direction: int) -> None:
        """Order by the next of the columns that are seen, or the one before."""
        titles = [column.title for column in self.lines.columns] or list(TITLES)
        at = titles.index(self.order.column) if self.order.column in titles else -1
        self.order = SortOrder(titles[(at + direction) % len(titles)])

    def action_turn(self) -> None:
        """Turn the order round."""
        self.order = self.order.by(self.order.column)

    def action_move(self, lines: int) -> None:
        """Move the cursor."""
        self._go_to(self._cursor + lines)

    def action_page(self, pages: int) -> None:
        """Move the cursor by as many runs as are seen."""
        self._go_to(self._cursor + pages * max(1, self.size.height - 2))

    def _go_to(self, line: int) -> None:
        """Move the cursor."""
        raise NotImplementedError
