"""The log: followed, searched, filtered, read backwards, and bounded."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from accel_engine.events import EpochEnded, Validated
from accel_engine.run import Status
from accel_tui.run_state import log_tail
from accel_tui.run_state.state import RunState
from accel_tui.terminal.dirty_regions import DirtyRegionScreen
from accel_tui.widgets.log import log_lines, log_view
from accel_tui.widgets.log.log_view import LogView
from tui.stand_ins import shows, text_of, until


class LogApp(App[None]):
    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory

    def get_default_screen(self) -> DirtyRegionScreen:
        """As in the program: Textual's own may lose sight of what is shown again."""
        return DirtyRegionScreen()

    def compose(self) -> ComposeResult:
        yield LogView(self.directory)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_view, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(log_view, "BUSY_SECONDS", 0.001)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.txt"


def write(log: Path, *lines: str) -> None:
    with log.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


@asynccontextmanager
async def opened(log: Path) -> AsyncIterator[tuple[Pilot[None], LogView]]:
    async with LogApp(log.parent).run_test(size=(80, 12)) as pilot:
        view = pilot.app.query_one(LogView)
        view.lines.focus()
        yield pilot, view


async def test_a_text_is_searched_and_its_places_are_gone_through(log: Path) -> None:
    write(log, *(f"line {number}{' loss' if number % 10 == 0 else ''}" for number in range(50)))
    async with opened(log) as (pilot, view):
        await shows(pilot, "line 49", "50 lines, following")
        await pilot.press("slash", *"LOSS", "enter")
        await shows(pilot, "line 40 loss", "/ LOSS 5/5")
        await pilot.press("comma")
        await shows(pilot, "line 30 loss", "4/5")
        await pilot.press("full_stop", "full_stop")
        await shows(pilot, "line 0 loss", "1/5")
        write(log, "the loss is new")
        await shows(pilot, "1/6")
        await pilot.press("escape")
        await shows(pilot, "/ search")
        assert not view.lines.searched
        await pilot.press("end")
        await shows(pilot, "the loss is new", "following")


@pytest.mark.parametrize("size", [(80, 8), (60, 12), (120, 30)])
async def test_a_log_that_is_followed_is_followed_in_another_size(log: Path, size: tuple[int, int]) -> None:
    write(log, *(f"line {number}" for number in range(50)))
    async with opened(log) as (pilot, _):
        await shows(pilot, "line 49", "50 lines, following")
        await pilot.resize_terminal(*size)
        await shows(pilot, "line 49", "50 lines, following")
        write(log, "the last one")
        await shows(pilot, "the last one", "51 lines, following")


async def test_a_log_that_is_read_stays_where_it_is_in_another_size(log: Path) -> None:
    write(log, *(f"line {number}" for number in range(50)))
    async with opened(log) as (pilot, _):
        await shows(pilot, "line 49", "50 lines, following")
        await pilot.press("home")
        await shows(pilot, "line 0")
        await pilot.resize_terminal(80, 9)
        await shows(pilot, "line 0")
        assert "following" not in text_of(pilot)


async def test_asking_can_be_left_with_what_was_there_before(log: Path) -> None:
    write(log, "one", "two")
    async with opened(log) as (pilot, view):
        await shows(pilot, "two")
        await pilot.press("slash", *"one", "enter", "slash", *"x")
        await shows(pilot, "search: x")
        await pilot.press("escape")
        await shows(pilot, "/ one 1/1")
        assert view.lines.has_focus


async def test_lines_are_filtered_by_words_and_level_also_those_to_come(log: Path) -> None:
    write(log, "WARNING: low on memory", "epoch 1", "ERROR: lost", "  at once", "epoch 2")
    async with opened(log) as (pilot, _view):
        await shows(pilot, "epoch 2")
        await pilot.press("L")
        await shows(pilot, "L warnings", "3 of 5 lines")
        assert "epoch" not in text_of(pilot)
        await pilot.press("L")
        await shows(pilot, "L errors", "2 of 5 lines", "at once")
        write(log, "ERROR: again", "epoch 3")
        await shows(pilot, "again", "3 of 7 lines")
        await pilot.press("L", "ampersand", *"epoch -2", "enter")
        await shows(pilot, "2 of 7 lines", "epoch 3")
        assert "epoch 2" not in text_of(pilot)
        await pilot.press("escape")
        await shows(pilot, "7 lines", "epoch 2")


async def test_everything_that_keys_do_the_mouse_does(log: Path) -> None:
    write(log, "WARNING: low", "fine")
    async with opened(log) as (pilot, _view):
        await shows(pilot, "fine")
        await pilot.click("#log-level")
        await shows(pilot, "1 of 2 lines")
        await pilot.click("#log-search")
        await pilot.press(*"low", "enter")
        await shows(pilot, "/ low 1/1")
        await pilot.click("#log-filter")
        await shows(pilot, "filter:")


