"""An engine whose run is deleted while it trains stops, and saves the run elsewhere."""

import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from accel_engine import run
from accel_engine.events import Outcome
from accel_engine.plan import Plan
from accel_engine.process.engine_process import start
from accel_engine.run.directory.disk_problem import DiskProblem
from accel_engine.run.directory.run_paths import LOG, MODEL, latest_checkpoint
from full_disk import filled

from .record import last, read, waiting


def test_a_deleted_run_is_saved_with_a_checkpoint_and_can_be_continued(
    engines: list["subprocess.Popen[str]"], wait_until: Callable[..., None]
) -> None:
    plan = Plan(model="mlp", epochs=100_000, validation="off", xla="off")
    directory = run.create(plan)
    engines.append(start(directory))
    wait_until(lambda: latest_checkpoint(directory), "a checkpoint")

    # Again while it is just saving a checkpoint there.
    wait_until(lambda: shutil.rmtree(directory, ignore_errors=True) or not directory.exists(), "the deletion")

    assert engines[0].wait(120) == 1
    assert not directory.exists()
    saved = directory.with_name(f"{directory.name}-saved")
    ended = last(saved)
    assert (ended.outcome, ended.reason) == (Outcome.FAILED, f"its directory {directory} was deleted")
    assert ended.hint == f"continue it: accel-tui continue {saved.name}"
    assert latest_checkpoint(saved) == ended.steps == len(read(saved)[1])
    assert (saved / MODEL).is_file()
    assert (saved / LOG).is_file()
    run.reopen(saved, plan)


def test_a_run_that_is_moved_on_a_full_disk_can_be_stopped(
    paused: Path, engines: list["subprocess.Popen[str]"], wait_until: Callable[..., None]
) -> None:
    with filled(paused.parent):
        moved = paused.rename(paused.with_name("moved"))
        wait_until(lambda: waiting(moved) is DiskProblem.FULL, "the wait")
        engines[0].send_signal(signal.SIGTERM)
        assert engines[0].wait(60) == 1
