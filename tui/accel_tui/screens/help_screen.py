"""The keys of the screen below, and what they do."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Static

if TYPE_CHECKING:
    from accel_tui.app import AccelApp


@dataclass(frozen=True, slots=True)
class HelpRow:
    """What is told of a key.

    Attributes:
        keys: It, and others for the same.
        does: What they do.
        name: How that is called in the settings' table ``keys``.
        actions: What a click does: the first of these that is possible.
    """

    keys: str
    does: str
    name: str
    actions: tuple[str, ...]


_KEYS = 14  # cells that keys have, at least
_GAP = "  "


class KeyRows(Widget):
    """What the keys of one place do. It is one widget: three for each key take a third of a second to lay out.

    Args:
        rows: What is told of the keys.
        node: Whose they are.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = "KeyRows { height: auto; }"

    @dataclass
    class Clicked(Message):
        """What a key does shall be done."""

        row: HelpRow
        node: DOMNode

    def __init__(self, rows: list[HelpRow], node: DOMNode) -> None:
        super().__init__()
        self._rows = rows
        self._node = node

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as there are when sentences are broken to fit."""
        del container, viewport
        return len(self._lines(width))

    def on_click(self, event: Click) -> None:
        """Say which was meant."""
        at = self._lines(self.size.width)[event.y][1]
        self.post_message(self.Clicked(at, self._node))

    def render(self) -> Content:
        """The keys, right-aligned, a sentence, and the name in the settings."""
        return Content("\n").join(line for line, _ in self._lines(self.size.width))

    def _lines(self, width: int) -> list[tuple[Content, HelpRow]]:
        """The lines, each with what it tells of."""
        names = max(len(row.name) for row in self._rows)
        room = max(width - _KEYS - names - 2 * len(_GAP), 1)
        lines = []
        for row in self._rows:
            keys, name = " " * (_KEYS - cell_len(row.keys)) + row.keys, row.name
            for part in wrap(row.does, room):
                line = Content.assemble((keys, "$accent"), f"{_GAP}{part:<{room}}{_GAP}", (name, "$text-disabled"))
                lines.append((line, row))
                keys, name = " " * _KEYS, ""
        return lines


class HelpScreen(ModalScreen[None]):
    """Lists every binding that has a tooltip, by where it works; a click does what the key does.

    Args:
        about: The screen that is to be explained.
    """

    CSS_PATH = "help_screen.tcss"
    AUTO_FOCUS = "VerticalScroll"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,f1,q", "dismiss", "Close", id="help.close", tooltip="Close this help"),
    ]

    app: "AccelApp"

    def __init__(self, about: "Screen[object]") -> None:
        super().__init__()
        self._about = about

    def compose(self) -> ComposeResult:
        """A heading and what keys do, for each place."""
        with VerticalScroll() as box:
            box.border_title = "Keys"
            box.border_subtitle = r"settings name the right column below \[keys]   esc closes"
            for place, rows, node in self._places():
                yield Static(place, classes="place", markup=False)
                yield KeyRows(rows, node)

    @on(KeyRows.Clicked)
    def _do(self, event: KeyRows.Clicked) -> None:
        """Do what the key does where it works."""
        event.stop()

        async def do() -> None:
            for action in event.row.actions:
                if await self.app.run_action(action, event.node):
                    return

        self.dismiss()
        self.app.call_later(do)

    def _places(self) -> Iterator[tuple[str, list[HelpRow], DOMNode]]:
        seen: set[type] = set()
        own = {binding.action for binding in _explained(self._about)}
        for node in (self._about, *self._about.walk_children(), self.app):
            if type(node) not in seen:
                seen.add(type(node))
                # What the screen does in its own way is not what the app would do.
                hidden = own if node is self.app else set()
                if rows := self._rows(binding for binding in _explained(node) if binding.action not in hidden):
                    yield node.BINDING_GROUP_TITLE or "Everywhere", rows, node

    def _rows(self, bindings: Iterable[Binding]) -> list[HelpRow]:
        """A row for each key; of bindings that share one and take turns, the first speaks for all."""
        rows: dict[str, HelpRow] = {}
        for binding in bindings:
            declared = self._as_set(binding)
            keys = " ".join(self.app.get_key_display(binding) for binding in Binding.make_bindings([declared]))
            row = rows.get(keys) or HelpRow(keys, declared.tooltip, binding.id or "", ())
            rows[keys] = replace(row, actions=(*row.actions, binding.action))
        return list(rows.values())

    def _as_set(self, binding: Binding) -> Binding:
        """The binding with the keys that the user has set."""
        keys = self.app.settings.keys.get(binding.id or "")
        return replace(binding, key=keys) if keys else binding


def _explained(node: DOMNode) -> Iterator[Binding]:
    """The bindings of a node's class, and of those that it is one of, that say what they do."""
    for kind in type(node).__mro__:
        for declared in kind.__dict__.get("BINDINGS", ()):
            if isinstance(declared, Binding) and declared.tooltip:
                yield declared