async def test_of_a_long_log_the_end_is_read_and_older_lines_as_one_goes_up_within_bounds(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_tail, "MAX_BYTES", 1000)
    monkeypatch.setattr(log_lines, "MAX_LINES", 200)
    write(log, *(f"line {number:06}" for number in range(400)))
    async with opened(log) as (pilot, view):
        await shows(pilot, "line 000399")
        assert len(view.lines.lines) < 100
        for _ in range(1000):
            if "line 000000" in text_of(pilot):
                break
            first = view.lines.lines[0]
            await pilot.press("home")
            await until(
                pilot, lambda first=first: view.lines.lines[0] != first or "line 000000" in text_of(pilot), "more"
            )
            assert len(view.lines.lines) <= 200
        assert view.lines.is_truncated
        texts = [line.text for line in view.lines.lines]
        assert texts == [f"line {number:06}" for number in range(len(texts))]
        await pilot.press("end")
        await shows(pilot, "line 000399", "following")
        write(log, "the newest")
        await shows(pilot, "the newest")


async def test_what_is_read_stays_where_it_is_while_the_log_grows_and_memory_does_not(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_lines, "MAX_LINES", 100)
    write(log, *(f"line {number:06}" for number in range(50)))
    async with opened(log) as (pilot, view):
        await shows(pilot, "line 000049")
        await pilot.press("home")
        await shows(pilot, "line 000000")
        write(log, *(f"line {number:06}" for number in range(50, 500)))
        await until(pilot, lambda: view.lines.is_truncated, "newer lines to be let go")
        assert "line 000000" in text_of(pilot)
        await pilot.press("end")
        await shows(pilot, "line 000499")
        for start in range(500, 1000, 50):
            write(log, *(f"line {number:06}" for number in range(start, start + 50)))
            await shows(pilot, f"line {start + 49:06}")
            assert len(view.lines.lines) <= 100


async def test_nothing_is_read_while_it_is_hidden(log: Path) -> None:
    write(log, "one")
    async with opened(log) as (pilot, view):
        await shows(pilot, "one")
        view.display = False
        await until(pilot, lambda: not view.lines.lines, "the lines to be forgotten")
        await until(pilot, lambda: not any(worker.is_running for worker in pilot.app.workers), "the thread")
        assert not view._timers
        view.display = True
        await shows(pilot, "one")


NOISE = (
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    "I0000 00:00:1795973118.516052   16765 port.cc:153] oneDNN custom operations are on.",
    "2026-11-29 17:25:30.123456: I tensorflow/core/platform/cpu_feature_guard.cc:210] Optimized.",
)


async def test_lines_of_tensorflow_are_folded_unless_they_warn_and_enter_or_a_search_shows_them(log: Path) -> None:
    write(log, *NOISE, "E0000 00:00:1795973119.5 cuda_dnn.cc:1] Unable to register", "mine", NOISE[1])
    async with opened(log) as (pilot, view):
        await shows(pilot, "▸ 3 lines of TensorFlow", "Unable to register", "mine", "▸ 1 line of TensorFlow")
        assert "oneDNN" not in text_of(pilot)
        write(log, NOISE[1])
        await shows(pilot, "▸ 2 lines of TensorFlow", "7 lines, following")
        await pilot.press("slash", *"onednn", "enter")
        await shows(pilot, "oneDNN custom", "3/3")
        await pilot.press("escape")
        await shows(pilot, "▸ 3 lines of TensorFlow")
        await pilot.press("enter")
        await shows(pilot, "oneDNN custom")
        assert not view.lines.is_folded


async def test_epochs_stand_in_the_log_where_they_ended(log: Path) -> None:
    state = replace(
        RunState(),
        info=SimpleNamespace(has_engine=True, status=Status.FINISHED, host=""),  # type: ignore[arg-type]
        ended_epochs=tuple(
            EpochEnded(time=at, epoch=epoch, step=10 * epoch, metrics={"loss": 2.5, "accuracy": 0.5}, seconds=0.25)
            for at, epoch in EPOCHS
        ),
        validations=(Validated(time=1795973120.0, epoch=1, step=10, metrics={"loss": 1.5}, seconds=0.1),),
        step=20,
    )
    write(
        log,
        "I0000 00:00:1795973118.516052   16765 port.cc:153] before",
        "I0000 00:00:1795973125.5 x.cc:1] between",
        "last",
    )
    async with opened(log) as (pilot, view):
        view.set_state(state)
        await shows(pilot, "epoch 1  loss  2.5000  acc  0.5000  val loss  1.5000  0.25 s")
        assert "epoch 2" not in text_of(pilot)  # its validation may follow
        view.set_state(replace(state, step=21))
        await shows(pilot, "epoch 2  loss  2.5000")
        view.on_hide()
        view.on_show()  # as when it is opened again
        await until(
            pilot,
            lambda: [line.text[:7] for line in view.lines.lines if line.is_epoch] == ["epoch 1", "epoch 2"],
            "both",
        )
        assert [line.is_epoch for line in view.lines.lines] == [False, True, False, False, True]


EPOCHS = ((1795973119.9, 1), (1795973130.0, 2))
