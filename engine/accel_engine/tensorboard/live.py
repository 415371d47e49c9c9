"""Writing a run's TensorBoard events while it is trained: from what is on disk, so that no step waits for it."""

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.run.bulk_reader import BulkReader
from accel_engine.tensorboard.run_log import RunLog

DIRECTORY = "tensorboard"
"""The directory of the events, in the run's own."""

EVERY = 2.0
"""Seconds from one batch to the next; TensorBoard looks for new ones every 5 to 30."""


class LiveLog:
    """Keeps a run's events up with the run, in a thread.

    They are written anew from the run's first step whenever an engine takes the run up: what was written by an
    engine that died may lack steps, or have some that were forgotten since.

    Args:
        directory: The run's.
        on_problem: Called in the thread with words when the events cannot be written; that ends it.
    """

    def __init__(self, directory: Path, on_problem: Callable[[str], object]) -> None:
        self._directory = directory
        self._on_problem = on_problem
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tensorboard", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Write what is there by now, and end."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            with (
                closing(BulkReader(self._directory)) as source,
                closing(RunLog(source, self._directory / DIRECTORY)) as log,
            ):
                while not self._over.wait(EVERY):
                    log.extend()
                log.extend()
        except (OSError, RunError) as error:
            self._on_problem(f"TensorBoard events are written no more: {error}")
