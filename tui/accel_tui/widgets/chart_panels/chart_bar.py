"""The line above the charts: visible steps, cursor, options; each item can be clicked."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from accel_tui.widgets.custom_keys import custom_keys


@dataclass(frozen=True, slots=True)
class BarItem:
    """An item of the line.

    Attributes:
        text: Its text.
        action: The action of a click; empty for plain text.
        key: The action's key, as shown.
        is_active: Whether its mode is on.
        drop_first: Whether it is dropped first if there is no room.
    """

    text: str
    action: str = ""
    key: str = ""
    is_active: bool = False
    drop_first: bool = False

    @property
    def label(self) -> Content:
        """Key and text with their styles."""
        key = (f"{self.key} ", "$accent") if self.key else ""
        style = "bold reverse" if self.is_active else "" if self.action or not self.text else "$text-muted"
        return (
            Content.assemble(key, (f" {self.text} ", style))
            if self.is_active
            else Content.assemble(key, (f"{self.text} ", style))
        )


class ChartBar(Widget):
    """Shows modes and keys of the charts; a click runs the action."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "ChartBar { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }"

    _rebound: Mapping[str, str] | None = None

    items: reactive[tuple[BarItem, ...]] = reactive(())
    """The items from left to right."""

    @dataclass
    class Clicked(Message):
        """An item was clicked."""

        action: str

    def validate_items(self, items: tuple[BarItem, ...]) -> tuple[BarItem, ...]:
        """Show the user's custom keys."""
        if self._rebound is None and self.is_attached and isinstance(self.parent, Widget):
            self._rebound = custom_keys(self.parent)
        keys = self._rebound
        return tuple(replace(item, key=keys.get(item.action, item.key)) for item in items) if keys else items

    def render(self) -> Content:
        """The items that fit."""
        return Content(" ").join(item.label for item in self.shown)

    @property
    def shown(self) -> tuple[BarItem, ...]:
        """The items that fit."""
        items = self.items
        for droppable in [item for item in reversed(items) if item.drop_first]:
            if sum(item.label.cell_length + 1 for item in items) <= self.size.width + 1:
                break
            items = tuple(item for item in items if item is not droppable)
        return items

    def on_click(self, event: Click) -> None:
        """Post the action of the clicked item."""
        end = 0
        for item in self.shown:
            start, end = end, end + item.label.cell_length + 1
            if start <= event.x < end - 1 and item.action:
                self.post_message(self.Clicked(item.action))
                return
