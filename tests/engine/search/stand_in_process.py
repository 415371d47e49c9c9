"""``python stand_in_process.py SEARCH RUNS``: a search's process with stand-in runs, as tests start and kill it."""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from accel_engine.run.directory.lock import WriterLock
from accel_engine.search.process import run_search
from accel_engine.search.study_paths import LOCK
from engine.search.searching import learns
from engine.search.stand_in_runs import StandInRuns

PAUSE = float(os.environ.get("STAND_IN_PAUSE", "0.0"))
GO = os.environ.get("STAND_IN_GO", "/")


def wait(_: float) -> None:
    """Wait a moment, and until the file is there that the test names."""
    time.sleep(PAUSE)
    while not os.path.exists(GO):
        time.sleep(0.01)


directory = Path(sys.argv[1])
with WriterLock(directory, LOCK):
    run_search(directory, StandInRuns(Path(sys.argv[2]), learns), wait)
