"""Fixtures of the tests of engine processes."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from accel_engine import run
from accel_engine.plan import Plan
from accel_engine.process.engine_process import start_engine
from accel_engine.run import Status, send_command
from full_disk import small_disk

from .record import status


@pytest.fixture
def engines() -> Iterator[list["subprocess.Popen[str]"]]:
    """A list of engine processes, killed with their children at the end of the test."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        children = psutil.Process(process.pid).children() if process.poll() is None else []
        for each in (process, *children):
            each.kill()
        process.wait()


@pytest.fixture
def paused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engines: list["subprocess.Popen[str]"],
    wait_until: Callable[..., None],
) -> Iterator[Path]:
    """The directory of a run whose engine is paused, on a separate disk of 24 MB."""
    with small_disk(tmp_path / "disk", 24) as disk:
        monkeypatch.setenv("ACCEL_TUI_HOME", str(disk / "home"))
        directory = run.create(Plan(model="mlp", epochs=100_000, validation="off", xla="off"))
        engines.append(start_engine(directory))
        send_command(directory, "pause")
        wait_until(lambda: status(directory) is Status.PAUSED, "the pause")
        yield directory
