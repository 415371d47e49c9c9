"""The header of the Search screen."""

from dataclasses import replace

from textual.app import App, ComposeResult

from accel_tui.study_state.state import StudyState
from accel_tui.widgets.search.trials_table import SearchHeader
from example_study import DEFINITION
from tui.stand_ins import text_of

REASON = "no trial reports validation_foo; there are loss, validation_loss: choose one of them"


class HeaderApp(App[None]):
    def compose(self) -> ComposeResult:
        yield SearchHeader()


async def test_a_long_reason_without_a_best_trial_has_two_lines() -> None:
    async with HeaderApp().run_test(size=(80, 24)) as pilot:
        failed = replace(StudyState("s", DEFINITION), ended={"outcome": "failed", "reason": REASON})
        pilot.app.query_one(SearchHeader).show(failed, "")
        await pilot.pause()
        first, second = text_of(pilot).splitlines()[:2]
        assert first.lstrip().startswith("✗ failed  no trial reports validation_foo")
        assert "choose one of them" in f"{first.rstrip()} {second.strip()}"
        assert "trials" in second
