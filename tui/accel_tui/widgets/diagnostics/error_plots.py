"""Errors of reconstructions as a histogram, and of forecasts by the step ahead."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from textual.binding import BindingType
from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.run.diagnostics import ForecastReport, ReconstructionReport
from accel_engine.words import numbers
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.plot import Plot, PlotSeries
from accel_tui.widgets.diagnostics.plot_page import PlotPage


class ErrorPlots(PlotPage):
    """How large errors are; of a forecast, a plot per series."""

    BINDING_GROUP_TITLE = "Errors"
    BINDINGS: ClassVar[list[BindingType]] = []

    report: reactive[ReconstructionReport | ForecastReport | None] = reactive(None, repaint=False)
    """Report of the last validation."""

    step: reactive[int] = reactive(0, repaint=False)
    """The step of the validation."""

    def watch_report(self) -> None:
        """Show another validation."""
        self.rebuild()

    def headings(self, width: int) -> Sequence[Strip]:
        """Means over all values."""
        del width
        report = self.report
        if report is None:
            return ()
        if isinstance(report, ForecastReport):
            mae, rmse = report.mean_mae, report.mean_rmse
        else:
            mae, rmse = report.mae, report.rmse
        words = f"MAE {numbers.metric(mae)}  RMSE {numbers.metric(rmse)}"
        lines = [
            self.line(
                (words, "title"),
                (f" of {numbers.counted(report.examples, 'example')} after step {self.step:,}", "faint"),
            )
        ]
        if report.not_finite:
            lines.append(
                self.line((f"{numbers.counted(report.not_finite, 'example')} with a loss of NaN or infinity", "wrong"))
            )
        return lines

    def plots(self) -> Sequence[Plot]:
        """The histogram, or the errors by step."""
        match self.report:
            case ReconstructionReport() as report:
                bars = PlotSeries(report.error_edges.astype(np.float64), report.errors.astype(np.float64), "bars")
                return (Plot("Loss of each example", (bars,), "", None, None, "loss", "examples"),)
            case ForecastReport() as report:
                return [_by_step(report, index) for index in range(len(report.names))]
        return ()


def _by_step(report: ForecastReport, index: int) -> Plot:
    mae = report.mae[index]
    steps = np.arange(1, len(mae) + 1, dtype=np.float64)
    lines = [PlotSeries(steps, mae, name="model")]
    if report.baseline is not None:
        lines.insert(0, PlotSeries(steps, report.baseline[index], style="secondary", name="repeats the last value"))
    if len(mae) == 1:
        lines = [PlotSeries(each.x, each.y, "mark", each.style, each.name) for each in lines]
    axis = Axis(1.0, max(float(len(mae)), 2.0))
    return Plot(f"MAE of {report.names[index]}", tuple(lines), "", axis, None, "step ahead")
