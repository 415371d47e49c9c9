"""Why a tab of the Diagnostics screen is empty."""

from textual.content import Content

from accel_engine.run.diagnostics import Diagnostics, OutputReport
from accel_tui.run_state.diagnostics import DiagnosticsReading
from accel_tui.widgets.diagnostics.confused_pairs import confusion_of

NOTHING_LOGGED = "No images, texts or histograms were logged. A script logs them with a Recorder."
"""Status of the run of a script without any."""


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
