"""The latest value of the metric that tells most, in large digits."""

from textual import getters
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Digits, Static

from accel_engine.run.history.history import Points
from accel_engine.run.store.series_names import VALIDATION_PREFIX, is_loss
from accel_engine.words import numbers
from accel_tui.run_list.groups import series_to_read, short_metric_name
from accel_tui.run_state.state import RunState
from accel_tui.widgets.chart.draw_values import BEST
from accel_tui.widgets.run.run_outcome import is_no_better
from accel_tui.widgets.run.run_view import RunView
from accel_tui.widgets.styled_text import show_text


class RunMonitor(RunView, Horizontal):
    """The latest value of the metric that tells most, and how it has changed; the best value of the one that counts.

    It is hidden while there is none.
    """

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
    _shown: tuple[str, Points, Points] = ("", (), ())

    def compose(self) -> ComposeResult:
        """Compose the number and the lines beside it."""
        yield Digits("")
        yield Static()

    def update_view(self) -> None:
        """Show another value."""
        state, series = self.state, _series(self.state)
        points = state.points_of(series)
        self.set_class(bool(points), "-known")
        if not points or not self.is_mounted:
            return
        self._digits.set_class(state.has_ended and is_no_better(state), "-no-better")
        if (series, points, state.monitored) == self._shown:
            return
        self._shown = series, points, state.monitored
        self._digits.update(numbers.metric(points[-1][1]).upper())
        self._digits.set_class(is_loss(series.removeprefix(VALIDATION_PREFIX)), "-loss")
        show_text(self._caption, caption(state))


def _series(state: RunState) -> str:
    """The series of the large number."""
    return series_to_read(state.monitor, {*state.curves, *(VALIDATION_PREFIX + name for name in state.validation)})


def caption(state: RunState) -> Content:
    """The name of the metric, its change since the value before, and the best value of the one that counts."""
    series = _series(state)
    points, name = state.points_of(series), state.monitor.replace("_", " ")
    best = "best"
    if series != state.monitor:
        loss = short_metric_name(state.monitor.removeprefix(VALIDATION_PREFIX))
        name = short_metric_name(series)
        if state.monitored:
            name, best = f"{name}, {loss} {numbers.metric(state.monitored[-1][1])}", f"best {loss}"
    lines = [Content.styled(name, "$foreground")]
    if len(points) > 1:
        change = points[-1][1] - points[-2][1]
        changed = f"{'▲' if change > 0 else '▼'} {numbers.metric(abs(change))}" if change else "unchanged"
        lines.append(Content(f"{changed} since {points[-2][0]:,}"))
    if state.best:
        lines.append(Content(f"{best} {numbers.metric(state.best[1])} {BEST} {state.best[0]:,}"))
    return Content("\n").join(lines)
