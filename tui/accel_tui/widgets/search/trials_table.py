"""The tables of trials and of searches."""

from collections.abc import Hashable
from typing import ClassVar

from textual.binding import Binding, BindingType

from accel_engine.search.trial import Trial
from accel_tui.study_state.study_list import ListedStudy
from accel_tui.widgets.item_table import ItemTable


class TrialsTable(ItemTable[Trial]):
    """The trials of a search."""

    BINDING_GROUP_TITLE = "Trials"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "select", "Select", id="item-table.select", tooltip="Select the trial, or deselect it"),
    ]

    def key_of(self, item: Trial) -> Hashable:
        """The number of a trial."""
        return item.number


class StudiesTable(ItemTable[ListedStudy]):
    """The searches of this machine."""

    BINDING_GROUP_TITLE = "Searches"

    def key_of(self, item: ListedStudy) -> Hashable:
        """The directory of a search."""
        return item.directory
