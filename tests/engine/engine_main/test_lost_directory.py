"""An engine whose run is deleted while it trains ends."""

import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil

from accel_engine import run
from accel_engine.events import Outcome, RunEnded
from accel_engine.plan import Plan
from accel_engine.process.engine_process import start_engine
from accel_engine.run import RunReader
from accel_engine.run.directory.run_paths import latest_checkpoint
from full_disk import filled


def test_the_engine_of_a_deleted_run_ends_and_leaves_nothing(
    engines: list["subprocess.Popen[str]"], wait_until: Callable[..., None]
) -> None:
    directory = run.create(Plan(model="mlp", epochs=100_000, validation="off", xla="off"))
    engines.append(start_engine(directory))
    wait_until(lambda: latest_checkpoint(directory), "a checkpoint")
    with closing(RunReader(directory)) as reader:
        # At any moment, also while it saves a checkpoint there. Of half a deletion it would tell the missing file.
        engines[0].send_signal(signal.SIGSTOP)
        engine = psutil.Process(engines[0].pid)
        wait_until(lambda: engine.status() == psutil.STATUS_STOPPED, "the engine to stop for a moment")
        shutil.rmtree(directory)
        engines[0].send_signal(signal.SIGCONT)
        assert engines[0].wait(600) == 1
        assert not directory.exists()
        ended = reader.poll().events[-1]
        assert isinstance(ended, RunEnded)
        assert (ended.outcome, ended.reason) == (Outcome.FAILED, f"its directory {directory} was deleted or moved")


def test_the_engine_of_a_run_that_is_moved_on_a_full_disk_ends(
    paused: Path, engines: list["subprocess.Popen[str]"]
) -> None:
    with filled(paused.parent):
        paused.rename(paused.with_name("moved"))
        assert engines[0].wait(600) == 1
    assert not paused.exists()
