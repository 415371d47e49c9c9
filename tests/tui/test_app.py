"""Ways through the app, and what it leaves behind."""

import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from textual._xterm_parser import XTermParser
from textual.command import CommandList, CommandPalette
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from accel_engine.events import Outcome
from accel_engine.plan import Plan
from accel_engine.run import Annotations
from accel_engine.run.store.database import RunDatabase
from accel_tui import app as app_module
from accel_tui.app_protocol import Screens
from accel_tui.appearance.theme import DARK, LIGHT
from accel_tui.screens.asking import Answer, QuestionScreen
from accel_tui.screens.diagnostics_screen import DiagnosticsScreen
from accel_tui.screens.entry_screen import OptionsScreen
from accel_tui.screens.help_screen import HelpScreen
from accel_tui.screens.new_run_screen import NewRunScreen
from accel_tui.screens.run_questions import LearningRateScreen
from accel_tui.screens.run_screen import RunScreen
from accel_tui.screens.runs_screen import RunsScreen
from accel_tui.screens.select_charts_screen import SelectChartsScreen
from accel_tui.screens.too_small_screen import TooSmallScreen
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.plan.picker import FieldInput
from tui.fake_engine import FakeEngine
from tui.stand_ins import BareApp, StubApp, begun, shows, until

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture
def ended() -> Path:
    engine = FakeEngine(Plan())
    engine.begin().build().train(50)
    engine.end(Outcome.FINISHED)
    engine.close()
    return engine.directory


async def test_it_can_open_on_a_run_and_then_warms_no_engine(ended: Path) -> None:
    app = StubApp(open_run=ended)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, ended.name)
        assert isinstance(app.screen, RunScreen)
        assert app.engines == []
        app.open_screen(Screens.NEW_RUN, Plan(model="mlp"))
        await shows(pilot, "--model mlp", "engine: ready")
        assert len(app.engines) == 1


async def test_there_is_one_screen_of_a_kind(ended: Path) -> None:
    app = StubApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "Start")
        for _ in range(2):
            app.open_screen(Screens.RUNS)
            await until(pilot, lambda: isinstance(app.screen, RunsScreen), "the runs")
            app.open_screen(Screens.RUN, ended)
            await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
            app.open_screen(Screens.RUN, ended)
        assert [type(screen) for screen in app.screen_stack] == [NewRunScreen, RunsScreen, RunScreen]
        app.open_screen(Screens.NEW_RUN)
        assert [type(screen) for screen in app.screen_stack] == [NewRunScreen]


async def test_garbage_is_collected_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[str] = []

    def observe(phase: str, info: dict[str, int]) -> None:
        if info["generation"] == 2:
            collected.append(phase)

    monkeypatch.setattr(app_module, "GARBAGE_SECONDS", 0.01)
    thresholds = gc.get_threshold()
    gc.disable()  # as the command that opens the dashboard has it
    gc.callbacks.append(observe)
    try:
        async with BareApp().run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: collected.count("stop") > 1, "garbage to be collected twice")
            assert gc.isenabled()
    finally:
        gc.callbacks.remove(observe)
        gc.enable()
        gc.unfreeze()
        gc.set_threshold(*thresholds)


async def test_the_warm_engine_ends_with_the_app() -> None:
    app = StubApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "engine: ready")
        await pilot.press("q")
    assert app.engines[0].closed


@pytest.mark.parametrize("field", [False, True])
async def test_interrupting_leaves_from_fields_too_unless_something_is_selected(field: bool) -> None:
    app = StubApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "Start")
        if field:
            typed = app.screen.query(Input).first()
            typed.value = "name"
            typed.focus()
            await until(pilot, lambda: typed.has_focus, "the field")
            assert isinstance(typed, FieldInput)
            typed.begin()  # which selects all
            await pilot.press("ctrl+c")
            assert (app.clipboard, app._exit) == ("name", False)
            await pilot.press("end")
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app._exit, "the end")


@asynccontextmanager
async def asked(key: str) -> AsyncIterator[tuple[StubApp, Pilot[None], Path]]:
    """The app on the run of an engine that trains, once a key has it ask what becomes of that."""
    engine = FakeEngine()
    engine.begin().build().train(20)
    app = StubApp(open_run=engine.directory)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "training")
        await pilot.press(key)
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen), "the question")
        yield app, pilot, engine.directory
    engine.close()


