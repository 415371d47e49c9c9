"""A run that is deleted, moved or replaced while its screen shows it."""

import shutil

import pytest

from accel_engine.errors import RunError
from accel_engine.events import Outcome
from accel_tui.run_state.state import RunState
from tui.fake_engine import FakeEngine
from tui.screens.run_app import WIDE, opened, screen_of
from tui.stand_ins import shows, text_of

pytestmark = pytest.mark.usefixtures("hurried")


def state_of(pilot) -> RunState:
    return screen_of(pilot).state


async def test_a_deleted_live_run_says_why_it_ended(engine: FakeEngine) -> None:
    engine.train(20)
    async with opened(engine.directory, WIDE) as pilot:
        await shows(pilot, "training", "p Pause")
        shutil.rmtree(engine.directory)
        with pytest.raises(RunError, match="was deleted or moved"):
            engine.writer.heartbeat()
        await shows(pilot, "Failed after 20 steps", "if it was moved")
        lines = (line.strip(" ▌") for line in text_of(pilot).splitlines())
        assert "was deleted or moved" in " ".join(lines)  # wherever the line breaks after the directory
        assert "R Continue" not in text_of(pilot)
        assert state_of(pilot).is_directory_lost


async def test_an_ended_run_that_is_deleted_is_not_offered_to_be_continued(engine: FakeEngine) -> None:
    engine.train(20)
    engine.save()
    engine.end(Outcome.STOPPED)
    async with opened(engine.directory, WIDE) as pilot:
        await shows(pilot, "R Continue")
        shutil.rmtree(engine.directory)
        await shows(pilot, "Its directory was deleted, moved or replaced: it cannot be continued.")
        assert "R Continue" not in text_of(pilot)


async def test_a_run_that_is_deleted_as_it_is_opened_has_no_state(engine: FakeEngine) -> None:
    shutil.rmtree(engine.directory)
    async with opened(engine.directory, WIDE) as pilot:
        await shows(pilot, "✗ cannot be read", f"no run in {engine.directory}", "no steps recorded")
        assert "opening" not in text_of(pilot)
