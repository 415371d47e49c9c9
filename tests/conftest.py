"""What all tests share: a home of its own for every test, and waiting for a condition."""

import gc
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it starts in the background ignore Ctrl-C

gc.disable()  # until all is imported: a process with TensorFlow and all tests has millions of objects that stay


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: many tests wait for a process of their own, or for a clock."""
    return min(4, (os.cpu_count() or 1) + 1)


def pytest_collection_finish() -> None:
    """Look for garbage seldom, and only among what tests make: going through all else was a fifth of their time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of its own for the runs of every test, and no settings; nobody's real ones are ever touched."""
    place = tmp_path / "home"
    monkeypatch.setenv("ACCEL_TUI_HOME", str(place))
    monkeypatch.setenv("ACCEL_TUI_SETTINGS", os.devnull)
    return place


@pytest.fixture
def wait_until() -> Callable[..., None]:
    """Wait for a condition, failing clearly when it does not come true in time."""

    def wait(condition: Callable[[], object], what: str = "the condition", timeout: float = 120.0) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"waited {timeout:g} s in vain for {what}")
            time.sleep(0.01)

    return wait
