"""The pages of the Diagnostics screen: which fit a report, how they show it, and why one is empty."""

from typing import Any

from textual.content import Content
from textual.widget import Widget

from accel_engine.run.diagnostics import (
    ClassificationReport,
    CustomReport,
    Diagnostics,
    ForecastReport,
    OutputReport,
    ReconstructionReport,
    RegressionReport,
    SequenceReport,
)
from accel_tui.run_state.diagnostics import DiagnosticsReading
from accel_tui.widgets.diagnostics.class_table import ClassTable, confusion_of, names_and_figures
from accel_tui.widgets.diagnostics.confusion_matrix import ConfusionMatrix
from accel_tui.widgets.diagnostics.error_plots import ErrorPlots, RegressionPlots
from accel_tui.widgets.diagnostics.layer_list import LayerList
from accel_tui.widgets.diagnostics.logged import Logged
from accel_tui.widgets.diagnostics.samples import Samples
from accel_tui.widgets.diagnostics.score_plots import ScorePlots, scored_labels
from accel_tui.widgets.diagnostics.scroll_page import GeneratedText
from accel_tui.widgets.diagnostics.table_page import OutputList

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

LABELS = {
    "confusion": "Confusion matrix",
    "classes": "Classes",
    "scores": "Scores",
    "regression": "Regression",
    "errors": "Errors",
    "text": "Generated text",
    "pictures": "Samples",
    "outputs": "Outputs",
    "logged": "Logged",
    "layers": "Layers",
}
"""Labels of tabs by the id of their widget, in their order."""

NOTHING_LOGGED = "No images, texts or histograms were logged. A script logs them with a Recorder."
"""Status of the run of a script without any."""


def make_page(name: str) -> Widget:
    """The widget of a tab; its id is the tab's name."""
    return _PAGES[name](id=name)


def fill(page: Widget, reading: DiagnosticsReading, report: OutputReport | None) -> None:
    """Show a report on a page, whose tab fits it; or the layers, or what a script logged."""
    diagnostics = reading.diagnostics
    step = diagnostics.steps.get("validation", 0) if diagnostics else 0
    match page:
        case LayerList():
            page.report = diagnostics.layers if diagnostics else None
        case Logged():
            page.media = reading.media
        case ConfusionMatrix():
            page.step = step
            page.confusion = confusion_of(report)
        case _:
            shown: Any = page
            shown.step = step
            shown.report = report


def tabs_of(report: OutputReport | None, *, has_media: bool = False, has_engine: bool = True) -> tuple[str, ...]:
    """The ids of the tabs for a report, and for images, texts and histograms that a script logged.

    Without any of them, the tabs of an image classifier, or of what a script may log, which say why they are empty.
    """
    if not has_engine:
        return ("logged",)
    if report is None:
        return ("logged", "layers") if has_media else ("confusion", "pictures", "layers")
    fits = {
        "confusion": isinstance(report, ClassificationReport) or confusion_of(report) is not None,
        "classes": names_and_figures(report) is not None,
        "scores": bool(scored_labels(report)),
        "regression": isinstance(report, RegressionReport),
        "errors": isinstance(report, ReconstructionReport | ForecastReport),
        "text": isinstance(report, SequenceReport) and bool(report.generated),
        "pictures": not isinstance(report, CustomReport) or bool(report.worst or report.random),
        "outputs": isinstance(report, CustomReport),
        "logged": has_media,
        "layers": True,
    }
    return tuple(name for name in LABELS if fits[name])


def status_text(reading: DiagnosticsReading, report: OutputReport | None, tab: str) -> Content:
    """Text of the status line of a tab; empty where the tab has something to show."""
    diagnostics = reading.diagnostics or Diagnostics()
    if tab == "logged":
        return Content("") if reading.media else Content.styled(NOTHING_LOGGED, "$text-muted")
    if tab == "layers":
        return Content("") if diagnostics.layers else Content.styled(_empty_text("layers", reading), "$text-muted")
    if report is None:
        return Content.styled(_empty_text("validation", reading), "$text-muted")
    if tab == "confusion":
        is_empty = confusion_of(report) is None
    else:
        is_empty = tab == "outputs" or (tab == "pictures" and not (report.worst or report.random))
    return Content(report.reason if is_empty else "")


def _empty_text(what: str, reading: DiagnosticsReading) -> str:
    if what == "layers":
        unread = "Layers are listed once the first step is traced."
        return unread if reading.live else "This run did not record its layers."
    if reading.live:
        return "No validation yet. Press V to validate now, once the first step is done."
    if not reading.has_checkpoint:
        return "No validation results: the run ended before its first checkpoint."
    return "No validation results were recorded. Press V to validate the last checkpoint in the background."
