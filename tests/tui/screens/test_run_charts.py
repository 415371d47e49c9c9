"""The charts of a run, looked at with keys and the mouse."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import numpy as np
import pytest
from textual import events
from textual.pilot import Pilot

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.events import LearningRateChanged, Validated
from accel_engine.plan import Plan
from accel_engine.run.store.series_names import LEARNING_RATE
from accel_engine.run.store.steps import THROUGHPUT
from accel_tui.run_state.step_window import StepWindow
from accel_tui.screens.run_screen import RunScreen
from accel_tui.screens.select_charts_screen import SelectChartsScreen
from accel_tui.widgets.chart.background import plot_region
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart.chart_view import ChartOptions
from accel_tui.widgets.chart_panels.chart_grid import ChartBar
from accel_tui.widgets.chart_panels.run_charts import RunCharts
from example_events import model_built
from tui.fake_engine import FakeEngine
from tui.stand_ins import StubApp, hides, shows, text_of, until

SMALL, WIDE = (80, 24), (120, 40)


pytestmark = pytest.mark.usefixtures("hurried")


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    """A run whose loss is the number of its step."""
    one = FakeEngine(Plan(epochs=20)).begin().build()
    one.sample(37.0)
    one.chunk(np.arange(2000), np.arange(2000) / 2000, seconds=2.0, at=time.time() + 1)
    yield one
    one.close()


def charts_of(pilot: Pilot[None]) -> RunCharts:
    return pilot.app.screen_stack[-1].query_one(RunCharts)


def chart_of(pilot: Pilot[None], id_: str = "loss") -> Chart:
    return charts_of(pilot).query_one(f"#{id_}", Chart)


def x_of(chart: Chart, share: float) -> int:
    """A column of a chart, by its share of the plot's width."""
    assert chart._view
    plot = plot_region(chart._view)
    return plot.x + int(share * plot.width)


async def wheel(
    pilot: Pilot[None], kind: type[events.MouseEvent], chart: Chart, x: int, *, shift: bool = False
) -> None:
    await pilot._post_mouse_events([kind], chart, offset=(x, 3), shift=shift)


