"""The keys that move in tables, lists and texts; and custom keys of the user settings."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.scroll_view import ScrollView
from textual.widget import Widget
from textual.widgets import OptionList

from accel_tui.app_protocol import settings_of

LIST_KEYS = (
    Binding("j,down", "move(1)", id="list.down", tooltip="Next line"),
    Binding("k,up", "move(-1)", id="list.up", tooltip="Previous line"),
    Binding("pagedown", "page(1)", id="list.page-down", tooltip="Page down"),
    Binding("pageup", "page(-1)", id="list.page-up", tooltip="Page up"),
    Binding("home", "go_first", id="list.home", tooltip="First line"),
    Binding("end", "go_last", id="list.end", tooltip="Last line"),
)
"""Up and down by lines and pages, and to both ends; each widget has its own actions of these names."""

SIDEWAYS_KEYS = (
    Binding("left", "scroll_left", id="list.left", tooltip="Scroll left"),
    Binding("right", "scroll_right", id="list.right", tooltip="Scroll right"),
)
"""To both sides, where there is more than fits."""


class ScrolledByKeys(ScrollView, can_focus=True):
    """Scrolls by the keys that move."""

    BINDINGS: ClassVar[list[BindingType]] = [*LIST_KEYS]

    def action_move(self, lines: int) -> None:
        self.action_scroll_down() if lines > 0 else self.action_scroll_up()

    def action_page(self, pages: int) -> None:
        self.action_page_down() if pages > 0 else self.action_page_up()

    def action_go_first(self) -> None:
        self.action_scroll_home()

    def action_go_last(self) -> None:
        self.action_scroll_end()


class ItemList(OptionList, inherit_bindings=False):
    """Options whose highlighted one is the selected one, so that no key selects it."""

    BINDINGS: ClassVar[list[BindingType]] = [*LIST_KEYS]

    def action_move(self, lines: int) -> None:
        """Highlight the next option, or the previous one."""
        self.action_cursor_down() if lines > 0 else self.action_cursor_up()

    def enter(self, lines: int) -> None:
        """Highlight the first option when the focus comes from above, else the last one."""
        self.action_first() if lines > 0 else self.action_last()

    def action_page(self, pages: int) -> None:
        self.action_page_down() if pages > 0 else self.action_page_up()  # type: ignore[no-untyped-call]

    def action_go_first(self) -> None:
        self.action_first()

    def action_go_last(self) -> None:
        self.action_last()


def custom_keys(owner: Widget) -> Mapping[str, str]:
    """Keys, as shown, of those actions of a widget for which the user has set custom keys."""
    chosen = settings_of(owner).keys
    found: dict[str, str] = {}
    for kind in type(owner).__mro__:
        for binding in kind.__dict__.get("BINDINGS", ()):
            if binding.id and (keys := chosen.get(binding.id)):
                key = replace(binding, key=keys.partition(",")[0])
                found.setdefault(binding.action, owner.app.get_key_display(key))
    return found
