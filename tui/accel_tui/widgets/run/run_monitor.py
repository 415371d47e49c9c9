"""The latest value of the metric that counts, in large digits."""

from textual import getters
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Digits, Static

from accel_engine.plan.monitor import is_better_lower
from accel_engine.run.history.history import Points
from accel_engine.words import numbers
from accel_tui.run_state.state import RunState
from accel_tui.widgets.chart.draw_values import BEST
from accel_tui.widgets.run.run_outcome import is_no_better
from accel_tui.widgets.run.run_view import RunView
from accel_tui.widgets.styled_text import show_text


class RunMonitor(RunView, Horizontal):
    """The latest value of the metric that counts, how it has changed, and the best one; hidden while there is none."""

    DEFAULT_CSS = """
    RunMonitor {
        layout: horizontal;
        display: none;
        height: auto;
        margin-bottom: 1;
        &.-known { display: block; }
        Digits { width: auto; margin-right: 2; color: $metric; text-style: bold; }
        Digits.-loss { color: $loss; }
        Digits.-no-better { color: $warning; }
        Static { width: 1fr; height: auto; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    _digits = getters.query_one(Digits)
    _caption = getters.query_one(Static)
    _shown: tuple[str, Points] = ("", ())

    def compose(self) -> ComposeResult:
        """Compose the number and the lines beside it."""
        yield Digits("")
        yield Static()

    def update_view(self) -> None:
        """Show another value."""
        state, points = self.state, self.state.monitored
        self.set_class(bool(points), "-known")
        if not points or not self.is_mounted:
            return
        self._digits.set_class(state.has_ended and is_no_better(state), "-no-better")
        if (state.monitor, points) == self._shown:
            return
        self._shown = state.monitor, points
        self._digits.update(numbers.metric(points[-1][1]).upper())
        self._digits.set_class(bool(is_better_lower(state.monitor)), "-loss")
        show_text(self._caption, caption(state))


def caption(state: RunState) -> Content:
    """The name of the metric, its change since the value before, and the best value."""
    points = state.monitored
    lines = [Content.styled(state.monitor.replace("_", " "), "$foreground")]
    if len(points) > 1:
        change = points[-1][1] - points[-2][1]
        changed = f"{'▲' if change > 0 else '▼'} {numbers.metric(abs(change))}" if change else "unchanged"
        lines.append(Content(f"{changed} since {points[-2][0]:,}"))
    if state.best:
        lines.append(Content(f"best {numbers.metric(state.best[1])} {BEST} {state.best[0]:,}"))
    return Content("\n").join(lines)
