"""The keys of the screen below, and what they do."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, VerticalScroll
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.widgets import Label, Static

if TYPE_CHECKING:
    from accel_tui.app import AccelApp

Row = tuple[str, str, str]
"""Keys, what they do, and how that is called in the settings' table ``keys``."""


class HelpScreen(ModalScreen[None]):
    """Lists every binding that has a tooltip, by where it works.

    Args:
        about: The screen that is to be explained.
    """

    CSS_PATH = "help.tcss"
    AUTO_FOCUS = "VerticalScroll"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,f1,q", "dismiss", "Close", id="help.close", tooltip="Close this help"),
    ]

    app: "AccelApp"

    def __init__(self, about: "Screen[object]") -> None:
        super().__init__()
        self._about = about

    def compose(self) -> ComposeResult:
        """A heading and a table for each place."""
        with VerticalScroll() as box:
            box.border_title = "Keys"
            box.border_subtitle = "settings name the right column below [keys]   esc closes"
            for place, rows in self._places():
                yield Static(place, classes="place", markup=False)
                with Grid(classes="keys"):
                    for keys, does, name in rows:
                        yield Label(keys, classes="key", markup=False)
                        yield Label(does, classes="does", markup=False)
                        yield Label(name, classes="id", markup=False)

    def _places(self) -> Iterator[tuple[str, list[Row]]]:
        seen: set[type] = set()
        own = {binding.action for binding in _explained(self._about)}
        for node in (self._about, *self._about.walk_children(), self.app):
            if type(node) not in seen:
                seen.add(type(node))
                # What the screen does in its own way is not what the app would do.
                hidden = own if node is self.app else set()
                if rows := self._rows(binding for binding in _explained(node) if binding.action not in hidden):
                    yield node.BINDING_GROUP_TITLE or "Everywhere", rows

    def _rows(self, bindings: Iterable[Binding]) -> list[Row]:
        """A row for each key; of bindings that share one and take turns, the first speaks for all."""
        rows: dict[str, Row] = {}
        for binding in bindings:
            declared = self._as_set(binding)
            keys = " ".join(self.app.get_key_display(binding) for binding in Binding.make_bindings([declared]))
            rows.setdefault(keys, (keys, declared.tooltip, binding.id or ""))
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
