"""Which tabs a run has, and why one is empty."""

from accel_tui.run_state.diagnostics import DiagnosticsReading
from accel_tui.widgets.diagnostics.pages import NOTHING_LOGGED, status_text, tabs_of


def test_the_run_of_a_script_has_what_it_logged_and_says_so_if_that_is_nothing() -> None:
    reading = DiagnosticsReading(live=False, has_engine=False)

    assert tabs_of(None, has_media=False, has_engine=False) == ("logged",)
    assert status_text(reading, None, "logged").plain == NOTHING_LOGGED


def test_a_run_without_a_report_says_so_in_the_tabs_of_an_image_classifier() -> None:
    assert tabs_of(None) == ("confusion", "pictures", "layers")
    assert tabs_of(None, has_media=True) == ("logged", "layers")
