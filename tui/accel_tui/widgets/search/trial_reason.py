"""Why a trial ended early, or where it trains: in the title of the table of trials, and all of a long reason below."""

from rich.cells import cell_len
from textual.content import Content
from textual.widgets import Static

from accel_engine.search.trial import Trial
from accel_tui.study_state.trial_columns import reason_of
from accel_tui.widgets.search.trials_table import TrialsTable

TITLE_FRAME = 4
"""Columns of a line with a title that the title cannot have."""


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
        self.display = table.display and cell_len(title) > self.screen.size.width - TITLE_FRAME
        self.update(reason)
