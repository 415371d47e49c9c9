"""Makes the search in the screenshots: a seeded script writes its trials, and stand-ins for engines two runs."""

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from accel_engine.plan import Plan
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import runs_directory
from accel_engine.search.study_paths import LOCK, studies_directory
from example_study import confirm, write_study
from tui.fake_engine import FakeEngine, close_all

BEST = 26
"""Number of the trial that is best with the script's seed."""


@contextmanager
def search() -> Iterator[None]:
    """A search of 36 trials of which two train; it and its runs are deleted afterwards."""
    engines = [FakeEngine(Plan(epochs=30)).begin().build().train(700) for _ in range(2)]
    directory = write_study(end=time.time() - 3, runs=tuple(engine.directory.name for engine in engines))
    confirm(directory, BEST)
    with WriterLock(directory, LOCK):  # so that it counts as running
        yield
    close_all()
    shutil.rmtree(studies_directory())
    shutil.rmtree(runs_directory())
