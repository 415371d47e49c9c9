"""``python -m accel_engine.run_queue``: starts queued runs until none waits."""

import os
import sys
import time
from contextlib import closing

from accel_engine.errors import RunError
from accel_engine.process.detached import work_alone
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import home
from accel_engine.run_queue.engine_environment import concerns_training
from accel_engine.run_queue.free_devices import MachineReader
from accel_engine.run_queue.queue_database import WAITER_LOCK, open_queue
from accel_engine.run_queue.waiter import Waiter

PATIENCE_SECONDS = 600.0
"""How long the queue may be unusable: locked, or on a full disk."""


def main() -> int:
    """Start queued runs; returns the exit status."""
    os.chdir(home())  # so that no other file system stays in use
    for name in filter(concerns_training, list(os.environ)):
        del os.environ[name]  # an engine has the variables of the terminal where its run was queued
    return work_alone(home(), WAITER_LOCK, _start_runs)


def _start_runs(lock: WriterLock) -> int:
    """Start runs until none waits; returns the exit status.

    Raises:
        RunError: The queue was unusable for :data:`PATIENCE_SECONDS`.
    """
    with MachineReader() as machine, open_queue() as queue, closing(Waiter(queue, machine)) as waiter:
        usable = time.monotonic()
        while True:
            try:
                waiter.start_runs()
                with queue.transaction():  # nobody adds a run between the last look and the release of the lock
                    if not waiter.has_work():
                        lock.release()
                        return 0
                waiter.wait_for_change()
                usable = time.monotonic()
            except RunError:
                if time.monotonic() > usable + PATIENCE_SECONDS:
                    raise
                time.sleep(1.0)


if __name__ == "__main__":
    sys.exit(main())
