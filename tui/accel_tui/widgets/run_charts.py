"""The curves of a run, one chart below the other, on one axis of steps."""

from textual import getters
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import reactive

from accel_tui import figures
from accel_tui.curve import Curve
from accel_tui.state import RunState
from accel_tui.widgets.chart import Chart, Series


class RunCharts(Vertical):
    """The loss, the second series where there is one (the accuracy, mostly), and the throughput."""

    state: reactive[RunState] = reactive(RunState(), repaint=False, init=False)
    """What is drawn; bind it with ``data_bind``."""

    _loss = getters.query_one("#loss", Chart)
    _second = getters.query_one("#second", Chart)
    _throughput = getters.query_one("#throughput", Chart)

    def compose(self) -> ComposeResult:
        """All charts; the sheet of the screen says for which there is room."""
        yield Chart("loss", id="loss")
        yield Chart("accuracy", id="second")
        yield Chart("steps/s", id="throughput")

    def on_mount(self) -> None:
        """Write rates as they are written elsewhere."""
        self._throughput.format = figures.compact

    def watch_state(self, state: RunState) -> None:
        """Draw what is new."""
        names = list(state.built.series if state.built else state.curves)[:2] or ["loss", "accuracy"]
        for chart, name in zip((self._loss, self._second), names, strict=False):
            chart.title = name
            # A validation after N steps is of the weights that step N - 1 left, steps being counted from 0.
            points = tuple((step - 1, value) for step, value in state.validation.get(name, ()))
            series = (Series("training", state.curves.get(name, Curve())),)
            chart.series = (*series, Series("validation", points=points, style="secondary")) if points else series
            chart.end = state.total_steps
        for chart in (self._loss, self._second, self._throughput):
            chart.empty = "no step was taken" if state.over else "waiting for the first step"
        self._second.set_class(len(names) < 2, "-absent")
        self._throughput.series = (Series("steps/s", state.throughput, style="success"),)
        self._throughput.end = state.total_steps
