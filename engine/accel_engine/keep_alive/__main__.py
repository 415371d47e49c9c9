"""``python -m accel_engine.keep_alive DIRECTORY``: watches a run, and starts its engine again when it is lost."""

import os
import sys
from pathlib import Path

from accel_engine import hangup
from accel_engine.errors import AccelError
from accel_engine.keep_alive.watcher import Watcher
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import WATCHER_LOCK


def main() -> int:
    """Watch the run until it ends; returns the exit status."""
    hangup.ignore()
    os.umask(0o077)
    directory = Path(sys.argv[1])
    try:
        with WriterLock(directory, WATCHER_LOCK):
            Watcher(directory).watch()
    except BlockingIOError:
        return 0  # another process watches it
    except AccelError as error:
        print(f"accel-tui: {error}", file=sys.stderr)  # noqa: T201 (this is the run's log)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
