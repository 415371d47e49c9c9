"""The screen with the operations of a run's steps, on what stands in for an engine."""

from collections.abc import Iterator
from contextlib import nullcontext
from threading import Event
from typing import Any

import pytest

from accel_engine.errors import RunError
from accel_engine.op_profile import profile_run
from accel_engine.requests.profile_plan import ProfilePhase, ProfileRequest
from accel_engine.run import diagnostics
from accel_tui.screens import job
from accel_tui.screens.profile_screen import ProfileScreen
from example_profile import PROFILE
from tui.fake_engine import FakeEngine
from tui.screens.run_app import WIDE, opened
from tui.stand_ins import hides, shows, text_of, until


@pytest.fixture
def query(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A stand-in for an engine process, which waits until it may answer, or is cancelled."""

    class Query(nullcontext[Any]):
        may_answer = Event()
        problem = ""

        def __init__(self, request: ProfileRequest) -> None:
            super().__init__(self)

        def result(self, on_part: Any, on_doing: Any = None) -> Any:
            on_part(ProfilePhase("building the model"))
            self.may_answer.wait()
            if self.problem:
                raise RunError(self.problem)
            return PROFILE

        def cancel(self) -> None:
            type(self).problem = "the engine exited"
            self.may_answer.set()

    monkeypatch.setattr(job, "EngineCall", Query)
    monkeypatch.setattr(profile_run, "require_installation", lambda: None)
    yield Query
    Query.may_answer.set()


def ended() -> FakeEngine:
    engine = FakeEngine().begin().build().train(20)
    engine.end()
    engine.close()  # as its process ends
    return engine


async def open_profile(pilot: Any) -> None:
    await pilot.press("A")
    await shows(pilot, "Profile")
    await pilot.press("F")
    await until(pilot, lambda: isinstance(pilot.app.screen, ProfileScreen), "the profile")


async def test_an_ended_run_is_profiled_and_the_profile_is_shown_again(query: Any) -> None:
    engine = ended()
    async with opened(engine.directory, WIDE) as pilot:
        await open_profile(pilot)
        await shows(pilot, "time", "enter or ctrl+s starts")
        await pilot.press("enter")
        await shows(pilot, "building the model")
        query.may_answer.set()
        await shows(pilot, "100 steps of 20.0 ms", "net/conv/Conv2D", "40% compute", "A note of the profile.", "Gaps")
        assert diagnostics.read(engine.directory).operations == PROFILE
        await pilot.press("Y")
        assert pilot.app.clipboard == f"xprof --logdir {engine.directory}/profiles"
        await pilot.press("escape")
        await hides(pilot, "net/conv/Conv2D")
        await pilot.press("F")
        await shows(pilot, "100 steps of 20.0 ms", "net/conv/Conv2D")


async def test_a_profile_can_be_ended_and_what_fails_is_said(query: Any) -> None:
    async with opened(ended().directory, WIDE) as pilot:
        await open_profile(pilot)
        await pilot.press("enter")
        await shows(pilot, "building the model")
        await pilot.press("escape")
        await shows(pilot, "End the profile?")
        await pilot.press("e")
        await shows(pilot, "Ended.")
        query.problem = "TensorFlow's profiler does not start"
        await pilot.press("s")
        await shows(pilot, "TensorFlow's profiler does not start")
        assert "net/conv" not in text_of(pilot)
