"""The screen of the queue, and the ways into it; nobody starts the runs."""

import os
from contextlib import closing
from dataclasses import replace

import pytest
from textual.pilot import Pilot

from accel_engine import run
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.process.engine_process import Installation
from accel_engine.run import Status
from accel_engine.run.runs.creation import assign_process
from accel_engine.run_queue import queue, queue_database
from accel_engine.run_queue.queue_database import changing_queue
from accel_engine.run_queue.queue_entries import QueueRequest, WaitReason
from accel_tui.screens import queue_screen
from accel_tui.screens.asking import QuestionScreen
from accel_tui.screens.new_run_screen import NewRunScreen
from accel_tui.screens.queue_screen import QueueScreen, QueueTable
from accel_tui.screens.run_screen import RunScreen
from accel_tui.screens.runs_screen import RunsScreen
from accel_tui.widgets.key_bar import RunsBadge
from tui.fake_engine import FakeEngine
from tui.stand_ins import BareApp, StubApp, begun, more, shows, text_of, until

SMALL, WIDE, LARGE = (80, 24), (120, 40), (200, 50)


@pytest.fixture(autouse=True)
def _asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_screen, "INTERVAL", 0.1)
    monkeypatch.setattr(queue_database, "start_waiter", lambda: None)
    monkeypatch.setattr(engine_process, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))


def add(name: str, **asks: object) -> str:
    directory = run.create(Plan(model="mlp", name=name), queued=True)
    queue.enqueue(directory, QueueRequest(**asks))  # type: ignore[arg-type]
    return directory.name


def waiting() -> list[str]:
    return [entry.run for entry in queue.entries() if not entry.is_started]


def start(run_id: str) -> FakeEngine:
    """Start a run of the queue."""
    with changing_queue() as database:
        entry = database.find(run_id)
        assert entry
        database.put(replace(entry, state="started", devices=("gpu:1",)))
        database.set_reasons(dict.fromkeys(waiting(), WaitReason(f"{run_id} trains; one at once on the CPU")))
    assign_process(entry.directory, os.getpid())
    engine = FakeEngine(directory=entry.directory)
    engine.begin().build()
    return engine


async def open_queue(pilot: Pilot[None]) -> QueueTable:
    await begun(pilot)
    await pilot.press("r", "Q")
    await until(pilot, lambda: isinstance(pilot.app.screen, QueueScreen), "the queue")
    return pilot.app.screen.query_one(QueueTable)


async def test_an_empty_queue_says_how_to_fill_it() -> None:
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_queue(pilot)
        await shows(pilot, "The queue of this machine is empty.", "Press N for a new run, then a")
        await pilot.press("N")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewRunScreen), "New run")


@pytest.mark.parametrize("size", [SMALL, *more(WIDE, LARGE)])
async def test_runs_are_listed_in_their_order_with_why_they_wait(size: tuple[int, int]) -> None:
    first = add("first")
    add("second", priority=3, after=(first,))
    queue.hold(add("third"))
    async with BareApp().run_test(size=size) as pilot:
        await open_queue(pilot)
        await shows(
            pilot, "0 of these running, 3 queued", "prio", "+3", f"after {first}", "held by", "h Hold", "K Move up"
        )
        lines = [line for each in text_of(pilot).splitlines() if (line := each.lstrip("│ "))[:1] in ("○", "‖")]
        assert [line.split()[1:3][0] for line in lines] == ["1", "2", "3"]
        assert "second" in lines[0]


async def test_a_started_run_shows_its_progress() -> None:
    one, other = add("one"), add("other")
    with closing(start(one)) as engine:
        engine.train(200)
        async with BareApp().run_test(size=WIDE) as pilot:
            table = await open_queue(pilot)
            await shows(pilot, "1 of these running, 1 queued", "running  ━━━━━━━━          50%", "gpu:1")
            await shows(pilot, f"{one} trains; one at once on the CPU")
            await until(pilot, lambda: table.current, "a row")
            assert table.current.entry.run == one
            assert "h Hold" not in text_of(pilot)
            await pilot.press("delete")
            await shows(pilot, f"Stop {one}?")
    assert waiting() == [other]


async def test_the_timeline_shows_who_holds_which_device_until_when() -> None:
    with closing(FakeEngine(Plan(model="mlp", epochs=2))) as past:
        past.begin().build().train(200)
        past.end()
    one, *_ = add("one"), add("soon"), add("later")
    queue.hold(add("never"))
    with closing(start(one)) as engine:
        engine.train(200)
        async with BareApp().run_test(size=WIDE) as pilot:
            await open_queue(pilot)
            await shows(pilot, "gpu:1", "one", "cpu:0", "soon", "takes", "now", "start of never")
            await pilot.resize_terminal(*SMALL)
            await shows(pilot, "Timeline", "gpu:1", "unknown  start of never")


