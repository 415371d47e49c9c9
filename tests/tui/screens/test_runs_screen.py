"""The screen that lists runs, on runs that a stand-in for the engine writes."""

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from accel_engine import Recorder
from accel_engine.events import Outcome
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.process.engine_process import Installation
from accel_engine.run import RunList, list_runs
from accel_engine.run.store.database import DATABASE, RunDatabase
from accel_tui.app_protocol import Screens
from accel_tui.screens.new_run_screen import NewRunScreen
from accel_tui.screens.run_screen import RunScreen
from accel_tui.screens.runs_screen import RunsScreen
from accel_tui.widgets import runs_table as runs_table
from accel_tui.widgets.runs_table import RunsTable
from accel_tui.widgets.table import Heading
from tui.fake_engine import FakeEngine, dead_pid
from tui.stand_ins import BareApp, StubApp, more, shows, text_of, until

SMALL, WIDE = (80, 24), (120, 40)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_table, "INTERVAL", 0.1)
    monkeypatch.setattr(engine_process, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))


@pytest.fixture
def made() -> Callable[..., Path]:
    """Make a run that began some seconds ago; it goes on unless it is given an outcome or a dead engine."""

    def make(plan: Plan, outcome: Outcome | None = None, *, age: float = 0.0, pid: int | None = None) -> Path:
        engine = FakeEngine(plan, pid=pid)
        engine.begin().build().train(100)
        engine.save()
        if outcome:
            engine.end(outcome)
        if outcome:
            engine.close()
        connection = RunDatabase(engine.directory)
        connection.execute("UPDATE main.meta SET value = ? WHERE key = 'created'", (time.time() - age,))
        connection.close()
        return engine.directory

    return make


def table(pilot: Pilot[None]) -> RunsTable:
    return pilot.app.screen.query_one(RunsTable)


async def open_runs(pilot: Pilot[None]) -> None:
    await pilot.press("r")
    await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen), "the runs")
    await until(pilot, lambda: table(pilot).runs is not None, "the list")


@pytest.mark.parametrize("size", [SMALL, *more(WIDE), (200, 50)])
async def test_runs_are_listed_with_what_became_of_them(made: Callable[..., Path], size: tuple[int, int]) -> None:
    made(Plan(), Outcome.FINISHED, age=3700)
    made(Plan(model="mlp"), age=7300, pid=dead_pid())
    live = made(Plan(name="now"))
    newer = made(Plan(model="resnet20"), Outcome.FINISHED)
    connection = RunDatabase(newer)
    connection.execute("UPDATE main.meta SET value = 99 WHERE key = 'schema'")
    connection.close()
    async with BareApp().run_test(size=size) as pilot:
        await open_runs(pilot)
        words = ("finished", "lost", "running", "unreadable") if size[0] >= 200 else ("",) * 4  # elsewhere the signs
        await shows(pilot, *(f"{sign} {word}".strip() for sign, word in zip("✓?●!", words, strict=True)))
        await shows(pilot, "▾ unreadable  1", "1h ago", "2h ago", "0.9861", *["val loss", "0.0313"] * (size[0] >= 200))
        assert [run.id for run in table(pilot).runs or ()][-1] == list_runs()[-1].id
        await until(pilot, lambda: table(pilot).current, "the cursor")
        await pilot.press("end")
        assert table(pilot).current.directory == newer  # type: ignore[union-attr]
        await shows(pilot, "format 99")
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app._notifications, "the reason")
        assert isinstance(pilot.app.screen, RunsScreen)
        assert live.name in text_of(pilot)


async def test_without_runs_the_screen_says_what_to_do(home: Path) -> None:
    async with BareApp().run_test(size=WIDE) as pilot:
        await open_runs(pilot)
        await shows(pilot, "No runs yet")  # its directory may wrap the line
        assert "Press N for a new run" in " ".join(text_of(pilot).split())
        await pilot.press("N")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewRunScreen), "the plan")


