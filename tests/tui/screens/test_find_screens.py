"""The screens that find a learning rate and a batch size, on what stand-ins for the finders find."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

import pytest
from textual.pilot import Pilot

from accel_engine.errors import RunError
from accel_engine.finders.learning_rate_finder import RampProgress
from accel_engine.finders.throughput import SizeProgress
from accel_engine.measure.trial_process import TrialCancelledError
from accel_tui.app_protocol import Screens
from accel_tui.screens import find_rate_screen, find_size_screen, finder_screen
from accel_tui.screens.find_rate_screen import FindRateScreen
from accel_tui.screens.find_size_screen import FindSizeScreen
from accel_tui.screens.new_run_screen import NewRunScreen
from tui.finder_results import found_rate, found_size, nothing_found
from tui.stand_ins import StubApp, more, shows, text_of, until


class Finders:
    """Stand in for both finders: each shows some progress, and waits until it may end or is cancelled."""

    may_end: ClassVar[Event]
    result: ClassVar[Any] = None
    problem: ClassVar[str] = ""
    cancelled: ClassVar[list[bool]]

    @classmethod
    def rate(cls, _source: Any, on_progress: Callable[[Any], object], *, options: Any, should_stop: Any) -> Any:
        del options
        found = cls.result or found_rate()
        on_progress(RampProgress("the run is paused", found.ramps[:1], 1, 3, 0.33))
        return cls._end(found, should_stop)

    @classmethod
    def size(cls, _plan: Any, on_progress: Callable[[Any], object], *, options: Any, should_stop: Any) -> Any:
        del options
        found = cls.result or found_size()
        on_progress(SizeProgress("measuring batch size 16: starting", size=16))
        on_progress(SizeProgress("measuring batch size 64: starting", found.measured[:2], 64, seconds_left=80.0))
        return cls._end(found, should_stop)

    @classmethod
    def _end(cls, found: Any, should_stop: Callable[[], bool]) -> Any:
        while not cls.may_end.wait(0.01):
            if should_stop():
                cls.cancelled.append(True)
                raise TrialCancelledError
        if cls.problem:
            raise RunError(cls.problem)
        return found


@pytest.fixture
def finders(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Finders]]:
    monkeypatch.setattr(Finders, "may_end", Event(), raising=False)
    monkeypatch.setattr(Finders, "cancelled", [], raising=False)
    monkeypatch.setattr(find_rate_screen, "find_learning_rate", Finders.rate)
    monkeypatch.setattr(find_rate_screen, "find_rate_of_run", Finders.rate)
    monkeypatch.setattr(find_size_screen, "find_batch_size", Finders.size)
    yield Finders
    Finders.may_end.set()


async def test_runs_that_train_are_named_meanwhile(
    home: Path, finders: type[Finders], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder_screen, "device_warnings", lambda _: ("run m8w3 is training on cpu:0",))
    async with StubApp().run_test(size=(80, 24), notifications=True) as pilot:
        await open_finder(pilot, "b")
        await shows(pilot, "run m8w3 is training")
        finders.may_end.set()


async def open_finder(pilot: Pilot[None], key: str) -> None:
    await shows(pilot, "Start")
    await pilot.press("F")
    await shows(pilot, "What to find?")
    await pilot.press(key)


def form_of(pilot: Pilot[None]) -> Any:
    assert isinstance(pilot.app.screen, NewRunScreen)
    return pilot.app.screen.form


@pytest.mark.parametrize("size", [(80, 24), *more((120, 40), (200, 50))])
async def test_a_learning_rate_is_found_live_and_taken_into_the_form(
    home: Path, finders: type[Finders], size: tuple[int, int]
) -> None:
    async with StubApp().run_test(size=size) as pilot:
        await open_finder(pilot, "l")
        await shows(pilot, "33%  ramp 1 of 3", "the run is paused")
        finders.may_end.set()
        rate = found_rate().learning_rate
        await shows(pilot, f"minimum / 10: {rate:g}", "steepest", "valley", "1e-5", "0.01")
        await shows(pilot, "┊ steepest", "│ valley", "‖ minimum / 10")  # the legend of the plot
        # Two losses of one rate: in the ramps, and after training with it.
        await shows(pilot, f" at {rate:g}", "loss after 100", "0.25")
        assert re.search(rf"smoothed mean 0\.[0-9]{{4}} at {rate:g}", text_of(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewRunScreen), "the form")
        assert form_of(pilot).filled.plan.learning_rate == rate


async def test_the_cursor_goes_to_suggestions_and_to_other_rates(
    home: Path, finders: type[Finders], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finders.may_end.set()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    async with StubApp().run_test(size=(120, 40)) as pilot:
        await open_finder(pilot, "l")
        await shows(pilot, "minimum / 10: ")
        screen = pilot.app.screen
        assert isinstance(screen, FindRateScreen)
        best = screen.at
        await pilot.press("down")
        assert screen.at != best
        assert screen.chosen(0.0) in screen.suggested
        await pilot.press("up")
        assert screen.at == best
        await pilot.press("right", "right", "left")
        assert best is not None
        assert screen.at == best + 1
        await pilot.press("W")
        await until(pilot, Path("find-rate-loss.png").exists, "the plot as a file")
        assert "learning rate" in Path("find-rate-loss.svg").read_text()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewRunScreen), "the form")
        expected = found_rate().planned(screen.values[best + 1])
        assert form_of(pilot).filled.plan.learning_rate == expected


async def test_a_click_moves_the_cursor(home: Path, finders: type[Finders]) -> None:
    finders.may_end.set()
    async with StubApp().run_test(size=(120, 40)) as pilot:
        await open_finder(pilot, "l")
        await shows(pilot, "minimum / 10: ")
        screen = pilot.app.screen
        assert isinstance(screen, FindRateScreen)
        await pilot.click("FinderPlot", offset=(60, 5))
        assert screen.at is not None
        assert 1e-4 < screen.values[screen.at] < 1e-2


async def test_why_nothing_was_found_is_shown_and_nothing_can_be_taken(
    home: Path, finders: type[Finders], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finders, "result", nothing_found())
    finders.may_end.set()
    async with StubApp().run_test(size=(80, 24)) as pilot:
        await open_finder(pilot, "l")
        await shows(pilot, "the loss is flat: it falls at no learning rate")
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, FindRateScreen)


async def test_a_problem_is_shown_and_it_can_be_measured_again(
    home: Path, finders: type[Finders], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finders, "problem", "no[/] engine\x1b[2J")
    finders.may_end.set()
    async with StubApp().run_test(size=(80, 24)) as pilot:
        await open_finder(pilot, "l")
        await shows(pilot, "no[/] engine\\x1b[2J")
        monkeypatch.setattr(finders, "problem", "")
        await pilot.press("s")
        await shows(pilot, "minimum / 10: ")


@pytest.mark.parametrize("key", ["l", "b"])
async def test_going_back_ends_the_measurement(home: Path, finders: type[Finders], key: str) -> None:
    async with StubApp().run_test(size=(80, 24)) as pilot:
        await open_finder(pilot, key)
        await until(pilot, lambda: isinstance(pilot.app.screen, FindRateScreen | FindSizeScreen), "the screen")
        await pilot.press("escape")
        await shows(pilot, "End the measurement?")
        await pilot.press("escape")
        assert not finders.cancelled
        await pilot.press("escape", "e")
        await until(pilot, lambda: finders.cancelled, "the end of the measurement")
        await shows(pilot, "Ended.", "esc Back")
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, NewRunScreen)


@pytest.mark.parametrize("size", [(80, 24), *more((120, 40), (200, 50))])
async def test_a_batch_size_is_found_live_and_taken_with_its_learning_rate(
    home: Path, finders: type[Finders], size: tuple[int, int]
) -> None:
    async with StubApp().run_test(size=size) as pilot:
        await open_finder(pilot, "b")
        await shows(pilot, "measuring batch size 64: starting, about 1:20 left", "examples/s", "memory MiB")
        await shows(pilot, "Each size trains for 2 s in separate processes")
        finders.may_end.set()
        await shows(
            pilot, "knee: batch size 128", "memory GiB", "9.20k", "2.0k", "0.20 GiB", "1.30 GiB  fastest, largest"
        )
        await pilot.press("enter")
        await shows(pilot, "With learning rate 0.002")
        await pilot.press("l")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewRunScreen), "the form")
        plan = form_of(pilot).filled.plan
        assert (plan.batch_size, plan.learning_rate) == (128, 0.002)


async def test_another_size_is_taken_alone(home: Path, finders: type[Finders]) -> None:
    finders.may_end.set()
    async with StubApp().run_test(size=(120, 40)) as pilot:
        await open_finder(pilot, "b")
        await shows(pilot, "knee: batch size 128")
        await pilot.press("right")
        await shows(pilot, "Batch size 256: 6 steps an epoch")
        await pilot.press("enter")
        await shows(pilot, "Batch size only")
        await pilot.press("b")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewRunScreen), "the form")
        plan = form_of(pilot).filled.plan
        assert (plan.batch_size, plan.learning_rate) == (256, None)


async def test_of_a_run_the_optimizers_rate_is_given(home: Path, finders: type[Finders]) -> None:
    finders.may_end.set()
    taken: list[float] = []
    async with StubApp().run_test(size=(120, 40)) as pilot:
        await shows(pilot, "Start")
        app = pilot.app
        assert isinstance(app, StubApp)

        async def take() -> None:
            taken.append(await app.ask_screen(Screens.FIND_RATE, Path("k3fp-a")))

        app.run_worker(take)
        await shows(pilot, "minimum / 10: ")
        await pilot.press("enter")
        await until(pilot, lambda: taken, "a rate")
    best = found_rate().best
    assert best is not None
    assert taken == [float(f"{best.rate:.3g}")]
