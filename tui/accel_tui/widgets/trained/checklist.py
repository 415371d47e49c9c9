"""A list whose items are chosen or not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    """An item of a list.

    Attributes:
        id: Its name.
        about: What it is.
        problem: Why it cannot be chosen; empty if it can.
    """

    id: str
    about: str
    problem: str = ""


class Checklist(OptionList):
    """Items with a mark each; those that can be chosen are chosen at first.

    Textual's ``SelectionList`` tells what is chosen by colour only.

    Args:
        items: The items.
        id: The widget's id.
    """

    BINDING_GROUP_TITLE = "In the list"
    DEFAULT_CSS = """
    Checklist { height: auto; background: $background; border: none; padding: 0; }
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

    def __init__(
        self,
        items: Sequence[ChecklistItem],
        *,
        id: str | None = None,  # noqa: A002 (Textual's own name)
    ) -> None:
        self._items = tuple(items)
        self._chosen = {item.id for item in items if not item.problem}
        self._width = max((len(item.id) for item in items), default=0)
        options = (Option(self._content(item), disabled=bool(item.problem)) for item in items)
        super().__init__(*options, id=id, compact=True)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The ids of the chosen items, in the order of the list."""
        return tuple(item.id for item in self._items if item.id in self._chosen)

    def _content(self, item: ChecklistItem) -> Content:
        mark = "[x]" if item.id in self._chosen else "[ ]"
        style = "$text-error" if item.problem else "$text-muted"
        return Content.assemble(f"{mark} {item.id:<{self._width}}  ", (item.problem or item.about, style))

    @on(OptionList.OptionSelected)
    def _toggle(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        item = self._items[event.option_index]
        self._chosen ^= {item.id}
        self.replace_option_prompt_at_index(event.option_index, self._content(item))
        self.post_message(self.Changed(self))
