"""The tables of trials and of searches, and why the trial under the cursor ended early, or where it trains."""

from collections.abc import Hashable

from rich.cells import cell_len
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from accel_engine.search.trial import Trial
from accel_tui.formatting.table_columns import SortOrder
from accel_tui.study_state.study_list import ListedStudy
from accel_tui.study_state.trial_columns import reason_of
from accel_tui.widgets.table import Table

_TITLE_FRAME = 4
"""Columns of a line with a title that the title cannot have."""


class TrialsTable(Table[Trial]):
    """The trials of a search."""

    BINDING_GROUP_TITLE = "Trials"

    order: reactive[SortOrder] = reactive(SortOrder("trial", reversed=True), repaint=False, init=False)

    def key_of(self, row: Trial) -> Hashable:
        """The number of a trial."""
        return row.number


class StudiesTable(Table[ListedStudy]):
    """The searches of this machine."""

    BINDING_GROUP_TITLE = "Searches"

    order: reactive[SortOrder] = reactive(SortOrder("created"), repaint=False, init=False)

    def key_of(self, row: ListedStudy) -> Hashable:
        """The directory of a search."""
        return row.directory


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
