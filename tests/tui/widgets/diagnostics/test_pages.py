"""Which tabs a run has, and why one is empty."""

from dataclasses import replace

import pytest

from accel_engine.run.diagnostics import Diagnostics
from accel_tui.run_state.diagnostics import DiagnosticsReading
from accel_tui.widgets.diagnostics.pages import NOTHING_LOGGED, fill, make_page, status_text, tabs_of
from tui.example_reports import REPORTS
from tui.stand_ins import BareApp, shows


def test_the_run_of_a_script_has_what_it_logged_and_says_so_if_that_is_nothing() -> None:
    reading = DiagnosticsReading(live=False, has_engine=False)

    assert tabs_of(None, has_media=False, has_engine=False) == ("logged",)
    assert status_text(reading, None, "logged").plain == NOTHING_LOGGED


def test_a_run_without_a_report_says_so_in_the_tabs_of_an_image_classifier() -> None:
    assert tabs_of(None) == ("confusion", "pictures", "layers")
    assert tabs_of(None, has_media=True) == ("logged", "layers")


@pytest.mark.parametrize("name", REPORTS)
async def test_pages_show_the_step_of_a_later_validation_with_the_same_result(name: str) -> None:
    async with BareApp().run_test() as pilot:
        for tab in set(tabs_of(REPORTS[name])) - {"layers"}:
            await pilot.app.screen.mount(page := make_page(tab))
            for step in (10, 20):
                reading = DiagnosticsReading(diagnostics=Diagnostics(steps={"validation": step}))
                fill(page, reading, replace(REPORTS[name]))
                await shows(pilot, f"after step {step}")
            await page.remove()
