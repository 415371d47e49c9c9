"""How many damaged records of a run are left out."""

from pathlib import Path

from textual.content import Content

from accel_tui.formatting.damage import left_out
from accel_tui.run_state.state import RunState
from accel_tui.widgets.run.run_text import RunText


class DamageLine(RunText):
    """A line with the number of damaged records; hidden without any."""

    DEFAULT_CSS = """
    DamageLine {
        display: none;
        height: 1;
        padding: 0 1;
        color: $warning;
    }
    """

    def set_state(self, state: RunState) -> None:
        """Set the state; shown if records are damaged."""
        self.display = state.damaged > 0
        super().set_state(state)

    def build(self, state: RunState) -> Content:
        """The count, and the command that saves the rest."""
        return Content(left_out(state.damaged, state.info.directory if state.info else Path("RUN")))