async def test_the_mouse_reads_all_charts_at_its_step_and_repaints_no_more_than_that(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with StubApp(engine.directory).run_test(size=WIDE) as pilot:
        await shows(pilot, "step 2,000", "accuracy ── step 0.9995")
        loss = chart_of(pilot)
        await pilot.hover(loss, (x_of(loss, 0.5), 3))
        await until(pilot, lambda: charts_of(pilot).cursor, "the cursor")
        step = charts_of(pilot).cursor.step  # type: ignore[union-attr]
        assert step == pytest.approx(1000, abs=30)
        await shows(
            pilot, f"loss ─ {step:.0f}", f"accuracy ─ {step / 2000:.4f}"[:15], f"step {step:,}, epoch {step // 100 + 1}"
        )
        pictures: list[object] = []
        for kind, method in ((Chart, "_draw_frame"), (RunScreen, "refresh")):
            whole = getattr(kind, method)

            def call(widget: object, *arguments: object, whole: Callable[..., object] = whole) -> object:
                pictures.append(widget)
                return whole(widget, *arguments)

            monkeypatch.setattr(kind, method, call)
        await pilot.hover(loss, (x_of(loss, 0.25), 3))
        await until(pilot, lambda: charts_of(pilot).cursor.step < 600, "the cursor to move")  # type: ignore[union-attr]
        await pilot.hover(ChartBar, (0, 0))
        await until(pilot, lambda: charts_of(pilot).cursor is None, "the end of the cursor")
        await shows(pilot, "loss ── step 1999")
        assert pictures == []
        monkeypatch.undo()


async def test_charts_begin_at_one_place_however_long_their_labels_are() -> None:
    engine = FakeEngine(Plan(epochs=20)).begin().build()
    engine.chunk(np.linspace(0.001, 0.0012, 2000), np.arange(2000) / 2000, seconds=2.0)
    async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
        await shows(pilot, "step 2,000", "0.0011 ┤", "0.5 ┤")
        loss, second = chart_of(pilot), chart_of(pilot, "second")
        assert (loss.label_width, second.label_width) == (6, 3)
        await until(pilot, lambda: x_of(loss, 0) == x_of(second, 0) == 8, "one place")
        await pilot.press("f", "down")
        await until(pilot, lambda: not loss.display and x_of(second, 0) == 6, "the room that the other had")
        await pilot.press("f")
        await until(pilot, lambda: loss.display and x_of(loss, 0) == x_of(second, 0) == 8, "one place again")
    engine.close()


async def test_a_chart_that_is_made_later_is_read_at_the_cursor_too(engine: FakeEngine) -> None:
    async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
        await shows(pilot, "step 2,000")
        await pilot.press("v", "f", "down", "down")
        await shows(pilot, "steps/s ─ ")
        assert chart_of(pilot, "throughput").cursor == charts_of(pilot).cursor.step  # type: ignore[union-attr]


async def test_of_a_part_only_those_series_are_read_that_are_shown(engine: FakeEngine) -> None:
    async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
        await shows(pilot, "step 2,000")
        charts = charts_of(pilot)
        for _ in range(12):  # more buckets than dots, so that there is something to be read
            engine.chunk(np.full(2000, 0.5), np.zeros(2000), seconds=1.0)
        await shows(pilot, "step 26,000")
        await pilot.press(*["plus"] * 6)
        await until(pilot, lambda: charts.visible_steps and charts.visible_steps.series == {"loss", "accuracy"}, "both")
        await until(
            pilot, lambda: charts.state.visible_series.keys() == {"loss", "accuracy", THROUGHPUT}, "what was read"
        )
        await pilot.press("f")
        await until(pilot, lambda: charts.visible_steps and charts.visible_steps.series == {"loss"}, "one")
        await until(pilot, lambda: charts.state.visible_series.keys() == {"loss", THROUGHPUT}, "what was read")
        await pilot.press("0")
        await until(pilot, lambda: not charts.state.visible_series, "nothing")


async def test_a_click_leaves_the_cursor_there_until_another_or_escape(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StubApp, "CLICK_CHAIN_TIME_THRESHOLD", 0.0)  # no two of these are a double click
    async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
        await shows(pilot, "step 2,000")
        loss, charts = chart_of(pilot), charts_of(pilot)
        for end in ("click", "escape"):
            await pilot.click(loss, (x_of(loss, 0.5), 3))
            await until(pilot, lambda: charts.cursor and charts.cursor.is_pinned, "the cursor")
            step = charts.cursor.step  # type: ignore[union-attr]
            await pilot.hover(loss, (x_of(loss, 0.1), 3))
            await pilot.pause()
            assert charts.cursor.step == step  # type: ignore[union-attr]
            if end == "escape":
                await pilot.press("escape")
            else:
                await pilot.click(loss, (x_of(loss, 0.5), 3))
            await until(pilot, lambda: charts.cursor is None or not charts.cursor.is_pinned, "the end of the cursor")
        assert isinstance(pilot.app.screen, RunScreen)


async def test_keys_move_the_cursor_and_the_window_with_it(engine: FakeEngine) -> None:
    async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
        await shows(pilot, "step 2,000")
        charts = charts_of(pilot)
        await shows(pilot, "esc Back  q Quit")
        await pilot.press("v")
        assert charts.cursor is not None
        assert (charts.cursor.step, charts.cursor.is_pinned) == (1000, True)
        await shows(pilot, "esc Back  q Quit")  # which takes the cursor back
        await pilot.press("right")
        near = charts.cursor.step - 1000
        await pilot.press("shift+right")
        assert charts.cursor.step == 1000 + 11 * near
        for _ in range(7):
            await pilot.press("plus")  # around the cursor
        low, high = charts.window.bounds(2000) or (0, 0)
        assert low < charts.cursor.step < high <= low + 20
        for _ in range(2):
            await pilot.press("shift+left")
        low, high = charts.window.bounds(2000) or (0, 0)
        assert low == charts.cursor.step < 1000 + 11 * near
        await shows(pilot, f"loss ─ {charts.cursor.step:.0f}")
        await pilot.press("v")
        assert charts.cursor is None
        before = charts.window
        await pilot.press("left")
        assert charts.window != before


async def test_the_wheel_zooms_around_the_mouse_and_scrolls_with_shift(engine: FakeEngine) -> None:
    async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
        await shows(pilot, "step 2,000", "0  whole run")
        loss, charts = chart_of(pilot), charts_of(pilot)
        at = x_of(loss, 0.5)
        for _ in range(5):
            await wheel(pilot, events.MouseScrollUp, loss, at)
            await pilot.pause()
        low, high = charts.window.bounds(2000) or (0, 0)
        assert high - low == pytest.approx(2000 * 0.8**5, abs=5)
        assert (low + high) / 2 == pytest.approx(1000, abs=40)
        await wheel(pilot, events.MouseScrollDown, loss, at, shift=True)
        await until(pilot, lambda: (charts.window.first or 0) > low, "later steps")
        await wheel(pilot, events.MouseScrollLeft, loss, at)
        await until(pilot, lambda: charts.window.first == low, "earlier steps")
        for _ in range(6):
            await wheel(pilot, events.MouseScrollDown, loss, at)
        await until(pilot, lambda: charts.window == StepWindow(), "the whole run")


async def test_dragging_pulls_the_steps_along(engine: FakeEngine) -> None:
    async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
        await shows(pilot, "step 2,000")
        loss, charts = chart_of(pilot), charts_of(pilot)
        charts.window = StepWindow(400, 1000)
        await pilot.pause()
        await pilot.mouse_down(loss, (x_of(loss, 0.25), 3))
        await pilot.hover(loss, (x_of(loss, 0.5), 3))
        await pilot.hover(loss, (x_of(loss, 0.75), 3))
        await pilot.mouse_up(loss, (x_of(loss, 0.75), 3))
        await until(pilot, lambda: charts.window.first == pytest.approx(800, abs=8), "earlier steps")
        assert charts.cursor is None or not charts.cursor.is_pinned


async def test_a_chart_fills_the_screen_by_key_and_by_double_click(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StubApp, "CLICK_CHAIN_TIME_THRESHOLD", 60.0)  # however slow the machine
    async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
        await shows(pilot, "step 2,000", "▸ loss")
        await pilot.press("down")
        await shows(pilot, "▸ accuracy")
        await pilot.press("f")
        await hides(pilot, "loss ──")
        second = chart_of(pilot, "second")
        await until(pilot, lambda: second.size.height >= 20, "all the room")
        await pilot.press("down")
        await shows(pilot, "steps/s ──")  # which has no room beside the others
        await pilot.press("up", "escape")
        await shows(pilot, "▸ accuracy", "loss ──")
        loss = chart_of(pilot)
        await pilot.double_click(loss, (x_of(loss, 0.5), 3))
        await until(pilot, lambda: loss.size.height >= 20, "all the room")
        assert charts_of(pilot).cursor is None or not charts_of(pilot).cursor.is_pinned  # type: ignore[union-attr]
        await pilot.click(ChartBar, (text_of(pilot).splitlines()[1].index("full") - 1, 0))
        await shows(pilot, "accuracy ──")
        assert isinstance(pilot.app.screen, RunScreen)


@pytest.mark.parametrize(("size", "number"), [(SMALL, 2), (WIDE, 4), ((200, 50), 6), ((300, 80), 6)])
async def test_as_many_charts_are_shown_as_there_is_room_for(
    engine: FakeEngine, size: tuple[int, int], number: int
) -> None:
    async with StubApp(engine.directory).run_test(size=size) as pilot:
        await shows(pilot, f"{number} of 6 charts")
        shown = [chart for chart in charts_of(pilot).query(Chart) if chart.display]
        await until(pilot, lambda: all(chart.size.height >= 6 for chart in shown), "the charts")
        assert len(shown) == number


async def test_charts_are_chosen_and_what_is_read_of_devices_is_shown(engine: FakeEngine) -> None:
    async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
        await shows(pilot, "2 of 6 charts")
        assert not charts_of(pilot).state.device_curves
        await pilot.press("a")
        await shows(pilot, "[x] loss", "[ ] utilization %")
        applies = pilot.app.screen.active_bindings["escape"].binding
        assert (applies.description, applies.tooltip) == ("Done", "Show the selected charts")
        await pilot.press("space", "down", "space", "down", "down", "space", "escape")
        await shows(pilot, "1 of 6 charts", "utilization % ── 37", "100 ┤")
        now = time.time()
        engine.writer.write_samples([Sample(now + 3.5, "cpu:0", {"utilization": Reading(80.0, "%")})])
        engine.chunk(np.arange(2000, 2010), seconds=1.0, at=now + 3)
        await shows(pilot, "utilization % ── 80")
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, SelectChartsScreen), "the list")
        await shows(pilot, "f6: as many as fit")
        await pilot.press("f6")
        await shows(pilot, "2 of 6 charts")
        await until(pilot, lambda: not charts_of(pilot).state.device_curves, "nothing to be read")


