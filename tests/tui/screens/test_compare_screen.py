"""The screen that lays runs side by side, on runs that a stand-in for the engine writes."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from accel_engine.events import Validated
from accel_engine.plan import Plan
from accel_engine.run.store.steps import THROUGHPUT
from accel_tui.app_protocol import Screens
from accel_tui.screens import compare_screen
from accel_tui.screens.compare_many_screen import CompareManyScreen
from accel_tui.screens.compare_screen import CompareScreen, CompareTable
from accel_tui.screens.runs_screen import RunsScreen
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart.chart_view import ChartOptions
from accel_tui.widgets.chart_panels.compare_charts import CompareCharts
from accel_tui.widgets.compared_runs_table import ComparedRunsTable
from accel_tui.widgets.runs_table import RunsTable
from example_events import model_built
from tui.fake_engine import FakeEngine
from tui.stand_ins import BareApp, more, shows, text_of, until

SMALL, WIDE, HUGE = (80, 24), (120, 40), (200, 50)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_screen, "SUMMARY_SECONDS", 0.1)
    monkeypatch.setattr(compare_screen, "REFRESH_SECONDS", 0.02)


def trained(plan: Plan, steps: int = 100, *, ended: bool = True) -> FakeEngine:
    engine = FakeEngine(plan)
    engine.begin().build().train(steps)
    if ended:
        engine.end_epoch()
        engine.end()
        engine.close()
    return engine


async def open_comparison(pilot: Pilot[None], *directories: Path) -> None:
    pilot.app.open_screen(Screens.COMPARE, directories)  # type: ignore[attr-defined]
    await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen), "the comparison")
    await shows(pilot, "plan ")


def charts(pilot: Pilot[None]) -> list[Chart]:
    return [chart for chart in pilot.app.screen.query(Chart) if chart.display]


@pytest.mark.parametrize("size", [SMALL, *more(WIDE), HUGE])
async def test_curves_and_what_differs_are_side_by_side(home: Path, size: tuple[int, int]) -> None:
    one, other = trained(Plan(name="first")), trained(Plan(model="mlp", name="second"), 300)
    async with BareApp().run_test(size=size) as pilot:
        await open_comparison(pilot, one.directory, other.directory)
        await shows(pilot, "━a first", "━b second", "model", "fields at default", "loss ── a")
        loss = charts(pilot)[0]
        await until(pilot, lambda: [series.curve.end_step for series in loss.series] == [100, 300], "the curves")
        assert [series.name for series in loss.series] == ["a", "b"]
        assert loss.end == 300, "no room is left for steps that will not come"
        plot = [
            line[: loss.region.right] for line in text_of(pilot).splitlines()[loss.region.y + 1 : loss.region.bottom]
        ]
        assert all(any(letter in line for line in plot) for letter in "ab"), "told apart without colours too"
        assert loss.series[0].style != loss.series[1].style
        assert [len(series.points) for series in loss.series] == [1, 1]
        assert 2 <= len(charts(pilot)) <= 4
        table = pilot.app.screen.query_one(CompareTable)
        assert table.region.bottom <= size[1] - 1
        if size is not SMALL:
            await shows(pilot, "In all runs", "0.9861")
            assert not any(line.row and line.row.label == "val accuracy" for line in table.shown), "it is equal"
            await pilot.press("tab", "equals_sign")
            await shows(pilot, "val accuracy", "AMD EPYC")


async def test_the_legends_have_the_values_of_the_table(home: Path) -> None:
    worse, better = trained(Plan(name="worse")), trained(Plan(name="better"), ended=False)
    better.end_epoch(loss=0.0125)  # though the loss of its last batch is no lower
    async with BareApp().run_test(size=HUGE) as pilot:
        await open_comparison(pilot, worse.directory, better.directory)
        await shows(pilot, "results (last epoch) ─", "0.0313", "0.0100")
        accuracy, loss, speed = charts(pilot)[:3]
        await until(
            pilot, lambda: [each.value for each in loss.series] == pytest.approx([0.0313, 0.01]), "the means of epochs"
        )
        assert [each.curve.last_value for each in loss.series] != pytest.approx([0.0313, 0.01])
        table = pilot.app.screen.query_one(CompareTable).comparison
        assert table
        for chart, key in ((loss, "loss"), (accuracy, "accuracy"), (speed, "steps/s")):
            (row,) = [row for row in table.results if row.label == key]
            assert tuple(each.value for each in chart.series) == row.values, key
        assert loss.note == "last epoch"
        await shows(pilot, "loss (log) ── a 0.0313", "── b 0.0100", "last epoch")
    better.close()


async def test_a_live_run_is_followed(home: Path) -> None:
    one, live = trained(Plan(name="first")), trained(Plan(name="second", epochs=4), ended=False)
    async with BareApp().run_test(size=WIDE) as pilot:
        await open_comparison(pilot, one.directory, live.directory)
        await shows(pilot, "remaining")
        live.train(250)
        await until(pilot, lambda: charts(pilot)[0].series[1].curve.end_step == 350, "further steps")
        live.end_epoch(loss=0.777)
        await shows(pilot, "0.7770")
        live.end()
        await until(pilot, lambda: "remaining" not in text_of(pilot), "the end")
        live.close()


async def test_series_that_only_one_run_has_are_shown_on_a_key(home: Path) -> None:
    one, other = trained(Plan(name="first")), FakeEngine(Plan(name="second"))
    other.begin()
    other.writer.write_chunk(0, 0.0, 1.0, {"loss": [1.0, 2.0], "mae": [0.5, 0.25]})
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_comparison(pilot, one.directory, other.directory)
        await until(pilot, lambda: pilot.app.screen.query_one(CompareCharts).names[2:3] == ["mae"], "all series")
        assert [chart.title.removeprefix("▸ ") for chart in charts(pilot)] == ["accuracy", "loss"]
        await pilot.press("a")
        assert [chart.title.removeprefix("▸ ") for chart in charts(pilot)] == ["mae", "steps/s"]
        await until(pilot, lambda: [each.curve.end_step for each in charts(pilot)[0].series] == [0, 2], "the curves")
        await pilot.press("a")
        assert [chart.title.removeprefix("▸ ") for chart in charts(pilot)] == ["learning rate", "accuracy"]
    other.close()


async def test_rates_and_metrics_of_validations_are_compared_whichever_program_wrote_the_run(home: Path) -> None:
    older, newer = trained(Plan(name="older")), FakeEngine(Plan(name="newer"))
    newer.begin()
    newer.writer.write_chunk(0, 0.0, 1.0, {"loss": [1.0, 2.0], "learning_rate": [0.5, 0.25]})
    newer.say(Validated, epoch=1, step=2, metrics={"loss": 1.0, "f1_score": 0.75}, seconds=0.1)
    async with BareApp().run_test(size=HUGE) as pilot:
        await open_comparison(pilot, older.directory, newer.directory)
        names = ["accuracy", "loss", "f1_score", THROUGHPUT, "learning_rate"]
        await until(pilot, lambda: pilot.app.screen.query_one(CompareCharts).names == names, "all series")
        await shows(pilot, "f1 score ━━ b 0.75", "learning rate ── a 0.001  ── b 0.25")
        await pilot.press("m", "o", "y")
        rate, loss = charts(pilot)[4], charts(pilot)[1]
        assert (rate.options, loss.options) == (
            ChartOptions(log=True, clip=False),
            ChartOptions(log=True, smoothing=0.6, clip=False),
        )
    newer.close()


async def test_keys_look_closely_at_a_part_of_all_runs(home: Path) -> None:
    runs = [trained(Plan(seed=seed), 400) for seed in range(2)]
    async with BareApp().run_test(size=WIDE) as pilot:
        await open_comparison(pilot, *(run.directory for run in runs))
        await until(pilot, lambda: pilot.app.screen.query_one(CompareCharts).steps == 400, "the steps")
        await pilot.press("plus", "plus")
        assert len({chart.window for chart in charts(pilot)}) == 1
        assert charts(pilot)[0].window is not None
        await pilot.press("home", "right", "left", "end", "minus", "0")
        assert charts(pilot)[0].window is None
        await pilot.press("y", "v")
        assert charts(pilot)[0].options.log
        assert {chart.cursor for chart in charts(pilot)} == {200}
        await pilot.press("f")
        await until(pilot, lambda: len(charts(pilot)) == 1, "one chart")
        await until(pilot, lambda: not pilot.app.screen.query_one(CompareTable).is_on_screen, "the end of the table")
        await pilot.press("escape", "escape")
        await until(pilot, lambda: len(charts(pilot)) > 1, "all charts")
        assert isinstance(pilot.app.screen, CompareScreen)


async def test_the_table_is_scrolled_where_it_does_not_fit(home: Path) -> None:
    runs = [trained(Plan(name=f"the run number {seed}", seed=seed)) for seed in range(8)]
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_comparison(pilot, *(run.directory for run in runs))
        await shows(pilot, "━a", "seed")
        await pilot.press("tab", "equals_sign")
        table = pilot.app.focused
        assert isinstance(table, CompareTable)
        await until(pilot, lambda: len(table.shown) > 20, "what is equal in all runs")
        await pilot.press("end")
        last = table.shown[-1].row
        assert last is not None
        await shows(pilot, last.label, "━a")
        await pilot.press(*["right"] * 60)
        await shows(pilot, "━h")
        assert last.label in text_of(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, CompareScreen), "the screen below")
        assert not any(isinstance(screen, RunsScreen) for screen in pilot.app.screen_stack), "nothing else is opened"


async def test_the_table_is_not_scrolled_sideways_where_names_can_wrap(home: Path) -> None:
    runs = [trained(Plan(name=f"a run with a long name {seed}", seed=seed)) for seed in range(3)]
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_comparison(pilot, *(run.directory for run in runs))
        await shows(pilot, "━c", "seed")
        table = pilot.app.screen.query_one(CompareTable)
        assert not table.show_horizontal_scrollbar


async def test_a_run_that_is_gone_is_said_to_be_unreadable(home: Path) -> None:
    one, other = trained(Plan(name="first")), trained(Plan(name="second"), ended=False)
    other.close()
    (other.directory / "run.db").write_bytes(b"no database" * 100)
    async with BareApp().run_test(size=WIDE) as pilot:
        await open_comparison(pilot, one.directory, other.directory)
        await shows(pilot, "unreadable", "finished")


async def test_long_names_leave_the_charts_room_for_the_values_of_three_runs(home: Path) -> None:
    names = ("a convolutional network for the paper", "narrow-one-with-a-very-long-name", "the same, but slower")
    runs = [trained(Plan(name=name, seed=seed)) for seed, name in enumerate(names)]
    async with BareApp().run_test(size=WIDE) as pilot:
        await open_comparison(pilot, *(run.directory for run in runs))
        await until(pilot, lambda: charts(pilot)[0].series[2].curve.end_step == 100, "the curves")
        assert charts(pilot)[0].size.width >= 56
        await until(pilot, lambda: all(f" {letter} 0." in text_of(pilot) for letter in "abc"), "all values")
        table = pilot.app.screen.query_one(CompareTable)
        assert table.render_line(0).text.split() == ["━a", "━b", "━c"]
        await shows(pilot, *(f"━{letter} {name}" for letter, name in zip("abc", names, strict=True)))
        await pilot.resize_terminal(*HUGE)
        await shows(pilot, "━a a convolutional network for the paper", "━c the same, but slower")
        assert "0.9861" in text_of(pilot)
        lines = [line.rstrip().removesuffix("│") for line in text_of(pilot).splitlines()]
        assert not any("━c" in line and line.endswith("…") for line in lines), "no column is cut"


async def test_runs_of_other_speed_and_batch_are_compared_by_epoch_and_by_time(home: Path) -> None:
    one = trained(Plan(name="first"))
    live = FakeEngine(Plan(name="second", epochs=4))
    live.steps_per_epoch = 10
    live.begin().build().train(20, seconds=2.0)
    async with BareApp().run_test(size=WIDE) as pilot:
        await open_comparison(pilot, one.directory, live.directory)
        loss, told = charts(pilot)[0], pilot.app.screen.query_one(CompareCharts)
        await until(pilot, lambda: [each.curve.end_step for each in loss.series] == [100, 20], "the curves")
        await pilot.press("x")
        await shows(pilot, "epoch 0")
        assert loss.scale
        assert loss.series[0].curve.end_step * 2 == pytest.approx(loss.series[1].curve.end_step, rel=1e-2)
        await pilot.press("x", "plus", "v")
        await shows(pilot, "time ")
        assert told.window.span
        assert told.visible_steps is None
        seconds, unit = (told.cursor.step * told._axis.unit, told._axis.unit)  # type: ignore[union-attr]
        assert seconds == pytest.approx(3.0, abs=0.1)
        await shows(pilot, "v  0:03")
        live.train(200, seconds=2.0)
        await until(pilot, lambda: told._axis.unit > unit, "more time")  # type: ignore[union-attr]
        assert told.cursor.step * told._axis.unit == pytest.approx(seconds, abs=0.1)  # type: ignore[union-attr]
        await pilot.press("x")
        await until(pilot, lambda: loss.scale is None and told.cursor is None, "steps again")
        live.close()


async def test_what_only_a_short_run_has_is_on_the_axis_of_all(home: Path) -> None:
    one, other = trained(Plan(name="first"), 400), FakeEngine(Plan(name="second"))
    other.begin()
    other.writer.write_chunk(0, 0.0, 1.0, {"loss": [1.0] * 20, "mae": [0.5] * 20})
    async with BareApp().run_test(size=WIDE) as pilot:
        await open_comparison(pilot, one.directory, other.directory)
        await until(pilot, lambda: pilot.app.screen.query_one(CompareCharts).names[2:3] == ["mae"], "all series")
        loss, mae = charts(pilot)[0], charts(pilot)[2]
        assert mae.title == "mae"
        await until(pilot, lambda: loss._view and mae._view and loss._view.x == mae._view.x, "one axis")
        assert loss._view
        assert loss._view.x.high >= 400
        await pilot.press("plus")
        await until(pilot, lambda: loss.window is not None and loss.window == mae.window, "one window")
    other.close()


async def test_results_are_sorted_with_bars_and_what_differs(home: Path) -> None:
    worse, better = trained(Plan(name="worse")), trained(Plan(model="mlp", name="better"), ended=False)
    better.say(Validated, epoch=1, step=100, metrics={"loss": 0.1, "accuracy": 0.995}, seconds=0.1)
    better.close()
    async with BareApp().run_test(size=HUGE) as pilot:
        await open_comparison(pilot, worse.directory, better.directory)
        results = pilot.app.screen.query_one(ComparedRunsTable)
        await until(
            pilot, lambda: [row.run.directory for row in results.shown] == [better.directory, worse.directory], "all"
        )
        lines = [results.render_line(line).text for line in range(3)]
        assert "best val acc" in lines[0]
        assert "━b better" in lines[1]
        assert "★" in lines[1]
        assert "model mlp" in lines[1]
        assert "★" not in lines[2]
        assert [chart.title for chart in charts(pilot)][:2] == ["▸ accuracy", "loss"], "the metric that counts is first"
        await shows(pilot, "a 0.9911", "b 0.")
        await pilot.press("tab", "equals_sign")
        await until(pilot, lambda: "equal ─" in text_of(pilot), "the equal fields")


async def test_values_of_several_losses_have_no_star(home: Path) -> None:
    directories = []
    for loss, value in (("mean_squared_error", 0.3), ("huber", 0.2)):
        engine = trained(Plan(name=loss), ended=False)
        engine.writer.write_event(model_built(loss=loss, monitor="validation_loss", time=engine.now))
        engine.end_epoch(value)
        engine.end()
        engine.close()
        directories.append(engine.directory)
    async with BareApp().run_test(size=HUGE) as pilot:
        await open_comparison(pilot, *directories)
        await shows(pilot, "best val loss", "loss function", "0.3000", "0.2000")
        assert "★" not in text_of(pilot)


async def test_many_runs_are_a_band_of_which_some_are_compared(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [trained(Plan(seed=seed, learning_rate=0.001 * (1 + seed)), 20, ended=seed > 0) for seed in range(10)]
    async with BareApp().run_test(size=WIDE) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: len(pilot.app.screen.query_one(RunsTable).shown) == len(runs), "the runs")
        await pilot.press("ctrl+a", "c")
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareManyScreen), "the comparison")
        await shows(pilot, "Compare 10 runs", "10-90%", "median", "learning rate  0.001 to 0.01", "seed")
        results = pilot.app.screen.query_one(ComparedRunsTable)
        await until(pilot, lambda: len(results.shown) == len(runs), "all results")
        assert pilot.app.screen.check_action("compare_selected", ()) is None
        await pilot.press("down", "space", "space")
        assert pilot.app.screen.check_action("compare_selected", ())
        chosen = {row.run.directory for row in results.selected_rows}
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen), "two of them")
        assert {*pilot.app.screen._directories} == chosen  # type: ignore[attr-defined]
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareManyScreen), "the comparison again")
        assert {row.run.directory for row in results.selected_rows} == chosen
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen), "the runs")
    runs[0].close()


async def test_a_run_without_the_metric_of_the_others_is_the_last(home: Path) -> None:
    accurate = trained(Plan(name="accurate"))
    directories = [accurate.directory]
    for error in (5.0, 3.0):
        engine = trained(Plan(name=f"mae {error}"), ended=False)
        monitor = "validation_mean_absolute_error"
        engine.writer.write_event(model_built(loss="mean_squared_error", monitor=monitor, time=engine.now))
        engine.say(Validated, epoch=1, step=100, metrics={"mean_absolute_error": error}, seconds=0.1)
        engine.end()
        engine.close()
        directories.append(engine.directory)
    async with BareApp().run_test(size=HUGE) as pilot:
        await open_comparison(pilot, *directories)
        results = pilot.app.screen.query_one(ComparedRunsTable)
        await until(pilot, lambda: len(results.shown) == 3, "all")
        assert [row.run.directory for row in results.shown] == [directories[2], directories[1], directories[0]]
