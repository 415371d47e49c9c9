"""Base of the lists of the Advice screen."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

from textual.widgets import OptionList
from textual.widgets.option_list import Option

from accel_tui.widgets.list_keys import ItemList

_Item = TypeVar("_Item")


class AdviceList(ItemList):
    """A list whose highlighted option is the selected one; keys of the screen act on it, a click only selects."""

    BINDING_GROUP_TITLE = "Lists"
    DEFAULT_CSS = """
    AdviceList {
        height: auto;
        background: $background;
        scrollbar-size-vertical: 1;
        &:focus { background-tint: $background 0%; }
        & > .option-list--option-disabled { color: $primary; text-style: bold; }
    }
    """

    @property
    def highlighted_id(self) -> str:
        """The id of the highlighted option; empty if there is none."""
        return "" if self.highlighted is None else self.get_option_at_index(self.highlighted).id or ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys of pages to the evidence beside the list."""
        del parameters
        return action != "page"

    def show(self, options: Sequence[Option], selected: str = "") -> None:
        """Show options.

        Args:
            options: The options, with ids; those that are disabled are headings.
            selected: The id of the one to highlight; by default the one that is highlighted, or else the first.
        """
        current = selected or self.highlighted_id
        with self.prevent(OptionList.OptionHighlighted):
            self.clear_options()
            self.add_options(options)
            ids = [option.id for option in options if not option.disabled]
            kept = current if current in ids else next(iter(ids), None)
            self.highlighted = None if kept is None else self.get_option_index(kept)


def keyed(names: Iterable[str], items: Iterable[_Item]) -> dict[str, _Item]:
    """Items by their names; of equal ones, the second and later ones are numbered."""
    seen: Counter[str] = Counter()
    found = {}
    for name, item in zip(names, items, strict=True):
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name} {seen[name]}"] = item
    return found