async def test_the_badge_counts_live_and_waiting_runs_on_every_screen_and_a_click_lists_them() -> None:
    one, _ = add("one"), add("other")
    with closing(start(one)) as engine:
        engine.train(10)
        async with BareApp().run_test(size=SMALL) as pilot:
            await open_queue(pilot)
            await shows(pilot, "● 1 running  ○ 1 queued")
            await pilot.click(RunsBadge, offset=(1, 0))
            await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen), "the runs")
            await shows(pilot, "● 1 running  ○ 1 queued")
            await pilot.click(RunsBadge, offset=(14, 0))
            await until(pilot, lambda: isinstance(pilot.app.screen, QueueScreen), "the queue")
        async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
            await shows(pilot, "● 1 running  ○ 1 queued", engine.directory.name)


async def test_keys_change_the_order_and_the_cursor_stays_on_its_run() -> None:
    runs = [add(name) for name in ("one", "two", "three")]
    async with BareApp().run_test(size=SMALL) as pilot:
        table = await open_queue(pilot)
        await until(pilot, lambda: len(table.shown) == 3, "the rows")
        await pilot.press("j", "K")
        await until(pilot, lambda: waiting() == [runs[1], runs[0], runs[2]], "the move")
        await until(pilot, lambda: table.shown[0].entry.run == runs[1], "the new order")
        assert table.current.entry.run == runs[1]
        await pilot.press("minus")
        await until(pilot, lambda: waiting() == [runs[0], runs[2], runs[1]], "the lower priority")
        await until(pilot, lambda: table.current.entry.position == 3, "the new order")
        await pilot.press("plus", "h")
        await until(pilot, lambda: any(entry.is_held for entry in queue.entries()), "the hold")
        await shows(pilot, "h Release", "K Move up", "del Cancel run", "q Quit", "? Help")
        await pilot.press("h")
        await until(pilot, lambda: not any(entry.is_held for entry in queue.entries()), "the release")


async def test_a_run_is_taken_out_after_a_question() -> None:
    one = add("one")
    async with BareApp().run_test(size=SMALL) as pilot:
        table = await open_queue(pilot)
        await until(pilot, lambda: table.shown, "the rows")
        await pilot.press("delete")
        await shows(pilot, f"Cancel run {one}?")
        await pilot.press("escape", "delete")
        await shows(pilot, f"Cancel run {one}?")
        await pilot.press("c")
        await shows(pilot, "The queue of this machine is empty.")
        await until(pilot, lambda: run.list_runs()[0].status is Status.STOPPED, "the end of the run")


async def test_the_limit_is_asked_for() -> None:
    add("one")
    async with BareApp().run_test(size=SMALL) as pilot:
        table = await open_queue(pilot)
        await until(pilot, lambda: table.shown, "the rows")
        await pilot.press("e")
        await shows(pilot, "Most runs at once")
        await pilot.press("end", *["backspace"] * 4, "0")
        await shows(pilot, "must be a number from 1 to 1,000, or auto")
        await pilot.press("backspace", "2", "enter")
        await shows(pilot, "at most 2 at once")
    assert queue.limit() == 2


async def test_a_queued_run_says_why_it_waits_and_goes_on_live() -> None:
    one = add("one")
    queue.hold(one)
    async with BareApp().run_test(size=SMALL) as pilot:
        table = await open_queue(pilot)
        await until(pilot, lambda: table.shown, "the rows")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run")
        await shows(pilot, "○ queued  held by", "s Stop")
        assert "p Pause" not in text_of(pilot)
        queue.release(one)
        with closing(start(one)) as engine:
            engine.train(10)
            await shows(pilot, "training", "p Pause")


async def test_a_queued_run_is_cancelled_from_its_screen() -> None:
    one = add("one")
    async with StubApp(run.runs_directory() / one).run_test(size=SMALL) as pilot:
        await shows(pilot, "○ queued", "s Stop")
        await pilot.press("s")
        await shows(pilot, f"Cancel run {one}?")
        await pilot.press("s")
        await shows(pilot, "stopped", "Cancelled in the queue by")


async def test_a_plan_is_queued_from_the_form() -> None:
    async with StubApp().run_test(size=WIDE) as pilot:
        await begun(pilot)
        await pilot.press("a")
        await until(pilot, waiting, "the queued run")
        said = f"{waiting()[0]}, position 1"
        await until(pilot, lambda: said in [each.message for each in pilot.app._notifications], "the toast")
        assert isinstance(pilot.app.screen, NewRunScreen)
        await pilot.press("a")
        await until(pilot, lambda: len(waiting()) == 2, "the second one")


@pytest.mark.parametrize(("key", "queued", "handed"), [("q", 1, 0), ("s", 0, 1), ("escape", 0, 0)])
async def test_starting_beside_another_run_is_asked(key: str, queued: int, handed: int) -> None:
    with closing(FakeEngine(Plan(name="mine"))) as mine:
        mine.begin().build()
        app = StubApp()
        async with app.run_test(size=SMALL) as pilot:
            await begun(pilot)
            await pilot.press("s")
            await shows(pilot, "Start beside another run?", mine.directory.name)
            assert isinstance(app.screen, QuestionScreen)
            await pilot.press(key)
            await until(pilot, lambda: not isinstance(app.screen, QuestionScreen), "the answer")
            await until(pilot, lambda: not app.launch.is_starting, "the start")
            await until(pilot, lambda: len(waiting()) == queued, "the queue")
            await until(pilot, lambda: sum(len(engine.handed) for engine in app.engines) == handed, "the start")
