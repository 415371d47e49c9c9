"""Help screen: the keys of the screen below it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import ClassVar

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
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from accel_tui.host import settings_of
from accel_tui.screens.asking import Dialog


@dataclass(frozen=True, slots=True)
class HelpRow:
    """A row of the help screen."""

    keys: str
    """The keys, as shown."""
    description: str
    """The binding's tooltip."""
    name: str
    """The binding's id in the settings table ``keys``."""
    actions: tuple[str, ...]
    """Actions that a click tries, in this order."""


_KEYS = 14  # minimum width of the column of keys
_GAP = "  "


class KeyRows(Widget):
    """The bindings of one widget or screen. A single widget: one per cell took a third of a second to lay out.

    Args:
        rows: The rows.
        node: The widget or screen that owns the bindings.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = "KeyRows { height: auto; }"

    @dataclass
    class Clicked(Message):
        """A row was clicked."""

        row: HelpRow
        node: DOMNode

    def __init__(self, rows: list[HelpRow], node: DOMNode) -> None:
        super().__init__()
        self._rows = rows
        self._node = node

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Number of lines after wrapping."""
        return len(self._lines(width))

    def on_click(self, event: Click) -> None:
        """Post which row was clicked."""
        at = self._lines(self.size.width)[event.y][1]
        self.post_message(self.Clicked(at, self._node))

    def render(self) -> Content:
        """Keys, right-aligned; description; binding id."""
        return Content("\n").join(line for line, _ in self._lines(self.size.width))

    def _lines(self, width: int) -> list[tuple[Content, HelpRow]]:
        """The lines, each with its row."""
        names = max(len(row.name) for row in self._rows)
        text_width = max(width - _KEYS - names - 2 * len(_GAP), 1)
        lines = []
        for row in self._rows:
            keys, name = " " * (_KEYS - cell_len(row.keys)) + row.keys, row.name
            for part in wrap(row.description, text_width):
                line = Content.assemble(
                    (keys, "$accent"), f"{_GAP}{part:<{text_width}}{_GAP}", (name, "$text-disabled")
                )
                lines.append((line, row))
                keys, name = " " * _KEYS, ""
        return lines


class HelpScreen(Dialog[None]):
    """Lists every binding that has a tooltip, grouped by widget; a click runs its action.

    Args:
        about: The screen to explain.
    """

    CSS_PATH = "help_screen.tcss"
    AUTO_FOCUS = "VerticalScroll"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1,q", "back", "Close", id="help.close", tooltip="Close this help"),
    ]

    def __init__(self, about: "Screen[object]") -> None:
        super().__init__()
        self._explained_screen = about

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title = "Keys"
            box.border_subtitle = r"right column: name in the settings, table \[keys]   esc closes"
            for place, rows, node in self._groups():
                yield Static(place, classes="place", markup=False)
                yield KeyRows(rows, node)

    @on(KeyRows.Clicked)
    def _do(self, event: KeyRows.Clicked) -> None:
        """Run the row's action on the node that owns it."""
        event.stop()

        async def do() -> None:
            for action in event.row.actions:
                if await self.app.run_action(action, event.node):
                    return

        self.dismiss()
        self.app.call_later(do)

    def _groups(self) -> Iterator[tuple[str, list[HelpRow], DOMNode]]:
        seen: set[type] = set()
        own = {binding.action for binding in _documented_bindings(self._explained_screen)}
        for node in (self._explained_screen, *self._explained_screen.walk_children(), self.app):
            if type(node) not in seen:
                seen.add(type(node))
                # A screen's own action replaces the app's.
                hidden = own if node is self.app else set()
                if node.check_action("select", ()) is False:  # the recent runs
                    hidden = {"select", "select_next(1)", "select_next(-1)"}
                if rows := self._rows(
                    binding for binding in _documented_bindings(node) if binding.action not in hidden
                ):
                    yield node.BINDING_GROUP_TITLE or "All screens", rows, node

    def _rows(self, bindings: Iterable[Binding]) -> list[HelpRow]:
        """A row per key; of bindings that share a key, the first gives the description."""
        rows: dict[str, HelpRow] = {}
        for binding in bindings:
            declared = self._with_custom_keys(binding)
            keys = " ".join(self.app.get_key_display(binding) for binding in Binding.make_bindings([declared]))
            row = rows.get(keys) or HelpRow(keys, declared.tooltip, binding.id or "", ())
            rows[keys] = replace(row, actions=(*row.actions, binding.action))
        return list(rows.values())

    def _with_custom_keys(self, binding: Binding) -> Binding:
        """The binding with the user's custom keys."""
        keys = settings_of(self).keys.get(binding.id or "")
        return replace(binding, key=keys) if keys else binding


def _documented_bindings(node: DOMNode) -> Iterator[Binding]:
    """Bindings with a tooltip of a node's class and its base classes."""
    for kind in type(node).__mro__:
        for declared in kind.__dict__.get("BINDINGS", ()):
            if isinstance(declared, Binding) and declared.tooltip:
                yield declared
