"""The screen of a run, driven as a user does, on runs that a stand-in for the engine writes."""

from dataclasses import replace

import numpy as np
import pytest
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Button

from accel_engine.devices.device_types import Device, Inventory
from accel_engine.events import Outcome, Phase
from accel_engine.run import RunReader
from accel_engine.run.store.database import SCHEMA_VERSION, RunDatabase
from accel_tui.screens.run_screen import RunScreen
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart_panels.run_charts import RunCharts
from accel_tui.widgets.device_panel import DevicePanel
from accel_tui.widgets.log.log_view import LogView
from accel_tui.widgets.run.next_steps import NextSteps
from accel_tui.widgets.run.phase_line import PhaseLine
from accel_tui.widgets.run.run_events import RunEvents
from tui.fake_engine import FakeEngine, dead_pid
from tui.screens.run_app import SMALL, WIDE, RunApp, app_of, opened, screen_of, told
from tui.stand_ins import hides, more, shows, text_of, until

pytestmark = pytest.mark.usefixtures("hurried")


async def test_a_device_is_named_once_it_is_known_though_the_run_has_ended(engine: FakeEngine) -> None:
    engine.sample()
    engine.end()
    app = RunApp(engine.directory)
    async with app.run_test(size=(120, 40)) as pilot:
        await shows(pilot, "Finished", "cpu:0")
        app.inventory = Inventory((Device("cpu:0", "cpu", "Found late"),))
        await shows(pilot, "Found late")


