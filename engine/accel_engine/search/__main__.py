"""``python -m accel_engine.search DIRECTORY TIME``: runs a search, from where the process before it was.

``TIME`` is when the process was asked for, in seconds since the Unix epoch.
"""

import os
import sys
from pathlib import Path

from accel_engine import hangup
from accel_engine.devices import detect
from accel_engine.errors import AccelError
from accel_engine.run.directory.lock import WriterLock
from accel_engine.search.engine_runs import EngineRuns
from accel_engine.search.process import run_search
from accel_engine.search.queue_starter import QueueStarter
from accel_engine.search.study_database import StudyDatabase
from accel_engine.search.study_paths import LOCK


def main() -> int:
    """Run the search to its end; returns the exit status."""
    hangup.ignore()
    os.umask(0o077)
    directory = Path(sys.argv[1])
    try:
        with WriterLock(directory, LOCK):
            ended = run_search(directory, EngineRuns(_starter(directory)), since=float(sys.argv[2]))
    except BlockingIOError:
        return 0  # another process runs it
    except AccelError as error:
        print(f"accel-tui: {error}", file=sys.stderr)  # noqa: T201 (this is the search's log)
        return 1
    return int(ended["outcome"] == "failed")


def _starter(directory: Path) -> QueueStarter:
    with StudyDatabase(directory) as database:
        definition = database.definition
    return QueueStarter(definition.name, definition.at_once, detect().devices)


if __name__ == "__main__":
    sys.exit(main())
