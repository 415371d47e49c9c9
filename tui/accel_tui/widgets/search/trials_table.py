"""The tables of trials and of searches, and why the trial under the cursor ended early, or where it trains."""

from collections.abc import Hashable
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from accel_engine.search.trial import Trial
from accel_tui.study_state.study_list import ListedStudy
from accel_tui.study_state.trial_columns import reason_of
from accel_tui.widgets.item_table import ItemTable

_TITLE_FRAME = 4
"""Columns of a line with a title that the title cannot have."""


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


class TrialReason(Static):
    """The reason of the trial under the cursor, if the title has no room for all of it."""

    DEFAULT_CSS = """
    TrialReason { display: none; height: auto; max-height: 5; padding: 0 1; color: $text-muted; }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)

    def show(self, trial: Trial | None, table: TrialsTable) -> None:
        """Show the reason of a trial, and set the title of the table."""
        reason = reason_of(trial) if trial else ""
        title = f"trial {trial.number} {trial.state}: {reason}" if trial and reason else ""
        table.border_title = Content(title)
        self.display = table.display and cell_len(title) > self.screen.size.width - _TITLE_FRAME
        self.update(reason)
