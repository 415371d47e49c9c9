"""Writes TensorBoard events of a live run in a thread, from the run's database, so that no step waits for it."""

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.run import RunReader
from accel_engine.run.directory.disk_problem import disk_problem
from accel_engine.tensorboard.run_log import RunLog

DIRECTORY = "tensorboard"
"""Directory of the event files in the run's directory."""

INTERVAL = 2.0
"""Seconds between writes; TensorBoard reads every 5 to 30 seconds."""


class LiveLog:
    """Writes a run's new steps to event files in a thread.

    The files are rewritten from the run's first step whenever an engine starts or continues the run: those of an
    engine that exited unexpectedly may lack steps, or have discarded ones; and after the disk was full.

    Args:
        directory: The run's directory.
        on_problem: Called in the thread with a message when the files cannot be written; the thread then ends.
    """

    def __init__(self, directory: Path, on_problem: Callable[[str], None]) -> None:
        self._directory = directory
        self._on_problem = on_problem
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tensorboard", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write the remaining steps, and end the thread."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            is_last = self._over.is_set()
            try:
                return self._follow()
            except (OSError, RunError) as error:
                if is_last or not disk_problem(error, self._directory):
                    return self._on_problem(f"cannot write TensorBoard events any more: {error}")
            self._over.wait(INTERVAL)  # then the files are written again, if the disk has room

    def _follow(self) -> None:
        with (
            closing(RunReader(self._directory)) as source,
            closing(RunLog(source, self._directory / DIRECTORY)) as log,
        ):
            while not self._over.wait(INTERVAL):
                log.extend()
            log.extend()
