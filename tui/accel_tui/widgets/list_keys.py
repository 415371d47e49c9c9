"""The keys that move in tables, lists and texts."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.scroll_view import ScrollView
from textual.widgets import OptionList

LIST_KEYS = (
    Binding("j,down", "move(1)", "Next", show=False, id="list.down", tooltip="Next line"),
    Binding("k,up", "move(-1)", "Previous", show=False, id="list.up", tooltip="Previous line"),
    Binding("pagedown", "page(1)", "Page down", show=False, id="list.page-down", tooltip="Page down"),
    Binding("pageup", "page(-1)", "Page up", show=False, id="list.page-up", tooltip="Page up"),
    Binding("home", "go_first", "First", show=False, id="list.home", tooltip="First line"),
    Binding("end", "go_last", "Last", show=False, id="list.end", tooltip="Last line"),
)
"""Up and down by lines and pages, and to both ends; each widget has its own actions of these names."""

SIDEWAYS_KEYS = (
    Binding("left", "scroll_left", "Left", show=False, id="list.left", tooltip="Scroll left"),
    Binding("right", "scroll_right", "Right", show=False, id="list.right", tooltip="Scroll right"),
)
"""To both sides, where there is more than fits."""


class ScrolledByKeys(ScrollView, can_focus=True):
    """Scrolls by the keys that move."""

    BINDINGS: ClassVar[list[BindingType]] = [*LIST_KEYS]

    def action_move(self, lines: int) -> None:
        """Scroll by a line."""
        self.action_scroll_down() if lines > 0 else self.action_scroll_up()

    def action_page(self, pages: int) -> None:
        """Scroll by a page."""
        self.action_page_down() if pages > 0 else self.action_page_up()

    def action_go_first(self) -> None:
        """Scroll to the first line."""
        self.action_scroll_home()

    def action_go_last(self) -> None:
        """Scroll to the last line."""
        self.action_scroll_end()


class ItemList(OptionList, inherit_bindings=False):
    """Options whose highlighted one is the selected one, so that no key selects it."""

    BINDINGS: ClassVar[list[BindingType]] = [*LIST_KEYS]

    def action_move(self, lines: int) -> None:
        """Highlight the next option, or the previous one."""
        self.action_cursor_down() if lines > 0 else self.action_cursor_up()

    def action_page(self, pages: int) -> None:
        """Highlight an option a page away."""
        self.action_page_down() if pages > 0 else self.action_page_up()  # type: ignore[no-untyped-call]

    def action_go_first(self) -> None:
        """Highlight the first option."""
        self.action_first()

    def action_go_last(self) -> None:
        """Highlight the last option."""
        self.action_last()
