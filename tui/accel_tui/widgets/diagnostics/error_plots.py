"""Errors of regressions, reconstructions and forecasts, as plots."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.run.diagnostics import ForecastReport, ReconstructionReport, RegressionReport
from accel_engine.words import numbers
from accel_tui.formatting.text import fit
from accel_tui.widgets.chart.axes import Axis, significant
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
        self.rebuild()

    def headings(self, width: int) -> Sequence[Strip]:
        """Means over all values."""
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


_ROOM = 16  # lines below which only the figures of the shown number are listed


class RegressionPlots(PlotPage):
    """The figures of all numbers, and the plots of one."""

    BINDING_GROUP_TITLE = "Regression"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "right,full_stop",
            "unit(1)",
            "Next number",
            id="regression.next",
            tooltip="Show the next number of the output",
        ),
        Binding("left,comma", "unit(-1)", id="regression.previous", tooltip="Show the previous number of the output"),
    ]

    report: reactive[RegressionReport | None] = reactive(None, repaint=False)
    """Report of the last validation."""

    step: reactive[int] = reactive(0, repaint=False)
    """The step of the validation."""

    unit: reactive[int] = reactive(0, repaint=False)
    """Index of the number of the output."""

    def watch_report(self) -> None:
        self.refresh_bindings()
        self.rebuild()

    watch_unit = watch_report

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the next number only of several."""
        return action != "unit" or (self.report is not None and len(self.report.names) > 1)

    def action_unit(self, units: int) -> None:
        if self.report and self.report.names:
            self.unit = (self._shown + units) % len(self.report.names)

    @property
    def _shown(self) -> int:
        return min(self.unit, len(self.report.names) - 1) if self.report else 0

    def headings(self, width: int) -> Sequence[Strip]:
        """Means over all numbers, and the figures of each."""
        report = self.report
        if report is None or not report.names:
            return ()
        several = len(report.names) > 1
        lines = []
        if several:
            more = f", the first {len(report.names)} below" if report.units > len(report.names) else ""
            words = (
                f"MAE {numbers.metric(report.mean_mae)}  RMSE {numbers.metric(report.mean_rmse)} over "
                f"{numbers.counted(report.units, 'number')}{more}"
            )
            lines.append(self.line((words, "title"), (f" after step {self.step:,}", "faint")))
        shown = range(len(report.names)) if self.size.height - len(report.names) >= _ROOM else [self._shown]
        name_width = min(max(map(cell_len, report.names)), 24) if several else 0
        for index in shown:
            name = fit(report.names[index], name_width) + "  " if several else ""
            figures = (
                f"MAE {numbers.metric(report.mae[index]):<8} RMSE {numbers.metric(report.rmse[index]):<8} "
                f"R² {numbers.metric(report.r2[index])}"
            )
            here = several and index == self._shown
            after = "" if several else f" after step {self.step:,}"
            lines.append(
                self.line(
                    ("► " if here else "  " if several else "", "head"),
                    (name, "head" if here else "faint"),
                    (figures, "title" if not several else ""),
                    (after, "faint"),
                )
            )
        if report.not_finite:
            words = f"{numbers.counted(report.not_finite, 'example')} with NaN or infinity left out"
            lines.append(self.line((words, "wrong")))
        return lines

    def plots(self) -> Sequence[Plot]:
        """Predicted over true, and residuals."""
        report = self.report
        if report is None or not report.names:
            return ()
        index = self._shown
        points = np.asarray(report.points[index], np.float64)
        low, high = (float(points.min()), float(points.max())) if points.size else (0.0, 1.0)
        ends = np.array([low, high])
        diagonal = PlotSeries(ends, ends, style="axis")
        across = Axis(low, high) if high > low else None
        scatter = PlotSeries(points[:, 0], points[:, 1], "dots")
        edges = np.asarray(report.residual_edges[index], np.float64)
        bars = PlotSeries(edges, report.residuals[index].astype(np.float64), "bars")
        zero = PlotSeries(np.array([0.0]), np.array([]), "rule", "axis")
        spread = f"RMSE {significant(float(report.rmse[index]))}"
        return (
            Plot("Predicted over true", (diagonal, scatter), f"{numbers.counted(len(points), 'point')}", across),
            Plot("Residuals", (zero, bars), spread, None, None, "predicted - true", "examples"),
        )
