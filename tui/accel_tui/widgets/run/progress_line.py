"""How much of the run is done, and how long the rest will take."""

from accel_tui.formatting import figures
from accel_tui.run.state import RunState
from accel_tui.widgets.run.run_line import RunLine
from accel_tui.widgets.styled_text import Piece


class ProgressLine(RunLine):
    """One line: a bar over all epochs, the share that is done, and the time to the end."""

    def pieces(self, state: RunState) -> list[Piece]:
        """The bar and its figures; an empty bar before the number of steps is known."""
        share = state.step / state.total_steps if state.total_steps else 0.0
        # Never 100 % before the last step.
        tail = f" {int(share * 100):3}%"
        if state.live and (elapsed := state.elapsed(state.now)) is not None:
            tail += f"   {figures.duration(elapsed)} elapsed"
            if (left := state.remaining) is not None:
                tail += f"   {figures.duration(left)} left"
        width = max(0, self.width - len(tail))
        halves = int(share * width * 2)
        style = "$warning" if state.paused else "$error" if state.lost else "$primary"
        done = "━" * (halves // 2) + "╸" * (halves % 2)
        return [(done, style), ("─" * (width - len(done)), "$foreground 20%"), (tail, "")]
