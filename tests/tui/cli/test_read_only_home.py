"""Runs and settings that this user can read but not write: what reads works, and what writes says why it cannot."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import damaged_runs
from accel_engine.process import engine_process
from accel_engine.process.engine_process import Installation
from accel_tui.app_protocol import Screens
from full_disk import read_only, small_disk
from tui.stand_ins import StubApp, begun, hides, shows, until


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A damaged run in a directory that cannot be written, with a whole one and the settings."""
    settings = home / "settings.toml"
    monkeypatch.setenv("ACCEL_TUI_SETTINGS", str(settings))
    monkeypatch.setattr(engine_process, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))
    with ExitStack() as stack:
        if not os.geteuid():
            stack.enter_context(small_disk(home, 16))
        run = damaged_runs.record("one")
        damaged_runs.record("two")
        damaged_runs.set_value(run, "chunk", "count", -1, 3)
        settings.write_text('theme = "accel-light"\n')
        stack.enter_context(read_only(home))
        yield run


def test_commands(run, run_command, tmp_path):
    before = sorted(run.rglob("*"))
    listed = run_command("runs")
    assert "one run" in listed.out
    assert "two run" in listed.out
    for words in (
        f"watch {run.name} --plain",
        f"export {run.name} --to csv -o {tmp_path / 'steps.csv'}",
        f"export {run.name} --to json -o -",
    ):
        result = run_command(words)
        assert (result.status, "is damaged (row 4 of the table chunk: " in result.err) == (1, True), result.err
        result = run_command(words.replace(run.name, "last"))
        assert (result.status, result.err) == (0, "")
    for words, said in {
        f"repair {run.name}": "cannot write to the run directory",
        f"note {run.name} text": f"run {run.name} cannot be changed: ",
        f"pause {run.name}": f"run {run.name}",
        f"rm --yes {run.name}": f"run {run.name} cannot be changed: ",
        "train --data digits": "set ACCEL_TUI_HOME to a writable directory",
    }.items():
        result = run_command(words)
        assert (result.status, said in result.err) == (1, True), result.err
    assert sorted(run.rglob("*")) == before


async def test_dashboard(run: Path) -> None:
    app = StubApp()
    async with app.run_test(size=(110, 36), notifications=True) as pilot:
        await begun(pilot)
        app.open_screen(Screens.RUNS)
        await shows(pilot, "one run", "two run", "✓ finished")
        app.open_screen(Screens.RUN, run)
        await shows(pilot, "is damaged (row 4 of the table chunk: ")
        await pilot.press("escape")
        await hides(pilot, "is damaged")
        app.save_theme()
        await shows(pilot, "Theme not saved")
        app.open_screen(Screens.NEW_RUN)
        await shows(pilot, "Start")
        await pilot.press("s")
        await until(pilot, lambda: app.launch.problem, "the refusal")
        assert "cannot write to the run directory" in app.launch.problem
        await shows(pilot, "cannot write to the run")
