"""The screen of a race, on processes of stand-ins whose rates are known."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from textual.pilot import Pilot

from accel_engine.measure.trial_memory import MemoryBudget
from accel_engine.plan import Plan
from accel_engine.race.race import Race
from accel_tui.app_protocol import Screens
from accel_tui.screens import race_screen
from accel_tui.screens.new_run_screen import NewRunScreen
from accel_tui.screens.race_screen import RaceScreen
from accel_tui.screens.runs_screen import RunsScreen
from engine.race.stand_ins import Behaviour, StandInTrials, no_meters
from tui.stand_ins import MACHINE, StubApp, hides, more, shows, text_of, until
from waiting import wait_until

BEHAVIOURS = {
    "xla=on": Behaviour(2200.0, memory=3e8, losses=(2.0, 1.5, 1.250001)),
    "precision=mixed_bfloat16": Behaviour(300.0, losses=(2.0, 1.5, 1.3)),
    "remat=on": Behaviour(800.0, memory=5e7),
    "micro_batches=4": Behaviour(problem="out of memory", fails_after=3, out_of_memory=True),
    "threads=1": Behaviour(1400.0),
    "xla=on,threads=1": Behaviour(2600.0, memory=3e8),
}


class Machine:
    """Races on stand-ins, whose turns wait while the test holds them."""

    def __init__(self) -> None:
        self.may_go_on = Event()
        self.may_go_on.set()
        self.trials = StandInTrials(BEHAVIOURS, on_turn=self._wait)

    def _wait(self, plan: Plan) -> None:
        if plan.threads == 1:
            while not self.may_go_on.wait(0.01) and not self.trials.should_stop():
                pass


@pytest.fixture
def machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    machine = Machine()
    budget = MemoryBudget(available=lambda: 1 << 50)
    raced = partial(Race, make_trials=machine.trials, make_meters=no_meters, budget=budget)
    monkeypatch.setattr(race_screen, "Race", raced)
    monkeypatch.setattr(race_screen, "detect", lambda: MACHINE)
    yield machine
    machine.may_go_on.set()


async def open_race(pilot: Pilot[None]) -> RaceScreen:
    await shows(pilot, "Start", "engine: ready")
    await pilot.press("b")
    await until(pilot, lambda: isinstance(pilot.app.screen, RaceScreen), "the screen")
    assert isinstance(pilot.app.screen, RaceScreen)
    return pilot.app.screen


def line_of(pilot: Pilot[None], title: str) -> str:
    return next(line for line in text_of(pilot).splitlines() if line.strip("│ ").startswith(title))


@pytest.mark.parametrize("size", [(80, 24), *more((120, 40)), (200, 50)])
async def test_a_race_has_bars_figures_marks_and_a_verdict(machine: Machine, size: tuple[int, int]) -> None:
    async with StubApp().run_test(size=size) as pilot:
        await open_race(pilot)
        await shows(pilot, "The fastest is combined: XLA, 1 thread, 2.6 times as fast as this plan")
        await shows(pilot, "--xla on --threads 1", "between 2.60k and 2.60k")  # the fastest is selected
        assert "━" in line_of(pilot, "XLA")
        assert "2.20x" in line_of(pilot, "XLA")
        assert line_of(pilot, "XLA").count("━") < line_of(pilot, "combined").count("━")
        assert line_of(pilot, "combined: XLA, 1 thread ").count("━") >= 15
        await shows(pilot, "fastest")  # in its line, or below the table
        if size[0] > 80:
            assert "least memory" in line_of(pilot, "rematerialization")
            assert "ended early" in line_of(pilot, "mixed_bfloat16")
        assert "failed: out of memory" in line_of(pilot, "4 micro-batches")
        if size[0] > 150:
            assert "within 1e-5" in line_of(pilot, "XLA")
            assert "2.0 s" in line_of(pilot, "XLA")
        assert not any(process.is_open for process in machine.trials.processes)


async def test_the_selected_configuration_is_explained_and_taken_into_the_form(machine: Machine) -> None:
    async with StubApp().run_test(size=(80, 24)) as pilot:
        await open_race(pilot)
        await shows(pilot, "The fastest is")
        await pilot.press("home", "down", "down")
        await shows(pilot, "--xla on", "memory 286 MiB of the host, compiled in 2.0 s", "within 1e-5, 3 steps")
        await shows(pilot, "refused, & shows why")
        await hides(pilot, "is far slower than float32")
        await pilot.press("ampersand", "end")
        await shows(pilot, "is far slower than float32")  # all of the reason
        assert not pilot.app.screen.check_action("take", ())
        await pilot.press("home", "down", "down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewRunScreen), "the form")
        await shows(pilot, "--xla on")
        assert "changed: --xla on" in [each.message for each in pilot.app._notifications]
        screen = pilot.app.screen
        assert isinstance(screen, NewRunScreen)
        assert screen.form.filled.plan.xla == "on"


async def test_escape_stops_and_keeps_what_was_measured(machine: Machine) -> None:
    machine.may_go_on.clear()
    async with StubApp().run_test(size=(120, 40)) as pilot:
        screen = await open_race(pilot)
        await shows(pilot, "configurations measured", "2.20x", " left")
        assert not text_of(pilot).count("0 of "), "rows have figures already"
        assert "fastest" in line_of(pilot, "XLA")
        assert "fastest" not in line_of(pilot, "1 thread"), "its turns wait"
        await pilot.press("home", "enter")
        await shows(pilot, "Take this plan?", "measured so far. The race stops")
        asked = {
            "escape": ("End the race?", "measured so far. What is measured", "stays on the screen."),
            "q": ("Quit accel-tui? It ends the race.", "so far. What is found so", "far is lost.", "and quit e"),
        }
        for key, words in asked.items():  # neither ends a race without asking
            await pilot.press("escape", key)
            await shows(pilot, *words)
            assert any(process.is_open for process in machine.trials.processes)
        await pilot.press("escape", "escape")
        await shows(pilot, "End the race?")
        await pilot.press("e")
        await shows(pilot, "Ended. The fastest is XLA, 2.2 times as fast")
        assert not any(process.is_open for process in machine.trials.processes)
        machine.may_go_on.set()
        await pilot.press("s")
        await shows(pilot, "The fastest is combined")
        await hides(pilot, "Ended")
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is not screen, "the form")


async def test_a_race_that_other_screens_cover_does_not_end_without_a_question(machine: Machine) -> None:
    machine.may_go_on.clear()
    app = StubApp()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await open_race(pilot)
        await shows(pilot, "2.20x")
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen), "the runs")
        for leave, asked in (
            (lambda: app.open_screen(Screens.NEW_RUN, Plan()), "End the race?"),
            (lambda: pilot.app.simulate_key("q"), "Quit accel-tui? It ends the race."),
        ):
            leave()
            await shows(pilot, asked, "is lost.")
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, RunsScreen), "the runs")
            assert screen.is_working
        await pilot.press("escape")  # goes back by one screen
        await until(pilot, lambda: app.screen is screen, "the race")
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen), "the runs")
        app.open_screen(Screens.NEW_RUN)
        await shows(pilot, "End the race?")
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen), "the form")
        assert app.screen_stack == [app.screen]


async def test_a_configuration_that_is_taken_ends_the_race_without_another_question(machine: Machine) -> None:
    machine.may_go_on.clear()
    async with StubApp().run_test(size=(80, 24)) as pilot:
        await open_race(pilot)
        await shows(pilot, "2.20x")
        await pilot.press("home", "enter")
        await shows(pilot, "Take this plan?")
        await pilot.press("t")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewRunScreen), "the form")


async def test_the_form_tells_what_a_race_has_measured(machine: Machine) -> None:
    async with StubApp().run_test(size=(120, 40)) as pilot:
        await open_race(pilot)
        await shows(pilot, "The fastest is")
        await pilot.press("escape")
        await shows(pilot, "measured", "1,000 ±0% examples/s")  # the plan's own, not XLA's
        await shows(pilot, "1.4 s of steps", "--xla on --threads 1:", "2.60")


async def test_runs_that_train_meanwhile_are_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_screen, "device_warnings", lambda _: ("run m8w3 is training on cpu:0",))
    async with StubApp().run_test(size=(80, 24), notifications=True) as pilot:
        await open_race(pilot)
        await shows(pilot, "run m8w3 is training")


async def test_processes_end_with_the_app(machine: Machine) -> None:
    machine.may_go_on.clear()
    async with StubApp().run_test(size=(80, 24)) as pilot:
        await open_race(pilot)
        await shows(pilot, "2.20x")
    wait_until(lambda: not any(process.is_open for process in machine.trials.processes))


async def test_a_plan_that_cannot_be_raced_says_why(machine: Machine) -> None:
    async with StubApp().run_test(size=(80, 24)) as pilot:
        await shows(pilot, "Start")
        app = pilot.app
        assert isinstance(app, StubApp)
        app.open_screen(Screens.RACE, Plan(strategy="multi-worker"))
        await shows(pilot, "needs TF_CONFIG")


async def test_on_a_device_for_one_process_the_details_name_what_was_not_in_turns(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = MemoryBudget(is_exclusive=True)
    monkeypatch.setattr(
        race_screen, "Race", partial(Race, make_trials=machine.trials, make_meters=no_meters, budget=budget)
    )
    async with StubApp().run_test(size=(80, 24)) as pilot:
        await open_race(pilot)
        await shows(pilot, "2.6 times as fast as this plan", "25 turns, not beside this plan")
