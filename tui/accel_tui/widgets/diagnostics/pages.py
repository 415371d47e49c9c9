"""Makes the pages of the Diagnostics screen, and shows a report on them."""

from typing import Any

from textual.widget import Widget

from accel_engine.run.diagnostics import OutputReport
from accel_tui.run_state.diagnostics import DiagnosticsReading
from accel_tui.widgets.diagnostics.class_table import ClassTable
from accel_tui.widgets.diagnostics.confused_pairs import confusion_of
from accel_tui.widgets.diagnostics.confusion_matrix import ConfusionMatrix
from accel_tui.widgets.diagnostics.error_plots import ErrorPlots
from accel_tui.widgets.diagnostics.generated_text import GeneratedText
from accel_tui.widgets.diagnostics.layer_list import LayerList
from accel_tui.widgets.diagnostics.logged import Logged
from accel_tui.widgets.diagnostics.output_list import OutputList
from accel_tui.widgets.diagnostics.regression_plots import RegressionPlots
from accel_tui.widgets.diagnostics.samples import Samples
from accel_tui.widgets.diagnostics.score_plots import ScorePlots

_PAGES: dict[str, type[Widget]] = {
    "confusion": ConfusionMatrix,
    "classes": ClassTable,
    "scores": ScorePlots,
    "regression": RegressionPlots,
    "errors": ErrorPlots,
    "text": GeneratedText,
    "pictures": Samples,
    "outputs": OutputList,
    "logged": Logged,
    "layers": LayerList,
}


def make_page(name: str) -> Widget:
    """The widget of a tab; its id is the tab's name."""
    return _PAGES[name](id=name)


def fill(page: Widget, reading: DiagnosticsReading, report: OutputReport | None) -> None:
    """Show a report on a page, whose tab fits it; or the layers, or what a script logged."""
    diagnostics = reading.diagnostics
    step = diagnostics.steps.get("validation", 0) if diagnostics else 0
    match page:
        case LayerList():
            page.table = diagnostics.layers if diagnostics else None
        case Logged():
            page.media = reading.media
        case ConfusionMatrix():
            page.step = step
            page.confusion = confusion_of(report)
        case _:
            shown: Any = page
            shown.step = step
            shown.report = report
