"""Help screen: the keys of the screen below it, by what they are for."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.actions import parse
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

from accel_tui import keymap
from accel_tui.app_protocol import settings_of
from accel_tui.screens.asking import Dialog


@dataclass(frozen=True, slots=True)
class HelpRow:
    """A row of the help screen."""

    keys: str
    """The keys, as shown."""
    description: str
    """The binding's tooltip."""
    node: DOMNode
    """The widget or screen that owns the binding."""
    actions: tuple[str, ...]
    """Actions that a click tries, in this order."""
    is_offered: bool = True
    """Whether it does something now; else it is dimmed."""


_WIDEST_KEYS = 14  # cells of the column of keys
_GAP = "  "


class KeyRows(Widget):
    """The bindings for one purpose. A single widget: one per cell took a third of a second to lay out.

    Args:
        rows: The rows.
        keys: Cells of the column of keys.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = "KeyRows { height: auto; }"

    @dataclass
    class Clicked(Message):
        """A row was clicked."""

        row: HelpRow

    def __init__(self, rows: list[HelpRow], keys: int) -> None:
        super().__init__()
        self._rows, self._keys = rows, keys

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Number of lines after wrapping."""
        return len(self._lines(width))

    def on_click(self, event: Click) -> None:
        """Post which row was clicked."""
        at = self._lines(self.size.width)[event.y][1]
        self.post_message(self.Clicked(at))

    def render(self) -> Content:
        """Keys, right-aligned, and what they do."""
        return Content("\n").join(line for line, _ in self._lines(self.size.width))

    def _lines(self, width: int) -> list[tuple[Content, HelpRow]]:
        """The lines, each with its row."""
        text_width = max(width - self._keys - len(_GAP), 1)
        lines = []
        for row in self._rows:
            keys = " " * (self._keys - cell_len(row.keys)) + row.keys
            for part in wrap(row.description, text_width):
                styles = ("$accent", "") if row.is_offered else ("$text-disabled", "$text-disabled")
                lines.append((Content.assemble((keys, styles[0]), (f"{_GAP}{part}", styles[1])), row))
                keys = " " * self._keys
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
            box.border_subtitle = "a click does it   esc closes"
            groups = self._groups()
            widths = (cell_len(row.keys) for rows in groups.values() for row in rows)
            keys = max((width for width in widths if width <= _WIDEST_KEYS), default=_WIDEST_KEYS)
            for place, rows in groups.items():
                yield Static(place, classes="place", markup=False)
                yield KeyRows(rows, keys)

    @on(KeyRows.Clicked)
    def _do(self, event: KeyRows.Clicked) -> None:
        """Run the row's action on the node that owns it."""
        event.stop()

        async def do() -> None:
            for action in event.row.actions:
                if await self.app.run_action(action, event.row.node):
                    return

        self.dismiss()
        self.app.call_later(do)

    def _groups(self) -> dict[str, list[HelpRow]]:
        """The rows by purpose: first what the screen is for, then its parts, then what all screens have."""
        seen: set[type] = set()
        groups: dict[str, list[HelpRow]] = {}
        own = {binding.action.removeprefix("app.") for binding in _documented_bindings(self._explained_screen)}
        for node in (self._explained_screen, *self._explained_screen.walk_children(), self.app):
            if type(node) not in seen:
                seen.add(type(node))
                # A screen's own action replaces the app's.
                hidden = own if node is self.app else set()
                if node.check_action("select", ()) is False:  # the recent runs
                    hidden = {"select", "select_next(1)", "select_next(-1)"}
                shown = [binding for binding in _documented_bindings(node) if binding.action not in hidden]
                for purpose, rows in self._rows(shown, node).items():
                    groups.setdefault(purpose, []).extend(rows)
        order = [purpose for purpose, _ in keymap.PURPOSES]
        first, last = order[:-2], order[-2:]
        names = [*first, *(name for name in groups if name not in order), *last]
        return {name: groups[name] for name in names if name in groups}

    def _rows(self, bindings: Iterable[Binding], node: DOMNode) -> dict[str, list[HelpRow]]:
        """A row per key, by purpose; of bindings that share a key, the first that is offered describes it."""
        rows: dict[tuple[str, str], HelpRow] = {}
        for binding in bindings:
            declared = self._with_custom_keys(binding)
            keys = " ".join(self.app.get_key_display(binding) for binding in Binding.make_bindings([declared]))
            purpose = keymap.purpose_of(binding.id or "", node.BINDING_GROUP_TITLE or "Always")
            row = rows.get((purpose, keys)) or HelpRow(keys, declared.tooltip, node, (), is_offered=False)
            if not row.is_offered and self._is_offered(binding.action, node):
                row = replace(row, description=declared.tooltip, is_offered=True)
            rows[purpose, keys] = replace(row, actions=(*row.actions, binding.action))
        groups: dict[str, list[HelpRow]] = {}
        for (purpose, _), row in rows.items():
            groups.setdefault(purpose, []).append(row)
        return groups

    def _is_offered(self, action: str, node: DOMNode) -> bool:
        """Whether an action does something now."""
        place, _, call = action.rpartition(".")
        name, parameters = parse(call)[1:]
        return (self.app if place else node).check_action(name, parameters) is not False

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
