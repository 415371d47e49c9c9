"""A real engine on a disk that is really full."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_FSIZE, prlimit

import numpy as np
import pytest

from accel_engine import run
from accel_engine.events import Outcome, Warned
from accel_engine.plan import Plan
from accel_engine.process.engine_process import start_engine
from accel_engine.run import send_command
from accel_engine.run.directory.disk_problem import DiskProblem
from full_disk import filled, small_disk

from .record import last, read, steps, waiting


def test_an_engine_waits_goes_on_and_can_be_stopped(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engines: list["subprocess.Popen[str]"],
    wait_until: Callable[..., None],
) -> None:
    with small_disk(tmp_path / "disk", 24) as disk:
        monkeypatch.setenv("ACCEL_TUI_HOME", str(disk / "home"))
        directory = run.create(Plan(model="mlp", epochs=100_000, validation="off", xla="off"))
        engines.append(start_engine(directory))
        wait_until(lambda: steps(directory) > 50, "training")
        with filled(disk):
            wait_until(lambda: waiting(directory) is DiskProblem.FULL, "the wait")
            stuck = steps(directory)
        wait_until(lambda: steps(directory) > stuck, "training to go on")
        assert waiting(directory) is None
        stuck = steps(directory)
        longest = max(path.stat().st_size for path in directory.iterdir())
        prlimit(engines[0].pid, RLIMIT_FSIZE, (longest, RLIM_INFINITY))
        wait_until(lambda: waiting(directory) is DiskProblem.QUOTA, "a wait for a quota")
        prlimit(engines[0].pid, RLIMIT_FSIZE, (RLIM_INFINITY, RLIM_INFINITY))
        wait_until(lambda: steps(directory) > stuck, "training to go on")
        with filled(disk):
            wait_until(lambda: waiting(directory) is DiskProblem.FULL, "another wait")
            send_command(directory, "stop")
            assert engines[0].wait(600) == 0

        events, losses = read(directory)
        assert last(directory).outcome is Outcome.STOPPED
        assert last(directory).steps == losses.size  # also those that waited
        assert np.isfinite(losses).all()
        assert any(event.message.startswith("disk full: waited") for event in events if isinstance(event, Warned))
        assert list(directory.glob("checkpoints/*_temp")) == []


def test_a_signal_ends_a_paused_run_on_a_full_disk(paused: Path, engines: list["subprocess.Popen[str]"]) -> None:
    with filled(paused.parent):  # what was sampled before the pause may still be written, and waits
        engines[0].send_signal(signal.SIGTERM)
        assert engines[0].wait(600) == 0
    assert last(paused).outcome is Outcome.STOPPED
