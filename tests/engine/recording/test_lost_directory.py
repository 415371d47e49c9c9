"""A loop goes on when the run that records it is deleted, and so does its recording."""

import shutil
import warnings
from pathlib import Path

from accel_engine import Recorder
from accel_engine.events import Outcome, Warned
from accel_engine.run import RunReader, Status, list_runs
from accel_engine.run.damage.lost_directory import SAVED
from waiting import wait_until


def test_a_loop_whose_run_is_deleted_is_recorded_elsewhere(home: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with Recorder("loop") as recorder:
            recorder.log(0, loss=1.0)
            directory = recorder.directory
            assert directory is not None
            wait_until(lambda: list_runs()[0].steps == 1, "the first step")
            shutil.rmtree(directory)
            wait_until(lambda: [run.id for run in list_runs()] == [f"{directory.name}{SAVED}"], "another run")
            recorder.log(1, loss=0.5)

    (saved,) = list_runs()
    assert (saved.status, saved.steps, saved.problem) == (Status.FINISHED, 2, "")
    assert not directory.exists()
    reader = RunReader(saved.directory)
    events = reader.poll().events
    reader.close()
    message = f"run {directory.name}: its directory {directory} was deleted; the script continues, and is recorded as"
    assert [event for event in events if isinstance(event, Warned) and event.message.startswith(message)]
    assert any(str(each.message).startswith(message) for each in caught)
    assert events[-1].outcome is Outcome.FINISHED