async def test_what_is_read_of_devices_stays_while_a_chart_fills_the_screen(engine: FakeEngine) -> None:
    async with StubApp(engine.directory).run_test(size=(200, 50)) as pilot:
        await shows(pilot, "6 of 6 charts", "utilization % ── 37")
        read = charts_of(pilot).readings
        await pilot.press("f")
        await hides(pilot, "utilization %")
        assert charts_of(pilot).readings == read
        await pilot.press("f")
        await shows(pilot, "utilization % ── 37")


async def test_the_learning_rate_is_drawn_as_it_changed(engine: FakeEngine) -> None:
    async with StubApp(engine.directory).run_test(size=WIDE) as pilot:
        await shows(pilot, "step 2,000")
        charts_of(pilot).selected = (LEARNING_RATE,)
        await shows(pilot, "learning rate ── 0.001")
        engine.say(LearningRateChanged, step=2000, learning_rate=0.5)
        engine.chunk(np.arange(2000, 2010))
        await shows(pilot, "learning rate ── 0.5")


async def test_the_rate_of_a_schedule_is_drawn_as_it_was_at_each_step(engine: FakeEngine) -> None:
    async with StubApp(engine.directory).run_test(size=WIDE) as pilot:
        await shows(pilot, "step 2,000")
        charts_of(pilot).selected = (LEARNING_RATE, "loss")
        engine.say(LearningRateChanged, step=2000, learning_rate=0.5, schedule="LinearDecay")
        series = {"loss": np.ones(50), "learning_rate": np.linspace(0.5, 0.25, 50)}
        engine.writer.write_chunk(2000, engine.now, engine.now + 1, series)
        await shows(pilot, "learning rate ── 0.25", "0.25, LinearDecay")
        rate = chart_of(pilot, "learning-rate")
        assert rate.series[0].curve.at(1999) == pytest.approx((0.001, 0.001, 0.001))
        assert rate.series[0].curve.at(2000) == (0.5, 0.5, 0.5)
        await pilot.press("m", "o", "y")
        assert (rate.options, chart_of(pilot).options) == (
            ChartOptions(log=True, clip=False),
            ChartOptions(log=True, smoothing=0.6, clip=False),
        )
        await pilot.press("y", "plus", "plus", "plus", "plus", "plus", "end")
        await until(pilot, lambda: rate.window and rate.series[0].detail.end_step == 0, "a part that is known exactly")


