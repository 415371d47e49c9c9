"""Fixtures of the dashboard's tests, among them a pilot that waits for an idle event loop instead of a fixed time."""

import asyncio
import time
from collections.abc import Iterator
from functools import partialmethod
from typing import Any

import pytest
import textual.app
import textual.pilot
from textual._context import active_app
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from accel_engine.data import DatasetEntry
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.process.engine_process import Installation
from accel_engine.run import RunList
from accel_tui.plan.data_reading import Preview, PreviewReading
from accel_tui.run_state import run_follower
from accel_tui.widgets.runs_table import RunsTable
from tui.fake_engine import close_all
from waiting import TIMEOUT


async def settled(*_: float) -> None:
    """Wait until the event loop is idle and the screen is painted.

    Replaces Textual's ``wait_for_idle``, which samples the process's CPU time for 20 ms to one second. That takes the
    full second if something is animated, and is unreliable on a busy machine. On such a one an idle loop may take many
    seconds; a test that went on before would press keys that have no effect yet.
    """
    app, until = active_app.get(), time.monotonic() + TIMEOUT
    await _quiet(until)
    app.screen._on_timer_update()
    await _quiet(until)
    while not app._exit and (app.screen._layout_required or app.screen._dirty_widgets) and time.monotonic() < until:
        app.screen._on_timer_update()
        await _quiet(until)


async def _quiet(until: float) -> None:
    ready, turns = asyncio.get_running_loop()._ready, 0  # type: ignore[attr-defined]
    while turns < 3 and time.monotonic() < until:
        await asyncio.sleep(0)
        turns = 0 if ready else turns + 1


_PARSED: dict[tuple[Any, ...], list[RuleSet]] = {}
"""The rules of each style sheet, which are parsed once: each app and each new screen would parse all of them again."""

_parse_rules = Stylesheet._parse_rules

# As Textual's, which is in Python: styles are applied by looking all rules up, for each widget.
RuleSet.__hash__ = object.__hash__  # type: ignore[method-assign]


def _parse_once(self: Stylesheet, css: str, **options: Any) -> list[RuleSet]:
    key = (css, *options.items(), *self._variables.items())
    if key not in _PARSED:
        _PARSED[key] = _parse_rules(self, css, **options)
    return _PARSED[key]


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test see the terminal of who runs them, nor what ``serve`` sets for its dashboards."""
    monkeypatch.setenv("TERM", "xterm")
    for name in ("COLORTERM", "TMUX"):  # in tmux, what a test copies would be in the user's clipboard
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stylesheet, "_parse_rules", _parse_once)


@pytest.fixture(autouse=True)
def _unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no process that reads the data of each form that a test opens."""
    read = PreviewReading.read

    def unread(self: PreviewReading, plan: Plan, entry: DatasetEntry) -> Preview:
        return read(self, plan, entry) if entry.function else Preview(reason="not read by this test")

    monkeypatch.setattr(PreviewReading, "read", unread)


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textual.app, "wait_for_idle", settled)
    monkeypatch.setattr(textual.pilot, "wait_for_idle", settled)
    # Textual gives up after 30 seconds.
    monkeypatch.setattr(Pilot, "_wait_for_screen", partialmethod(Pilot._wait_for_screen, TIMEOUT))


@pytest.fixture(autouse=True)
async def _eager() -> None:
    """Start tasks eagerly, as the program does from Python 3.12 on; Textual's ``run_test`` does not."""
    if hasattr(asyncio, "eager_task_factory"):
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)


@pytest.fixture(autouse=True)
def _unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start each test with an empty list of runs."""
    monkeypatch.setattr(RunsTable, "listing", RunList())


@pytest.fixture(autouse=True)
def _no_engine_stays() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll runs every few milliseconds, so that tests do not wait."""
    monkeypatch.setattr(run_follower, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(run_follower, "STATUS_SECONDS", 0.05)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed TensorFlow, which is not looked for."""
    monkeypatch.setattr(engine_process, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))
