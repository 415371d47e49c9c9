"""A chart of the series that shows the evidence of a finding."""

from textual import on

from accel_engine.advice import Finding
from accel_engine.run.store.steps import THROUGHPUT
from accel_engine.words import numbers
from accel_tui.run_state.advice import Advice, chart_name
from accel_tui.run_state.marks import with_advice
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart.chart_view import ChartSeries
from accel_tui.widgets.chart_panels.run_panels import limits_of, points_of


class EvidenceChart(Chart):
    """The whole run, with a mark where the evidence begins; hidden if no series shows it."""

    def show_finding(self, finding: Finding | None, advice: Advice | None) -> None:
        """Show the first series that a finding is seen in."""
        series, steps = "", None
        if finding and advice:
            names = [(each.series, each.steps) for each in finding.evidence if each.series]
            shown = [(chart_name(name), steps) for name, steps in names]
            series, steps = next(((name, steps) for name, steps in shown if _has_values(advice, name)), ("", None))
        self.set_class(bool(series), "-shown")
        if not (series and advice):
            return
        is_rate = series == THROUGHPUT
        self.title = series.replace("_", " ")
        self.format = numbers.compact if is_rate else numbers.metric
        self.y_limits = limits_of(series)
        self.end = advice.coverage.steps
        found = advice.curves[series]
        self.marks = with_advice({}, [steps[0]] if steps else [])
        validation = ChartSeries("validation", points=points_of(found.validation), style="secondary")
        training = ChartSeries("step", found.curve, style="success" if is_rate else "primary")
        self.mark_stale()  # the curve may be the same, with another mark
        self.refresh()
        self.series = tuple(each for each in (training, validation) if each.points or each.curve.end_step)

    @on(Chart.Pointed)
    def _show_values(self, message: Chart.Pointed) -> None:
        """Show the values at the mouse."""
        message.stop()
        self.cursor = None if message.step is None else max(0, round(message.step))


def _has_values(advice: Advice, series: str) -> bool:
    found = advice.curves.get(series)
    return found is not None and bool(found.curve.end_step or found.validation)
