"""Removes what imports that were killed have left in the directory of runs."""

import shutil
import time

from accel_engine.run.directory.lock import is_held
from accel_engine.run.directory.run_paths import runs_directory

_NAMES = ".import-*"  # of the directories in which create_imported and create_bench write

_ABANDONED_SECONDS = 3600.0  # an import creates its directory before it locks it


def remove_abandoned() -> None:
    """Remove the directories of imports that no process writes."""
    for directory in runs_directory().glob(_NAMES):
        try:
            is_old = time.time() - directory.stat().st_mtime > _ABANDONED_SECONDS
        except OSError:  # its import has just ended
            continue
        if is_old and not is_held(directory):
            shutil.rmtree(directory, ignore_errors=True)
