"""The screens of searches, on a study that a script has made, whose commands nobody or the test obeys."""

import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.run.directory.lock import WriterLock
from accel_engine.search import launch, new_study
from accel_engine.search.definition import SearchOptions
from accel_engine.search.study_database import StudyCommand, StudyDatabase
from accel_engine.search.study_paths import LOCK
from accel_engine.search.study_reader import StudyReader
from accel_engine.search.study_writer import StudyWriter
from accel_engine.search.trial import TrialState
from accel_tui.app_protocol import Screens
from accel_tui.screens.compare_screen import CompareScreen
from accel_tui.screens.entry_screen import OptionsScreen
from accel_tui.screens.new_run_screen import NewRunScreen
from accel_tui.screens.run_screen import RunScreen
from accel_tui.screens.runs_screen import RunsScreen
from accel_tui.screens.search_screen import SearchScreen
from accel_tui.screens.searches_screen import SearchesScreen
from accel_tui.study_state import study_follower
from accel_tui.widgets.search.study_view import VIEWS, StudyView
from accel_tui.widgets.search.trials_table import TrialLoss, TrialsTable
from example_study import DEFINITION, confirm, write_study
from tui.fake_engine import FakeEngine
from tui.stand_ins import BareApp, StubApp, more, shows, text_of, until

SMALL, WIDE, HUGE = (80, 24), (120, 40), (200, 50)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_follower, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(study_follower, "PENDING_SECONDS", 0.02)
    monkeypatch.setattr(study_follower, "ANSWER_SECONDS", 0.1)


@pytest.fixture
def runs(home: Path) -> tuple[FakeEngine, FakeEngine]:
    made = []
    for _ in range(2):
        engine = FakeEngine(Plan(epochs=30))
        engine.begin().build().train(100)
        made.append(engine)
    return made[0], made[1]


@pytest.fixture
def study(runs: tuple[FakeEngine, FakeEngine]) -> Path:
    directory = write_study(end=time.time(), runs=tuple(each.directory.name for each in runs))
    confirm(directory, 26)
    return directory


@pytest.fixture
def running(study: Path) -> Iterator[Path]:
    """The study, of which this process says that it runs it."""
    with WriterLock(study, LOCK):
        yield study


async def open_search(pilot: Pilot[None], directory: Path) -> None:
    pilot.app.open_screen(Screens.SEARCH, directory)  # type: ignore[attr-defined]
    await until(pilot, lambda: isinstance(pilot.app.screen, SearchScreen), "the search")
    await shows(pilot, "of 40 trials")
    await until(pilot, lambda: pilot.app.screen.query_one(StudyView).is_drawn, "the curves")


def table(pilot: Pilot[None]) -> TrialsTable:
    return pilot.app.screen.query_one(TrialsTable)


def number(pilot: Pilot[None]) -> int:
    current = table(pilot).current
    assert current
    return current.number


async def sent(pilot: Pilot[None], directory: Path) -> StudyCommand:
    """The command that was sent, which is answered."""
    with StudyDatabase(directory) as database:
        await until(pilot, database.commands, "a command")
        (command,) = database.commands()
        database.answer(command.id, f"did {command.name}", obeyed=command.name != "prune")
    await shows(pilot, f"did {command.name}")
    pilot.app.clear_notifications()
    return command


@pytest.mark.parametrize("size", [SMALL, *more(WIDE), HUGE])
async def test_progress_both_figures_curves_and_trials_are_there_and_follow(
    running: Path, size: tuple[int, int]
) -> None:
    async with BareApp().run_test(size=size) as pilot:
        await open_search(pilot, running)
        await shows(pilot, "● running  34 of 40 trials", "left", "best val accuracy 0.9935, trial 26")
        await shows(pilot, "trained again: 0.9726", "val accuracy by epoch", "1 Curves", "0.9086")
        assert ("weight decay" in text_of(pilot)) is (size is not SMALL)
        if size is not SMALL:
            await until(pilot, lambda: pilot.app.screen.query_one(TrialLoss).series, "the steps of the selected trial")
        with StudyReader(running) as reader:
            reader._storage.set_trial_user_attr(35, "report 11", [11, 550, time.time(), 0.9511])
        await shows(pilot, "0.9511")
        assert number(pilot) == 35