async def test_a_metric_of_validations_alone_has_a_chart_that_can_be_chosen(engine: FakeEngine) -> None:
    async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
        await shows(pilot, "step 2,000")
        engine.say(Validated, epoch=1, step=2000, metrics={"loss": 1.0, "f1_score": 0.75}, seconds=0.1)
        await until(pilot, lambda: "f1 score" in [panel.title for panel in charts_of(pilot)._panels], "its chart")
        await pilot.press("a")
        await shows(pilot, "[ ] f1 score")
        await pilot.press("escape")
        charts_of(pilot).selected = ("f1_score",)
        await shows(pilot, "f1 score ━━ validation 0.7500")


@pytest.mark.parametrize(
    ("selected", "shown"),
    [
        (("recall",), ("recall",)),  # its id changes
        (("mse",), ("mse",)),  # it gets the id of another one
        (("mae",), ("loss", "mse")),  # the second model has none: as many as fit
    ],
)
async def test_selected_charts_are_those_of_the_same_series_in_the_next_part_of_a_script(
    selected: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    with closing(FakeEngine(Plan(epochs=20)).begin()) as engine:
        engine.writer.write_event(model_built(series=("loss", "recall", "mae", "mse")))
        async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
            charts = charts_of(pilot)
            await until(pilot, lambda: charts.state.built, "the first model")
            charts.selected = selected
            await until(pilot, lambda: [panel.key for panel in charts.shown] == [*selected], "the selected chart")
            engine.writer.write_event(model_built(series=("loss", "mse", "recall")))
            await until(pilot, lambda: charts.state.built and len(charts.state.built.series) == 3, "the second model")
            assert tuple(panel.title for panel in charts.shown) == shown
            for panel in charts.shown:
                chart = chart_of(pilot, panel.id)
                assert (chart.title.removeprefix("▸ "), chart.y_limits) == (panel.title, panel.limits)


async def test_which_mode_is_on_is_always_seen_and_a_click_changes_it(engine: FakeEngine) -> None:
    async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
        await shows(pilot, "step 2,000")
        charts, bar = charts_of(pilot), pilot.app.screen.query_one(ChartBar)

        def on() -> set[str]:
            return {item.text for item in bar.shown if item.is_active}

        assert on() == {"whole run"}
        await pilot.click(bar, (bar.render().plain.index("follow"), 0))
        await until(pilot, lambda: on() == {"follow"}, "the end to be followed")
        assert "the last 1,000 steps" in bar.render().plain
        await pilot.press("left")
        assert on() == set()
        assert "steps 750 to 1,749" in bar.render().plain
        await pilot.click(bar, (bar.render().plain.index("whole"), 0))
        await until(pilot, lambda: charts.window == StepWindow(), "the whole run")
