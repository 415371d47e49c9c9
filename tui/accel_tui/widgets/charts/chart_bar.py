"""The line above the charts of a run: which steps they show, which step is read, and what a click does."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from accel_tui.widgets.custom_keys import custom_keys


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of the line.

    Attributes:
        words: What it says.
        action: What a click on it does, as a key does; nothing for mere words.
        key: That key, as it is shown.
        on: Whether what it stands for is so now.
        spare: Whether it is left out first where there is no room.
    """

    words: str
    action: str = ""
    key: str = ""
    on: bool = False
    spare: bool = False

    @property
    def label(self) -> Content:
        """How it is shown."""
        key = (f"{self.key} ", "$accent") if self.key else ""
        style = "bold reverse" if self.on else "" if self.action or not self.words else "$text-muted"
        return (
            Content.assemble(key, (f" {self.words} ", style))
            if self.on
            else Content.assemble(key, (f"{self.words} ", style))
        )


class ChartBar(Widget):
    """Says which mode is on; a click is as good as a key."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "ChartBar { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }"

    _rebound: Mapping[str, str] | None = None

    items: reactive[tuple[Item, ...]] = reactive(())
    """What it says, from left to right."""

    @dataclass
    class Clicked(Message):
        """An item was clicked."""

        action: str

    def validate_items(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """Say the keys that the user has chosen."""
        if self._rebound is None and self.is_attached and isinstance(self.parent, Widget):
            self._rebound = custom_keys(self.parent)
        keys = self._rebound
        return tuple(replace(item, key=keys.get(item.action, item.key)) for item in items) if keys else items

    def render(self) -> Content:
        """Those items that there is room for."""
        return Content(" ").join(item.label for item in self.shown)

    @property
    def shown(self) -> tuple[Item, ...]:
        """Those that there is room for."""
        items = self.items
        for spare in [item for item in reversed(items) if item.spare]:
            if sum(item.label.cell_length + 1 for item in items) <= self.size.width + 1:
                break
            items = tuple(item for item in items if item is not spare)
        return items

    def on_click(self, event: Click) -> None:
        """Do what the item stands for."""
        end = 0
        for item in self.shown:
            start, end = end, end + item.label.cell_length + 1
            if start <= event.x < end - 1 and item.action:
                self.post_message(self.Clicked(item.action))
                return
