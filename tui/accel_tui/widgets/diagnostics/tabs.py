"""The tabs of the Diagnostics screen that fit the task."""

from accel_engine.run.diagnostics import (
    ClassificationReport,
    CustomReport,
    ForecastReport,
    OutputReport,
    ReconstructionReport,
    RegressionReport,
    SequenceReport,
)
from accel_tui.widgets.diagnostics.class_table import names_and_figures
from accel_tui.widgets.diagnostics.confused_pairs import confusion_of
from accel_tui.widgets.diagnostics.score_plots import scored_labels

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


def tabs_of(report: OutputReport | None, *, has_media: bool = False, has_engine: bool = True) -> tuple[str, ...]:
    """The ids of the tabs for a report, and for images, texts and histograms that a script logged.

    Without any of them, those of an image classifier, or what a script may log; they say why they are empty.
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
