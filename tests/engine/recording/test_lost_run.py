"""A loop goes on when the run that records it is deleted; its recording ends, and says so."""

import shutil
import warnings

from accel_engine import Recorder
from accel_engine.run import list_runs
from waiting import wait_until


def test_a_loop_whose_run_is_deleted_goes_on(home: object) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with Recorder("loop") as recorder:
            recorder.log(0, loss=1.0)
            directory = recorder.directory
            assert directory is not None
            wait_until(lambda: list_runs()[0].steps == 1, "the first step")
            shutil.rmtree(directory)
            wait_until(lambda: not recorder._session.writing, "the end of recording")
            recorder.log(1, loss=0.5)
    assert "was deleted or moved" in str(caught[0].message)
    assert not directory.exists()
    assert list_runs() == []
