"""The window's size changes while a run is shown: nothing breaks, and what there is room for is there."""

from collections.abc import Iterator

import pytest

from accel_tui.app_protocol import Screens
from accel_tui.screens.new_run_screen import NewRunScreen
from accel_tui.screens.run_screen import RunScreen
from accel_tui.screens.too_small_screen import TooSmallScreen
from accel_tui.widgets.chart.chart import Chart
from tui.fake_engine import FakeEngine
from tui.stand_ins import StubApp, shows, text_of, until

SIZES = [(80, 24), (300, 80), (81, 25), (60, 16), (200, 16), (60, 80), (104, 34), (103, 33), (160, 50), (80, 24)]


pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    """A run that trains."""
    engine = FakeEngine()
    engine.begin().build().train(200)
    yield engine
    engine.close()


def right_of_screen(app: StubApp) -> list[object]:
    """The widgets that are wider than the screen, or lie beyond it, though nothing scrolls there."""
    screen = app.screen
    return [
        widget
        for widget in (screen, *screen.children)
        if widget.display and not screen.size.region.contains_region(widget.region)
    ]


async def test_a_run_goes_on_at_every_size(engine: FakeEngine) -> None:
    app = StubApp(engine.directory)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shows(pilot, "epoch", "loss")
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            engine.train(3)
            await until(pilot, lambda size=(width, height): app.screen.size == size, "the size")  # type: ignore[misc]
            await shows(pilot, "loss", "training")
            assert right_of_screen(app) == []
            lines = text_of(pilot).splitlines()
            assert (len(lines), max(map(len, lines))) == (height, width)
            assert not app._notifications
        loss = app.screen.query_one("#loss", Chart)
        assert loss.size.width > 40


async def test_a_wide_window_is_used_whole(engine: FakeEngine) -> None:
    app = StubApp(engine.directory)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "epoch", "loss")
        await pilot.resize_terminal(300, 80)
        await until(pilot, lambda: app.screen.size == (300, 80), "the size")
        engine.train(3)
        await shows(pilot, "steps/s")
        charts = [chart for chart in app.screen.query(Chart) if chart.display and chart.size.height > 1]
        assert sum(chart.size.width * chart.size.height for chart in charts) > 300 * 80 / 2


async def test_below_the_least_size_it_is_told_and_all_comes_back(engine: FakeEngine) -> None:
    app = StubApp(engine.directory)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "epoch", "loss")
        shown = app.screen
        for width, height in [(59, 24), (20, 5), (1, 1), (80, 15)]:
            await pilot.resize_terminal(width, height)
            await until(pilot, lambda: isinstance(app.screen, TooSmallScreen), "the word that it is too small")
            engine.train(2)
        await shows(pilot, "The terminal is 80x15", "at least 60x16")
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: app.screen is shown, "the run")
        await shows(pilot, "epoch", "loss")
        assert len(app.screen_stack) == 1


async def test_the_form_keeps_its_start_in_sight_at_every_size(engine: FakeEngine) -> None:
    app = StubApp()  # there is a run of late
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "Start")
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            await until(pilot, lambda size=(width, height): app.screen.size == size, "the size")  # type: ignore[misc]
            await until(
                pilot,
                lambda: app.screen.size.region.contains_region(app.screen.query_one("#start").region),
                "Start",
            )
            assert right_of_screen(app) == []


@pytest.mark.parametrize("size", [(1, 1), (2, 30)])
async def test_the_smallest_windows_have_no_scrollbars_which_come_and_go_with_each_layout(
    size: tuple[int, int],
) -> None:
    app = StubApp()
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, TooSmallScreen), "too small a window")
        assert app.screen.scrollbars_enabled == (False, False)
        assert not app.screen._layout_required


async def test_what_is_opened_in_too_small_a_window_is_left_in_a_larger_one(engine: FakeEngine) -> None:
    app = StubApp()
    async with app.run_test(size=(30, 5)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, TooSmallScreen), "too small a window")
        app.open_screen(Screens.RUN, engine.directory)  # as when an engine has started meanwhile
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        await pilot.resize_terminal(80, 24)
        app.screen.dismiss()
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen), "the form")
