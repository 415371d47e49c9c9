"""The keys that change how the charts of a run are looked at."""

import re
import time
from collections.abc import Iterator

import numpy as np
import pytest

from accel_engine.events import CheckpointSaved, EpochEnded
from accel_engine.plan import Plan
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart.chart_view import PLAIN, SMOOTHINGS, ChartOptions
from accel_tui.widgets.chart_panels.run_charts import RunCharts
from tui.fake_engine import FakeEngine
from tui.stand_ins import StubApp, more, shows, text_of, until

SMALL, WIDE = (80, 24), (120, 40)


pytestmark = pytest.mark.usefixtures("hurried")


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    """A run of 2,000 steps in 2 s, with one loss that is far from all others and one that has no logarithm."""
    losses = 2 * np.exp(-np.arange(2000) / 700)
    losses[500], losses[501] = 90, 0
    one = FakeEngine(Plan(epochs=20)).begin().build()
    one.chunk(losses, np.linspace(0.1, 0.9, 2000), seconds=2.0, at=time.time() + 1)
    yield one
    one.close()


@pytest.mark.parametrize("size", [SMALL, *more(WIDE)])
async def test_every_key_changes_all_charts_and_is_said(engine: FakeEngine, size: tuple[int, int]) -> None:
    async with StubApp(engine.directory).run_test(size=size) as pilot:
        await shows(pilot, "step 2,000")
        charts = pilot.app.screen_stack[-1].query_one(RunCharts)

        async def press(key: str, options: ChartOptions, *words: str) -> None:
            await pilot.press(key)
            await shows(pilot, *words)
            assert charts.options == options
            # Others are drawn when they are shown; the learning rate is neither smoothed nor clipped.
            shown = [chart for chart in charts.query(Chart) if chart.display and chart.id != "learning-rate"]
            await until(pilot, lambda: {chart.options for chart in shown} == {options}, "all charts")

        await press("y", ChartOptions(log=True), "loss (log) ──", "y  log ")
        await press("o", ChartOptions(log=True, clip=False), "hidden at or below 0", "all values")
        await press("y", ChartOptions(log=False, clip=False), "loss ──", "linear")
        await press("o", ChartOptions(log=False), "1 step hidden above")
        await press("y", PLAIN, "loss ──")
        for weight in SMOOTHINGS[1:]:
            await press("m", ChartOptions(smoothing=weight), f"loss (smoothed {weight:g})", f"m  smoothed {weight:g}")
        await press("m", PLAIN, "loss ──")
        await press("x", ChartOptions(x="epoch"), "by epoch")
        await until(pilot, lambda: re.search("epoch +0  ", text_of(pilot)) is not None, "epochs below the charts")
        await press("x", ChartOptions(x="time"), "by time")
        await until(pilot, lambda: re.search("time +0.0s  ", text_of(pilot)) is not None, "times below the charts")
        await press("x", PLAIN)
        await until(pilot, lambda: re.search("time +0.0s  ", text_of(pilot)) is None, "steps below the charts")


async def test_a_click_is_as_good_as_a_key(engine: FakeEngine) -> None:
    async with StubApp(engine.directory).run_test(size=(200, 50)) as pilot:
        await shows(pilot, "y auto log", "m smooth", "o outliers hidden", "x by step")
        row = next(row for row, line in enumerate(text_of(pilot).splitlines()) if "m smooth" in line)
        await pilot.click(offset=(text_of(pilot).splitlines()[row].index("m smooth") + 2, row))
        await shows(pilot, "loss (smoothed 0.6)")


async def test_what_happens_is_marked_as_it_happens_and_explained_once(engine: FakeEngine) -> None:
    async with StubApp(engine.directory).run_test(size=WIDE) as pilot:
        await shows(pilot, "step 2,000")
        assert "┴" not in text_of(pilot)
        engine.writer.write_event(EpochEnded(time=time.time(), epoch=1, step=400, metrics={}, seconds=1.0))
        engine.writer.write_event(
            CheckpointSaved(time=time.time(), epoch=1, step=800, path="checkpoints/1", seconds=0.1)
        )
        await shows(pilot, "┴", "◆", "┴ epoch  ◆ checkpoint")
        assert text_of(pilot).count("┴ epoch  ◆ checkpoint") == 1


async def test_a_lens_stays_through_a_closer_look_and_counts_what_is_seen(engine: FakeEngine) -> None:
    async with StubApp(engine.directory).run_test(size=WIDE) as pilot:
        await shows(pilot, "step 2,000")
        await shows(pilot, "1 step hidden above")
        charts = pilot.app.screen_stack[-1].query_one(RunCharts)
        await pilot.press("home", "m")
        await until(pilot, lambda: charts.window.bounds(2000) == (0, 1000), "the first 1,000 steps")
        await shows(pilot, "1 step hidden above", "loss (smoothed 0.6)")
