"""The installed program, and an end for every engine that a test leaves behind."""

import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from accel_engine.run import list_runs
from tui.fake_engine import close_all


@pytest.fixture
def program() -> Path:
    """The command as it was installed."""
    path = Path(sys.executable).with_name("accel-tui")
    assert path.is_file(), "install the project first: pip install -e '.[cpu,dev]'"
    return path


@pytest.fixture(autouse=True)
def _hangups_end_programs() -> Iterator[None]:
    """Let a hangup end what tests start, also where the tests themselves run under ``nohup``."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(autouse=True)
def _no_engine_stays(home: Path) -> Iterator[None]:
    yield
    close_all()
    for run in list_runs():
        if run.info and run.info.status.live and run.info.pid:
            with suppress(psutil.NoSuchProcess):
                psutil.Process(run.info.pid).kill()
