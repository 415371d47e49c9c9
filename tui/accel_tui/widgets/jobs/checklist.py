"""A list of items that can be chosen each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from accel_tui.plan.form import FieldChoice


class Checklist(OptionList):
    """Items with a mark each; those that can be chosen are chosen at first.

    Textual's ``SelectionList`` tells what is chosen by colour only.

    Args:
        items: The items.
    """

    BINDING_GROUP_TITLE = "In the list"
    DEFAULT_CSS = """
    Checklist { width: 1fr; height: auto; background: $background; border: none; padding: 0; }
    Checklist:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,enter", "select", "Choose", id="checklist.choose", tooltip="Choose this item, or not")
    ]

    @dataclass
    class Changed(Message):
        """Other items are chosen than before."""

        checklist: "Checklist"

        @property
        def control(self) -> "Checklist":
            """The sender, for :func:`textual.on`."""
            return self.checklist

    def __init__(self, items: Sequence[FieldChoice]) -> None:
        self._items = tuple(items)
        self._chosen = {item.value for item in items if item.possible}
        self._width = max((len(item.value) for item in items), default=0)
        options = (Option(self._content(item), disabled=not item.possible) for item in items)
        super().__init__(*options, compact=True)

    @property
    def value(self) -> str:
        """The chosen items in the order of the list, with commas between them."""
        return ",".join(item.value for item in self._items if item.value in self._chosen)

    def _content(self, item: FieldChoice) -> Content:
        mark = "[x]" if item.value in self._chosen else "[ ]"
        style = "$text-muted" if item.possible else "$text-error"
        return Content.assemble(f"{mark} {item.value:<{self._width}}  ", (item.note, style))

    @on(OptionList.OptionSelected)
    def _toggle(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        item = self._items[event.option_index]
        self._chosen ^= {item.value}
        self.replace_option_prompt_at_index(event.option_index, self._content(item))
        self.post_message(self.Changed(self))