async def test_a_host_that_does_not_answer_is_told_until_it_does(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = ["gpubox does not answer"]
    monkeypatch.setattr(RunReader, "link_problem", property(lambda _: problems[-1]))
    engine.train(50)
    async with opened(engine.directory, WIDE) as pilot:
        await shows(pilot, "gpubox does not answer", "step 50/400")
        engine.train(50)
        await shows(pilot, "gpubox does not answer", "step 100/400")
        problems.append("")
        await hides(pilot, "gpubox")


@pytest.mark.parametrize("size", [SMALL, WIDE, *more((200, 50))])
async def test_a_live_run_is_on_screen_and_its_loss_falls(engine: FakeEngine, size: tuple[int, int]) -> None:
    engine.sample(37.0)
    engine.train(50)
    async with opened(engine.directory, size) as pilot:
        await shows(pilot, engine.directory.name, "cnn on digits", "training", "step 50/400", "epoch 1/4", "12%", "37%")
        loss = screen_of(pilot).query_one("#loss", Chart)
        first = loss.series[0].curve.last_value
        engine.train(150)
        engine.end_epoch(loss=0.5, accuracy=0.8)
        await shows(pilot, "step 200/400", "50%", "left", "validation 0.5000", "epoch 3/4", "steps/s")
        assert loss.series[0].curve.last_value < first
        assert loss.series[1].points == ((199, 0.5),)
        # Everything is there: both charts with their axes, the devices, the keys.
        for widget in (loss, screen_of(pilot).query_one("#second", Chart), screen_of(pilot).query_one(DevicePanel)):
            assert widget.region.height >= (7 if isinstance(widget, Chart) else 1)
            assert pilot.app.screen.region.contains_region(widget.region)
        assert screen_of(pilot).query_one("#details").display is (size != SMALL)
        # The first layout may have room for it, so that it is made; it is then hidden.
        assert any(chart.display for chart in screen_of(pilot).query("#throughput")) is (size != SMALL)


async def test_an_ended_run_shows_its_outcome_and_is_left_without_a_question(engine: FakeEngine) -> None:
    engine.train(400)
    engine.warn("said long ago")
    engine.end()
    async with opened(engine.directory) as pilot:
        await shows(
            pilot,
            "finished",
            "Finished after 400 steps and 4 epochs",
            "Last epoch: loss 0.0313",
            "100%",
        )
        assert "Pause" not in text_of(pilot)
        assert "Resume" not in text_of(pilot)
        assert not told(pilot)
        await pilot.press("escape")
        assert app_of(pilot).went == ["runs"]


@pytest.mark.parametrize("size", [SMALL, *more(WIDE)])
async def test_a_failed_run_shows_why_and_what_to_do(engine: FakeEngine, size: tuple[int, int]) -> None:
    engine.train(30).save()
    async with opened(engine.directory, size) as pilot:
        await shows(pilot, "training")
        engine.end(Outcome.FAILED, "out of memory", "Try a smaller batch")
        await shows(pilot, "failed", "Failed after 30 steps", "out of memory", "Try a smaller batch", "R Continue")
        assert not told(pilot)


async def test_an_end_is_told_to_whoever_looks_elsewhere(engine: FakeEngine) -> None:
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training")
        await pilot.press("e")
        await shows(pilot, "Current: 0.001")
        engine.end(Outcome.FAILED, "out of memory")
        await until(pilot, lambda: "out of memory" in told(pilot), "the notification")


@pytest.mark.parametrize("size", [SMALL, *more(WIDE)])
async def test_a_run_that_failed_before_its_first_step_shows_its_log_in_place_of_charts(
    engine: FakeEngine, size: tuple[int, int]
) -> None:
    (engine.directory / "log.txt").write_text("TensorFlow has spoken\n")
    async with opened(engine.directory, size) as pilot:
        await shows(pilot, "waiting for the first step")
        engine.end(Outcome.FAILED, "out of memory")
        await shows(pilot, "out of memory", "TensorFlow has spoken")
        charts, log = screen_of(pilot).query_one(RunCharts), screen_of(pilot).query_one(LogView)
        await until(pilot, lambda: not charts.is_on_screen, "the charts to give way")
        await until(pilot, lambda: log.has_focus_within, "the keys to be the log's")
        assert log.region.height > pilot.app.size.height / 2
        assert "Zoom" not in text_of(pilot)
        await pilot.press("i")
        await shows(pilot, "61,706 in 12 layers", "TensorFlow has spoken")
        await pilot.press("i", "l")
        await shows(pilot, "no steps recorded")
        await until(pilot, lambda: charts.has_focus and not log.is_on_screen, "the charts, which were asked for")
        await pilot.press("slash")
        await until(pilot, lambda: screen_of(pilot).query_one("#log-input").has_focus, "the question")
        await until(pilot, lambda: not charts.is_on_screen, "the charts to give way again")
        await pilot.press("escape")
        engine.begin().build().train(10)
        await until(pilot, lambda: charts.is_on_screen and not log.is_on_screen, "the charts of a run taken up")


async def test_an_early_end_looks_complete_and_an_empty_log_expects_nothing(engine: FakeEngine) -> None:
    engine.train(200)
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training", " 50%")
        await pilot.press("l")
        await shows(pilot, "no output yet")
        engine.end(Outcome.FINISHED, "early stopping")
        await shows(pilot, "ended early, after 2 of 4 epochs", "Log: no output")
        assert "output yet" not in text_of(pilot)
        assert "%" not in text_of(pilot).partition("ended early")[0].splitlines()[-1]


async def test_long_lines_of_the_log_are_wrapped_anew_when_the_terminal_grows(engine: FakeEngine) -> None:
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training")
        await pilot.press("l")
        await shows(pilot, "no output yet")
        (engine.directory / "log.txt").write_text("[a] " + "word " * 20 + "end\n")
        view = screen_of(pilot).query_one(LogView)
        await until(pilot, lambda: view.lines.virtual_size.height == 2, "two rows of a line")
        await shows(pilot, "[a] word", "end")
        await pilot.resize_terminal(*WIDE)
        await until(pilot, lambda: view.lines.virtual_size.height == 1, "one row of a line")


async def test_a_run_whose_engine_was_killed_is_lost_at_its_last_step() -> None:
    engine = FakeEngine(pid=dead_pid())
    engine.begin().build().train(130)
    async with opened(engine.directory) as pilot:
        await shows(pilot, "lost", "at step 130", "There is no checkpoint")
        engine.save()
        await shows(pilot, "checkpoint at step 130", "R Continue")
    engine.close()


async def test_a_run_that_is_resumed_goes_on_from_its_checkpoint(engine: FakeEngine) -> None:
    engine.train(150)
    engine.end(Outcome.STOPPED, "stop asked")
    async with opened(engine.directory) as pilot:
        await shows(pilot, "stopped", "step 150/400")
        engine.begin(first_step=100).build()
        await shows(pilot, "training", "step 100/400", "p Pause")
        assert "stop asked" not in text_of(pilot)
        engine.train(10)
        await shows(pilot, "step 110/400")
        assert screen_of(pilot).query_one("#loss", Chart).series[0].curve.end_step == 110


async def test_phases_are_shown_before_there_are_steps(engine: FakeEngine) -> None:
    engine.enter(Phase.TRACING, "compiling with XLA")
    async with opened(engine.directory) as pilot:
        await shows(pilot, "tracing", "compiling with XLA", "waiting for the first step")


async def test_a_newer_run_is_refused_in_words(engine: FakeEngine) -> None:
    connection = RunDatabase(engine.directory)
    connection.execute("UPDATE main.meta SET value = ? WHERE key = 'schema'", (SCHEMA_VERSION + 1,))
    connection.close()
    async with opened(engine.directory) as pilot:
        await shows(pilot, "newer accel-tui")
        await pilot.press("escape")
        assert app_of(pilot).went == ["runs"]


@pytest.mark.parametrize("size", [SMALL, *more(WIDE)])
async def test_next_steps_are_buttons_once_a_run_has_ended(engine: FakeEngine, size: tuple[int, int]) -> None:
    engine.train(400).save()
    async with opened(engine.directory, size) as pilot:
        await shows(pilot, "training")
        steps = screen_of(pilot).query_one(NextSteps)
        assert not steps.display
        engine.end()
        await shows(pilot, "Predict P", "Evaluate V", "Export E", "Compare c", "Train longer R")
        assert all(screen_of(pilot).region.contains_region(each.region) for each in steps.query(Button) if each.display)
        await pilot.press("c")
        await until(pilot, lambda: "no other run on the same data" in told(pilot), "the warning")
        while not (isinstance(pilot.app.focused, Button) and pilot.app.focused.name == "train_longer"):
            await pilot.press("tab")
        await pilot.press("enter")
        await shows(pilot, "Trained: 4 epochs.")


async def test_warnings_are_told_as_they_come_and_listed(engine: FakeEngine) -> None:
    async with opened(engine.directory) as small, opened(engine.directory, WIDE) as wide:
        await shows(small, "training")
        await shows(wide, "training")
        engine.warn("the loss of step 7 is NaN or infinite")
        await until(small, lambda: "step 7" in told(small), "the warning")
        await until(wide, lambda: "step 7" in str(screen_of(wide).query_one(RunEvents).content), "the list")
        assert not told(wide)  # what is listed on the screen needs no toast over it


async def test_the_log_is_followed_only_while_it_is_shown(engine: FakeEngine) -> None:
    log = engine.directory / "log.txt"
    log.write_text("TensorFlow has spoken\n")
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training")
        view = screen_of(pilot).query_one(LogView)
        assert not view.lines.lines
        await pilot.press("l")
        await shows(pilot, "TensorFlow has spoken")
        with log.open("a") as file:
            file.write("and again\n")
        await shows(pilot, "and again")
        await pilot.press("l")
        await until(pilot, lambda: not view.lines.lines, "the log to be forgotten")
        await until(pilot, lambda: not any(w.group == "log" and w.is_running for w in pilot.app.workers), "the thread")


async def test_details_are_a_key_away_where_there_is_no_room(engine: FakeEngine) -> None:
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training")
        assert "61,706" not in text_of(pilot)
        await pilot.press("i")
        await shows(pilot, "61,706 in 12 layers", "strategy       default")


async def test_what_cannot_be_read_of_a_device_says_why(engine: FakeEngine) -> None:
    engine.sample(None)
    async with opened(engine.directory, WIDE) as pilot:
        await shows(pilot, "not supported")


def ends_of(pilot: Pilot[None]) -> tuple[str, str]:
    """The first and the last label of the axis of steps, which the lowest chart has."""
    charts = [chart for chart in screen_of(pilot).query(Chart) if chart.display and chart.has_step_labels]
    region = charts[0].region
    labels = text_of(pilot).splitlines()[region.bottom - 1][region.x : region.right].split() or [""]
    return labels[0], labels[-1]


async def test_keys_zoom_and_scroll_all_charts_down_to_single_steps_and_back(engine: FakeEngine) -> None:
    for first in range(0, 200_000, 2000):
        engine.chunk(np.arange(first, first + 2000) / 200_000, seconds=0.01)
    engine.end()
    async with opened(engine.directory, WIDE) as pilot:
        await shows(pilot, "step 200,000")
        loss = screen_of(pilot).query_one("#loss", Chart)
        charts = screen_of(pilot).query_one(RunCharts)
        assert charts.has_focus
        await until(pilot, lambda: ends_of(pilot) == ("0", "200k"), "the whole run")
        await pilot.press("plus")
        await until(pilot, lambda: loss.window == (100_000, 200_000), "the second half")
        assert ends_of(pilot) == ("100k", "200k")
        for _ in range(9):
            await pilot.press("equals_sign")
        for _ in range(2):
            await pilot.press("left")
        assert charts.window.first is not None
        first, last = loss.window or (0, 0)
        assert last - first < 200
        # What is drawn at once is what is known; the steps themselves follow.
        await until(pilot, lambda: loss.series[0].curve_in(first, last).width == 1, "single steps")
        shown = loss.series[0].curve_in(first, last)
        span = slice(*shown.span(first, last))
        assert (shown.low[span].min(), shown.high[span].max()) == pytest.approx(
            (first / 200_000, (last - 1) / 200_000), abs=1e-6
        )
        assert {chart.window for chart in screen_of(pilot).query(Chart)} == {(first, last)}
        await pilot.press("home")
        assert loss.window == (0, last - first)
        await pilot.press("minus", "right")
        assert loss.window == pytest.approx((0.5 * (last - first), 2.5 * (last - first)), abs=1)
        await pilot.press("end")
        await until(pilot, lambda: (loss.window or (0, 0))[1] >= 200_000, "the end")
        await pilot.press("0")
        await until(pilot, lambda: ends_of(pilot) == ("0", "200k"), "the whole run again")
        assert loss.window is None
        await until(pilot, lambda: not screen_of(pilot).state.visible_series, "the details to go")


async def test_the_end_of_a_live_run_is_followed(engine: FakeEngine) -> None:
    engine.train(300)
    async with opened(engine.directory) as pilot:
        await shows(pilot, "step 300/400")
        loss = screen_of(pilot).query_one("#loss", Chart)
        await pilot.press("plus", "plus", "plus")
        bounds = loss.window
        assert bounds is not None
        engine.train(100)
        await until(pilot, lambda: (loss.window or (0, 0))[1] >= 400, "the window to move")


async def test_charts_take_the_keys_again_when_they_are_back(engine: FakeEngine) -> None:
    engine.train(300)
    async with opened(engine.directory) as pilot:
        await shows(pilot, "step 300/400")
        charts = screen_of(pilot).query_one(RunCharts)
        await pilot.press("i")
        await until(pilot, lambda: not charts.display, "the details in their place")
        await pilot.press("i")
        await until(pilot, lambda: charts.has_focus, "the charts")
        await pilot.press("plus")
        assert charts.window.span == 150


async def test_the_hidden_log_has_no_keys_where_it_is_there_before_the_charts(engine: FakeEngine) -> None:
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training")
        screen = screen_of(pilot)
        screen.set_focus(None)
        screen.query_one(RunCharts).can_focus = False
        screen._update_auto_focus()
        assert screen.focused is None


async def test_a_slash_opens_the_log_and_asks_what_to_search(engine: FakeEngine) -> None:
    (engine.directory / "log.txt").write_text("TensorFlow has spoken\n")
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training")
        await pilot.press("slash")
        await until(pilot, lambda: screen_of(pilot).query_one("#log-input").has_focus, "the question")
        await shows(pilot, "TensorFlow has spoken")
        await pilot.press(*"spoken", "enter")
        await shows(pilot, "/ spoken 1/1")
        await pilot.press("l")
        await until(pilot, lambda: screen_of(pilot).query_one(RunCharts).has_focus, "the curves to have the keys")


async def test_news_that_come_while_the_program_is_left_are_nobody_s(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone: list[Widget] = []
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training")
        screen, detach = screen_of(pilot), Widget._detach
        line = screen.query_one(PhaseLine)

        def go(widget: Widget) -> None:
            detach(widget)
            if widget is line:
                gone.append(widget)
                screen._follower.put(replace(screen.state, step=20))

        monkeypatch.setattr(Widget, "_detach", go)
    assert gone


async def test_a_screen_that_is_left_before_it_has_made_room_makes_none(engine: FakeEngine) -> None:
    async with opened(engine.directory) as pilot:
        screen = RunScreen(engine.directory)
        await pilot.app.push_screen(screen)
        await pilot.app.pop_screen()
        screen._update_layout()
