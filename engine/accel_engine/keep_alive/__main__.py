"""``python -m accel_engine.keep_alive DIRECTORY``: watches a run, and starts its engine again when it is lost."""

import sys
from pathlib import Path

from accel_engine.keep_alive.watcher import Watcher
from accel_engine.process.detached import work_alone
from accel_engine.run.directory.run_paths import WATCHER_LOCK


def main() -> int:
    """Watch the run until it ends; returns the exit status."""
    directory = Path(sys.argv[1])

    def watch(_: object) -> int:
        Watcher(directory).watch()
        return 0

    return work_alone(directory, WATCHER_LOCK, watch)


if __name__ == "__main__":
    sys.exit(main())