def commands(directory: Path) -> list[object]:
    """The commands that the engine was sent."""
    with closing(RunDatabase(directory, read_only=True)) as connection:
        return list(connection.execute("SELECT name FROM command"))


async def test_interrupting_asks_as_leaving_does() -> None:
    async with asked("ctrl+c") as (app, pilot, directory):
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        app.open_screen(Screens.DIAGNOSTICS, directory)
        await until(pilot, lambda: isinstance(app.screen, DiagnosticsScreen), "the inside")
        await pilot.press("question_mark", "ctrl+c")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen), "the question")
        assert not app._exit
        assert not app._notifications


async def test_a_question_that_is_left_for_the_screen_below_is_answered_with_nothing() -> None:
    async with asked("s") as (app, pilot, directory):
        app.open_screen(Screens.RUN, directory)
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        left = [each for each in app.workers if each.group == "actions"]
        await until(pilot, lambda: all(each.is_finished for each in left), "the end of what asked")
        assert commands(directory) == []


@pytest.mark.parametrize("key", ["ctrl+c", "ctrl+q"])
async def test_keys_that_leave_leave_when_pressed_again_and_answer_no_question(key: str) -> None:
    async with asked(key) as (app, pilot, directory):
        assert not app._exit
        await pilot.press(key)
        await until(pilot, lambda: app._exit, "the end")
        assert commands(directory) == []


DIALOGS: dict[str, Callable[[StubApp], Screen[Any]]] = {
    "help": lambda app: HelpScreen(app.screen),
    "palette": lambda _: CommandPalette(),
    "charts": lambda _: SelectChartsScreen((), ()),
    "rate": lambda _: LearningRateScreen(None),
    "edit": lambda _: OptionsScreen("Edit one", OptionForm(Annotations, ("name", "tags"))),
    "question": lambda _: QuestionScreen("Delete?", "All of it.", (Answer("yes", "Yes", "y"),)),
}


@pytest.mark.parametrize("dialog", DIALOGS)
async def test_interrupting_leaves_from_dialogs_too(dialog: str) -> None:
    app = BareApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(DIALOGS[dialog](app))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app._exit, "the end")


async def test_interrupting_leaves_without_a_question_where_there_is_no_room_for_one() -> None:
    async with asked("ctrl+c") as (app, pilot, directory):
        await pilot.press("escape")
        await pilot.resize_terminal(30, 5)
        await until(pilot, lambda: isinstance(app.screen, TooSmallScreen), "too small a window")
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app._exit, "the end")
        assert commands(directory) == []


async def test_the_two_themes_take_turns() -> None:
    app = BareApp()
    async with app.run_test(size=(80, 24)) as pilot:
        assert app.theme == DARK.name
        await pilot.press("t")
        assert app.theme == LIGHT.name
        app.theme = "nord"
        await pilot.press("t")
        assert app.theme == LIGHT.name


async def test_a_worker_that_fails_is_said_and_ends_nothing() -> None:
    app = BareApp()
    async with app.run_test(size=(80, 24)) as pilot:

        def fail() -> None:
            raise ZeroDivisionError("nobody thought of this")

        app.run_worker(fail, thread=True, exit_on_error=False, group="test")
        await until(pilot, lambda: app._notifications, "the notification")
        assert any("nobody thought of this" in each.message for each in app._notifications)


async def test_keys_that_come_twice_close_a_screen_once() -> None:
    async with BareApp().run_test(size=(120, 40)) as pilot:
        await begun(pilot)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: pilot.app.screen.id == "--command-palette", "the palette")
        pilot.app.screen.query_one(Input).value = "light/dark"
        await until(pilot, lambda: pilot.app.screen.query_one(CommandList).option_count == 1, "the only command")
        for _ in range(4):  # at once, as a held key or a slow connection sends them
            for event in XTermParser().feed("\r"):
                assert pilot.app._driver
                pilot.app._driver.process_message(event)
        await until(pilot, lambda: pilot.app.screen.id != "--command-palette", "the form")
        assert len(pilot.app.screen_stack) == 1