async def test_each_view_is_drawn_and_the_reason_of_a_failed_trial_is_told(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    async with BareApp().run_test(size=WIDE, notifications=True) as pilot:
        await open_search(pilot, study)
        await shows(pilot, "■ interrupted")
        words = ("by epoch", "best so far", "worst", "Importance for", "unfinished", "over learning rate")
        for key, (name, word) in enumerate(zip(VIEWS, words, strict=False), 1):
            await pilot.press(str(key))
            await until(pilot, lambda name=name: pilot.app.screen.query_one(StudyView).view == name, name)  # type: ignore[misc]
            await shows(pilot, word)
            assert pilot.app.screen.query_one(StudyView).figures, name
        await pilot.press("W")
        await until(pilot, lambda: any((tmp_path / "here").iterdir()), "a file of the chart")
        await shows(pilot, "batch size over learning rate")
        await pilot.press("right")
        await shows(pilot, "optimizer over learning rate")
        await pilot.press("tab")
        await until(pilot, lambda: pilot.app.screen.query_one(StudyView).view == "curves", "round to the first")
        await pilot.press("W")
        await until(pilot, lambda: len(list(Path.cwd().glob("*by-epoch.???"))) == 2, "the curves as files")
        assert "7 Front" not in text_of(pilot), "there is one objective"
        assert not pilot.app.screen.check_action("tab", ("7",))
        while number(pilot) != 7:
            await pilot.press("down")
        await shows(pilot, "trial 7 failed: the loss became NaN at step 12")
        await pilot.press("f")
        await until(pilot, lambda: not table(pilot).display, "the view alone")


async def test_all_of_a_long_reason_is_below_the_table(study: Path) -> None:
    reason = f"the loss became NaN at step 12: {', '.join(f'layer {number}' for number in range(20))}; the end"
    with StudyWriter(study) as writer:
        writer.put(replace(writer.trials[35], state=TrialState.FAILED, reason=reason))
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_search(pilot, study)
        await shows(pilot, "trial 35 failed: the loss became", "; the end")
        await pilot.press("down")
        await until(pilot, lambda: "; the end" not in text_of(pilot), "the reason of another trial")


async def test_keys_command_the_trial_under_the_cursor_and_answers_are_shown(running: Path) -> None:
    async with BareApp().run_test(size=WIDE, notifications=True) as pilot:
        await open_search(pilot, running)
        await pilot.press("s")
        await shows(pilot, "Stop trial 35?", "What it has reached counts")
        await pilot.press("escape")
        for keys, name in (("ss", "stop_trial"), (("delete", "p"), "prune")):
            await pilot.press(*keys)
            command = await sent(pilot, running)
            assert (command.name, command.trial) == (name, 35)
        await pilot.press("down", "down", "R")
        await shows(pilot, "Prolong trial 33")
        await pilot.press(*"x", "enter")
        await shows(pilot, "must be a number of epochs")
        await pilot.press("backspace", "backspace", "8", "enter")
        command = await sent(pilot, running)
        assert (command.name, command.trial, command.argument) == ("prolong", 33, 8)
        await pilot.press("q")
        await shows(pilot, "Quit accel-tui? The search is running.", f"search --resume {running.name}")
        await pilot.press("escape", "X")
        await shows(pilot, "Stop the search?")
        await pilot.press("s")
        assert (await sent(pilot, running)).name == "stop"


async def test_the_number_of_trials_is_changed_while_it_runs_and_a_bad_one_is_refused_at_once(running: Path) -> None:
    async with BareApp().run_test(size=WIDE, notifications=True) as pilot:
        await open_search(pilot, running)
        await pilot.press("e")
        await shows(pilot, "Change the number of trials")
        field = pilot.app.screen.query_one("#trials", Input)
        field.value = "many"
        await shows(pilot, "must be a number of trials")
        await pilot.press("enter")
        field.value = "60"
        await shows(pilot, "enter searches with 60 trials")
        await pilot.press("enter")
        command = await sent(pilot, running)
        assert (command.name, command.argument) == ("set_trials", 60)


async def test_without_a_process_nothing_is_commanded_but_the_search_is_continued(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    continued: list[Path] = []
    monkeypatch.setattr(launch, "resume_study", continued.append)
    async with BareApp().run_test(size=WIDE, notifications=True) as pilot:
        await open_search(pilot, study)
        for key in ("s", "delete", "e", "X"):
            await pilot.press(key)
        assert isinstance(pilot.app.screen, SearchScreen)
        with StudyDatabase(study) as database:
            assert not database.commands()
        await pilot.press("R")
        await until(pilot, lambda: continued == [study], "the process")

        def refuse(directory: Path) -> None:
            raise RunError("the disk is full")

        monkeypatch.setattr(launch, "resume_study", refuse)
        await pilot.press("R")
        await shows(pilot, "the disk is full")


async def test_trials_are_runs_that_are_opened_and_compared_and_plans_for_the_form(study: Path) -> None:
    async with BareApp().run_test(size=WIDE, notifications=True) as pilot:
        await open_search(pilot, study)
        await pilot.press("space", "space", "c")
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen), "the comparison")
        pilot.app.pop_screen()
        await pilot.press("home", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run")
        pilot.app.pop_screen()
        await until(pilot, lambda: isinstance(pilot.app.screen, SearchScreen), "the search again")
        await pilot.press("greater_than_sign", "greater_than_sign")
        assert number(pilot) == 26, "by the objective, best first"
        await pilot.press("B")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewRunScreen), "the form")
        await until(pilot, lambda: "optimizer" in screen_form(pilot).changed, "the best plan")
        assert screen_form(pilot).filled.plan.optimizer == "adamw"


