"""What all tests share: a home of its own for every test, and waiting for a condition."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest


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

    def wait(condition: Callable[[], object], what: str = "the condition", timeout: float = 30.0) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"waited {timeout:g} s in vain for {what}")
            time.sleep(0.01)

    return wait