async def test_enter_opens_a_run(made: Callable[..., Path]) -> None:
    directory = made(Plan(), Outcome.FINISHED)
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await until(pilot, lambda: table(pilot).current, "the cursor")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run")
        assert pilot.app.screen.directory == directory  # type: ignore[attr-defined]
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen), "the list again")


async def test_enter_is_not_lost_on_a_list_that_is_still_to_come(
    made: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = made(Plan(), Outcome.FINISHED)
    ready = threading.Event()
    listing = RunList()
    monkeypatch.setattr(RunsTable, "listing", listing)
    refresh = listing.refresh
    monkeypatch.setattr(listing, "refresh", lambda limit=None: ready.wait() and refresh(limit))
    app = BareApp()
    async with app.run_test(size=SMALL) as pilot:
        app.open_screen(Screens.RUNS)
        await app._check_bindings("enter")  # the screen has no list yet that could have the focus
        ready.set()
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        assert app.screen.directory == directory  # type: ignore[attr-defined]
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen), "the list again")
        ready.clear()
        await pilot.press("N", "r", "enter")  # what was read before is there at once
        ready.set()
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")


async def test_a_list_that_is_not_read_to_its_end_says_so(
    made: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(Plan(), Outcome.FINISHED)
    ready, listing = threading.Event(), RunList()
    monkeypatch.setattr(RunsTable, "listing", listing)
    refresh = listing.refresh

    def read(limit: int | None = None) -> bool:
        return bool(refresh(limit) and False) if limit else bool(ready.wait() and refresh())

    monkeypatch.setattr(listing, "refresh", read)
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await shows(pilot, "1 run by data, reading the others…")
        ready.set()
        await until(pilot, lambda: "reading" not in text_of(pilot), "the end of the list")


@pytest.mark.parametrize("size", [SMALL, WIDE])
async def test_of_a_long_name_both_ends_stand_in_the_list_and_the_state_in_the_card(
    made: Callable[..., Path], size: tuple[int, int]
) -> None:
    made(Plan(name="cosine-schedule-of-no-17"), Outcome.FINISHED)
    async with BareApp().run_test(size=size) as pilot:
        await open_runs(pilot)
        await shows(pilot, "✓ finished ─", "no-17 ")
        assert len(re.findall(r"-cos\S*…\S*no-17 +cnn", text_of(pilot))) == 1


async def test_a_list_without_runs_on_the_plan_does_not_take_the_focus(home: Path) -> None:
    async with StubApp().run_test(size=WIDE) as pilot:
        await until(pilot, lambda: [each.runs for each in pilot.app.screen.query(RunsTable)] == [()], "the list")
        await pilot.press("up")
        assert pilot.app.focused is not None
        assert not isinstance(pilot.app.focused, RunsTable)


async def test_the_cursor_stays_on_its_run_while_others_come(made: Callable[..., Path]) -> None:
    first = made(Plan(model="mlp"), Outcome.FINISHED, age=50)
    made(Plan(), Outcome.STOPPED, age=100)
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await until(pilot, lambda: table(pilot).current, "the cursor")
        assert table(pilot).current.directory == first  # type: ignore[union-attr]
        made(Plan(model="resnet20"), Outcome.FAILED)
        await until(pilot, lambda: len(table(pilot).shown) == 3, "the new run")
        assert table(pilot).shown[1].directory == first
        assert table(pilot).current.directory == first  # type: ignore[union-attr]


async def test_a_lost_run_is_resumed_and_a_live_one_is_not(made: Callable[..., Path]) -> None:
    lost = made(Plan(epochs=4), age=50, pid=dead_pid())
    made(Plan(model="mlp"))
    app = StubApp()
    async with app.run_test(size=SMALL) as pilot:
        await shows(pilot, "engine: ready")
        await open_runs(pilot)
        await until(pilot, lambda: table(pilot).current, "the cursor")
        await pilot.press("R")
        assert app.launch.is_starting is False
        assert "R Continue" not in text_of(pilot)
        await pilot.press("down")
        await shows(pilot, "R Continue")
        await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        assert app.engines[0].handed == [lost]


async def test_a_finished_run_cannot_be_resumed(made: Callable[..., Path]) -> None:
    made(Plan(), Outcome.FINISHED)
    app = BareApp()
    async with app.run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await shows(pilot, "c Compare", "q Quit")
        await pilot.press("R", "r")
        assert app.launch.is_starting is False
        assert "Resume" not in text_of(pilot)


async def test_a_run_is_planned_again(made: Callable[..., Path]) -> None:
    made(Plan(model="mlp", epochs=7, learning_rate=0.02), Outcome.FINISHED)
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await until(pilot, lambda: table(pilot).current, "the cursor")
        await pilot.press("n")
        await shows(pilot, "--model mlp --epochs 7 --learning-rate 0.02")


async def test_keys_of_a_finished_run_leave_room_for_the_keys_that_each_run_has(made: Callable[..., Path]) -> None:
    directory = made(Plan(model="mlp"), Outcome.FINISHED)
    (directory / "model.keras").touch()
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await shows(pilot, "⏎ Open", "space Select", "/ Filter", "c Compare", "esc Back", "q Quit", "? Help")


async def test_runs_of_late_are_on_the_plan_where_there_is_room(made: Callable[..., Path]) -> None:
    made(Plan(model="mlp"), Outcome.FINISHED, age=90)
    async with StubApp().run_test(size=WIDE) as pilot:
        await shows(pilot, "Recent runs", "✓ finished", "Start")
    async with StubApp().run_test(size=SMALL) as pilot:
        await shows(pilot, "Start")
        assert "finished" not in text_of(pilot)


async def test_recent_runs_begin_with_the_newest(made: Callable[..., Path]) -> None:
    for age in range(8):
        made(Plan(model="mlp"), Outcome.FINISHED, age=100 + age)
    async with StubApp().run_test(size=WIDE) as pilot:
        await shows(pilot, "Recent runs", "✓ finished")
        await until(pilot, lambda: len(table(pilot).shown) == 8, "all runs")
        table(pilot).scroll_to(y=table(pilot).max_scroll_y, animate=False, immediate=True)
        newest = made(Plan(), Outcome.FAILED)
        await until(pilot, lambda: table(pilot).shown[0].directory == newest, "the new run")
        assert table(pilot).scroll_offset.y == 0
        assert table(pilot).current == table(pilot).shown[0]


async def test_what_needs_a_model_is_offered_for_runs_that_have_one(made: Callable[..., Path]) -> None:
    trained = made(Plan(), Outcome.FINISHED, age=10)
    with Recorder("a script's") as recorder:
        recorder.log(0, loss=1.0)
    damaged = made(Plan(), Outcome.FINISHED)
    (damaged / DATABASE).write_bytes(b"no database")
    needs_model = ("bench", "evaluate", "export", "predict")
    async with BareApp().run_test(size=WIDE) as pilot:
        await open_runs(pilot)
        await until(pilot, lambda: len(table(pilot).shown) == 3, "the runs")
        offered = {}
        for line, run in enumerate(table(pilot).lines):
            table(pilot).go_to(line)
            if isinstance(run, Heading):
                assert not any(pilot.app.screen.check_action(each, ()) for each in needs_model)
                continue
            offered[run.directory] = {each for each in needs_model if pilot.app.screen.check_action(each, ())}
        assert offered == {trained: {*needs_model}, recorder.directory: set(), damaged: set()}
        table(pilot).selected = frozenset(run.id for run in table(pilot).shown)
        assert not pilot.app.screen.check_action("bench", ())
        assert not pilot.app.screen.check_action("evaluate", ())


async def test_a_run_is_opened_by_name_from_the_palette(made: Callable[..., Path]) -> None:
    directory = made(Plan(), Outcome.FINISHED)
    async with BareApp().run_test(size=WIDE) as pilot:
        await open_runs(pilot)
        await pilot.press("ctrl+p")
        await pilot.press(*directory.name[:6])
        await shows(pilot, f"Open {directory.name}")
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run")