def screen_form(pilot: Pilot[None]) -> Any:
    screen = pilot.app.screen
    assert isinstance(screen, NewRunScreen)
    return screen.form


async def test_several_searches_are_a_list_and_one_opens_at_once(study: Path) -> None:
    async with BareApp().run_test(size=WIDE, notifications=True) as pilot:
        await pilot.press("r")
        await shows(pilot, "2 runs")
        await pilot.press("S")
        await until(pilot, lambda: isinstance(pilot.app.screen, SearchScreen), "the only one")
        write_study(12, 10, definition=replace(DEFINITION, name="another"), seed=1)
        await pilot.press("S")
        await until(pilot, lambda: isinstance(pilot.app.screen, SearchesScreen), "the list")
        await shows(pilot, "another", "digits-cnn", "34 of 40", "0.9935", "learning rate, bat")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, SearchScreen), "a search")


async def test_a_form_with_ranges_searches(home: Path, monkeypatch: pytest.MonkeyPatch, study: Path) -> None:
    started: list[Any] = []

    def start_study(plan: Plan, given: Collection[str], options: SearchOptions, place: object) -> Path:
        assert place is None
        started.append((plan, given, options))
        return study

    monkeypatch.setattr(new_study, "start_study", start_study)
    async with StubApp().run_test(size=WIDE, notifications=True) as pilot:
        await shows(pilot, "Start")
        screen_form(pilot).set("learning_rate", "1e-1..1e-4:log")
        await shows(pilot, "is reversed")
        screen_form(pilot).set("learning_rate", "1e-4..1e-1:log")
        screen_form(pilot).set("batch_size", "32,64,128")
        await shows(pilot, "2 parameters", "$ accel-tui search", "--over learning_rate=0.0001..0.1:log")
        await pilot.press("s")
        await shows(pilot, "2 fields of the form vary")
        await pilot.press("S")
        await until(pilot, lambda: isinstance(pilot.app.screen, OptionsScreen), "the questions")
        await shows(pilot, "trials", "validation_accuracy", "ctrl+s searches")
        assert not pilot.app.screen.query("Toast")
        pilot.app.screen.query_one("#within", Input).value = "2"
        await shows(pilot, "needs a unit")
        pilot.app.screen.query_one("#within", Input).value = "2h"
        await shows(pilot, "ctrl+s searches")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, SearchScreen), "the search")
        ((plan, given, options),) = started
        assert plan.monitor == "validation_accuracy"
        assert given == set()
        assert (options.trials, options.within, options.direction) == (40, "2h", "maximize")
        assert [each.name for each in options.parameters] == ["batch_size", "learning_rate"]


async def test_a_search_that_starts_late_does_not_take_the_screen_that_was_opened_meanwhile(
    home: Path, monkeypatch: pytest.MonkeyPatch, study: Path
) -> None:
    may_go_on = threading.Event()
    monkeypatch.setattr(new_study, "start_study", lambda *_: may_go_on.wait() and study)
    async with StubApp().run_test(size=WIDE, notifications=True) as pilot:
        await shows(pilot, "Start")
        screen_form(pilot).set("batch_size", "32,64,128")
        await shows(pilot, "1 parameter")
        await pilot.press("S")
        await until(pilot, lambda: isinstance(pilot.app.screen, OptionsScreen), "the questions")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewRunScreen), "the form")
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen), "the list")
        may_go_on.set()
        await shows(pilot, "Search started")
        assert isinstance(pilot.app.screen, RunsScreen)
