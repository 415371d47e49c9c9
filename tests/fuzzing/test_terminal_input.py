"""Whatever a terminal sends, the dashboard goes on and can be quit: keys, mouse, pasted text, sizes, broken codes."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from textual._xterm_parser import XTermParser
from textual.app import ScreenStackError
from textual.pilot import Pilot

from accel_engine.errors import RunError
from accel_engine.process import engine_call, engine_process
from accel_engine.run import RunList, runs_directory
from accel_engine.run.diagnostics import Layer, LayerTable, ValidationReport
from accel_engine.run.media import LoggedText
from accel_tui.app import AccelApp
from accel_tui.widgets.runs_table import RunsTable
from tui.conftest import settled
from tui.example_reports import binary
from tui.fake_engine import FakeEngine, close_all
from tui.stand_ins import StubApp
from waiting import eventually

LARGEST = (250, 100)
"""The largest window in columns and rows: the help over a comparison takes a second of larger ones, as measured."""

QUITTING = 3
"""How often Ctrl-C is pressed until the dashboard has to quit."""

_ESCAPES = (
    "\x1b",
    "\x1b[",
    "\x1bO",
    "\x1b]",
    "\x1bP",
    "\x1b[<",
    "\x1b[M",
    "\x1b[200~",
    "\x1b[201~",
    "\x1b[I",
    "\x1b[O",
)
_NAMED = (
    *(
        "\r",
        "\t",
        "\x7f",
        "\x1b",
        " ",
        "\x1b[A",
        "\x1b[B",
        "\x1b[C",
        "\x1b[D",
        "\x1b[H",
        "\x1b[F",
        "\x1b[5~",
        "\x1b[6~",
    ),
    *("\x1b[Z", "\x1b[3~", "\x1bOP", "\x10", "\x0c", "\x13", "\x01", "\x05", "\x0b", "\x15", "\x17", "\x1b[1;2B"),
)

_keys = st.sampled_from(_NAMED) | st.characters(min_codepoint=32, max_codepoint=126)
_many_keys = st.lists(_keys, max_size=20).map("".join)
_numbers = st.integers(0, 120) | st.integers(-(10**6), 10**6) | st.sampled_from([10**12, 2**31, 2**63])


@st.composite
def _mouse(draw: st.DrawFn) -> str:
    """An event of the mouse, often within the window."""
    button = draw(st.sampled_from([0, 1, 2, 3, 32, 35, 64, 65, 66, 67, 4, 8, 16]) | _numbers)
    return f"\x1b[<{button};{draw(_numbers)};{draw(_numbers)}{draw(st.sampled_from('Mm'))}"


_pasted = (st.text(max_size=100) | st.tuples(st.text(min_size=1, max_size=5), st.integers(1, 5_000)).map(
    lambda repeated: repeated[0] * repeated[1]
)).map(lambda text: f"\x1b[200~{text}\x1b[201~")  # fmt: skip
_reports = st.builds(
    lambda kind, values: f"\x1b[{';'.join(map(str, values))}{kind}",
    st.sampled_from(["R", "t", "u", "~", "$y", "c", "n", "A"]),
    st.lists(_numbers, max_size=5),
)
_broken = st.lists(st.sampled_from(_ESCAPES) | st.text(max_size=5), max_size=8).map("".join)
_sizes = st.tuples(st.integers(1, LARGEST[0]), st.integers(1, LARGEST[1])) | st.sampled_from(
    [(1, 1), (60, 16), (80, 24), (79, 23), (1, 100), (250, 1), LARGEST]
)
INPUT = st.lists(_many_keys | _mouse() | _pasted | _reports | _broken | _sizes, min_size=1, max_size=6)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few runs of all kinds of views."""
    home = tmp_path_factory.mktemp("fuzzed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCEL_TUI_HOME", str(home))
        for _ in range(2):
            engine = FakeEngine().begin().build().train(150)
            engine.writer.write_diagnostics(ValidationReport((binary(),)), 150)
            engine.writer.write_diagnostics(LayerTable((Layer("dense", "Dense", 0, (10,), 1500, 1500, 1e6),), 1e6), 0)
            engine.writer.write_media(150, 1.0, "sentence", LoggedText("of a few words"))
            engine.end()
            (engine.directory / "log.txt").write_text("begun\n\x1b[2Jended\n")
        close_all()
        return runs_directory()


@pytest.fixture(autouse=True)
def _no_processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start no engine, whatever is asked for."""

    def refuse(*_: object, **__: object) -> Any:
        raise RunError("no engine here")

    monkeypatch.setattr(engine_process, "start_engine", refuse)
    monkeypatch.setattr(engine_call, "spawn", refuse)
    monkeypatch.setattr("textual.app.wait_for_idle", settled)
    monkeypatch.setattr("textual.pilot.wait_for_idle", settled)
    yield
    close_all()


# Each example starts an app. To explain a failure, Hypothesis would trace every line, which is many times slower.
@settings(max_examples=max(1, settings().max_examples // 8), phases=set(Phase) - {Phase.explain})
@given(sent=INPUT, opened=st.sampled_from(["", "r", "r\r", "r\rw", "r\rl", "r\ra", "re", "rD", "r  c", "?", "\x10"]))
def test_the_dashboard_goes_on_and_can_be_quit(
    sent: list[str | tuple[int, int]], opened: str, runs: Path, home: Path
) -> None:
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(runs, runs_directory())
    RunsTable.listing = RunList()
    asyncio.run(_drive([*opened, *sent]))


async def _drive(sent: list[str | tuple[int, int]]) -> None:
    app = StubApp()
    async with app.run_test(size=(120, 40), notifications=True, tooltips=True) as pilot:
        parser = XTermParser()
        for each in sent:
            if each == "":  # to the parser the end of all input
                continue
            if isinstance(each, str):
                await _send(pilot, parser, each)
            else:
                await pilot.resize_terminal(*each)
            if app._exit:
                break
        await _quit(app, pilot)
    assert app.return_code == 0


async def _quit(app: AccelApp, pilot: Pilot[None]) -> None:
    """Press Ctrl-C until the app ends: once more if it asks whether to quit, or copies text that is selected."""
    for _ in range(QUITTING):
        if app._exit:
            return
        await _send(pilot, XTermParser(), "\x03")
        await eventually(lambda: app._exit or not app._pending_exit)  # it waits for what the terminal has to say
        if not app._exit:
            app.screen.clear_selection()
            await _send(pilot, XTermParser(), "\x1b[F")  # End: nothing is selected in a field
    assert app._exit, f"Ctrl-C does not quit {app.screen}"


async def _send(pilot: Pilot[None], parser: XTermParser, text: str) -> None:
    """Hand what the terminal sent to the app, as Textual's thread of input does, and wait until it is handled."""
    app = pilot.app
    assert app._driver
    for events in (parser.feed(text), parser.tick()):
        for event in events:
            app._driver.process_message(event)
    try:
        await pilot.pause()
    except ScreenStackError:  # an app that has quit has no screens
        assert app._exit
