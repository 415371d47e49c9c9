"""What nobody sees costs nothing: no words, no pictures, no reading."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from accel_tui.app_protocol import Screens
from accel_tui.screens import run_screen as run_screen
from accel_tui.screens.run_screen import RunScreen
from accel_tui.screens.runs_screen import RunsScreen
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.run.phase_line import PhaseLine
from accel_tui.widgets.run.run_details import RunDetails
from accel_tui.widgets.run.run_view import RunText
from tui.fake_engine import FakeEngine
from tui.stand_ins import BareApp, StubApp, begun, hides, shows, until

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    engine = FakeEngine().begin().build().train(20)
    yield engine
    engine.close()


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch, kind: type, method: str) -> Iterator[list[Any]]:
    """Who called a method meanwhile."""
    calls: list[Any] = []
    whole = getattr(kind, method)

    def call(self: Any, *arguments: Any) -> Any:
        calls.append(self)
        return whole(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(kind, method, call)
        yield calls


async def test_hidden_details_put_nothing_into_words_and_are_right_when_they_come(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with StubApp(engine.directory).run_test(size=(80, 24)) as pilot:
        await shows(pilot, "step 20/400")
        with counted(monkeypatch, RunDetails, "build") as calls:
            engine.train(20)
            await shows(pilot, "step 40/400")
            assert calls == []
            await pilot.press("i")
            await shows(pilot, "61,706 in 12 layers")
            assert calls


async def test_charts_under_the_details_draw_nothing(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    async with StubApp(engine.directory).run_test(size=(80, 24)) as pilot:
        await shows(pilot, "step 20/400")
        await pilot.press("i")
        await hides(pilot, "step 0")
        with counted(monkeypatch, Chart, "_draw_frame") as calls:
            engine.train(20)
            await shows(pilot, "step 40/400")
            assert calls == []
            await pilot.press("i")
            await until(pilot, lambda: calls, "the charts")


async def test_a_covered_run_is_looked_at_seldom_and_is_up_to_date_when_it_is_seen_again(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_screen, "COVERED_SECONDS", 3600.0)
    app = BareApp()
    async with app.run_test(size=(120, 36)) as pilot:
        app.open_screen(Screens.RUN, engine.directory)
        await shows(pilot, "step 20/400")
        screen = app.screen
        assert isinstance(screen, RunScreen)
        app.open_screen(Screens.RUNS)
        await until(pilot, lambda: isinstance(app.screen, RunsScreen), "the runs")
        with counted(monkeypatch, RunText, "build") as words, counted(monkeypatch, Chart, "_draw_frame") as pictures:
            for _ in range(5):
                before = screen._follower._latest
                engine.train(20)
                await until(pilot, lambda before=before: screen._follower._latest is not before, "news")  # type: ignore[misc]
            await pilot.pause()
            # At most the news that was on its way, and lines that tell the time.
            assert len([widget for widget in words if not isinstance(widget, PhaseLine)]) <= 10
            assert [chart for chart in pictures if chart.screen is screen] == []
            app.pop_screen()
            await shows(pilot, "step 120/400")


async def test_under_a_question_a_run_is_seen_and_goes_on(engine: FakeEngine) -> None:
    async with StubApp(engine.directory).run_test(size=(120, 36)) as pilot:
        await shows(pilot, "step 20/400")
        await pilot.press("q")
        await shows(pilot, "Quit accel-tui?")
        engine.train(20)
        await shows(pilot, "step 40/400")


async def test_a_reading_of_a_device_paints_no_whole_screen(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = StubApp(engine.directory)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "step 20/400")
        await begun(pilot)
        with counted(monkeypatch, RunScreen, "refresh") as calls:
            app.meters = {}
            await pilot.pause()
            assert calls == []
