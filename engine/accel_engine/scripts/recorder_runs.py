"""Writes a run for each recorder in a script that ``accel-tui run`` has not started."""

import itertools
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from accel_engine.devices import Sampler
from accel_engine.events import RunEnded
from accel_engine.run.directory.log_file import note_in_log
from accel_engine.run.engine.commands import Command
from accel_engine.run.engine.process_identity import ProcessIdentity
from accel_engine.run.engine.status import HEARTBEAT_SECONDS
from accel_engine.run.runs.creation import create_recorded
from accel_engine.scripts.listener import Listener
from accel_engine.scripts.recorder_server import RecorderServer, Recording
from accel_engine.scripts.supervised_run import SupervisedRun

POLL_SECONDS = 0.1
"""How often commands are read, and recorders are looked after."""

LINGER_SECONDS = 60.0
"""How long another recorder of a live script is waited for."""


class RecorderRun(SupervisedRun):
    """The run of one recorder.

    Args:
        directory: The run's directory.
        pid: The script's process.
    """

    def __init__(self, directory: Path, pid: int) -> None:
        super().__init__(directory, partial(note_in_log, directory))
        self._sampler = Sampler(self.write_samples, engine=pid)

    def begin(self, message: dict[str, Any]) -> None:
        """Write the run's start, and sample the devices.

        Args:
            message: The first message of a recorder.
        """
        self.step, self.epochs = int(message["step"]), int(message["epochs"])
        self.start(message["begin"], int(message["pid"]))
        self._sampler.start()

    def end_part(self, ended: RunEnded, unanswered: Iterable[Command] = ()) -> None:
        """End the run; waits until all is written, or cannot be."""
        del unanswered  # the end of a run answers them
        self._sampler.stop()
        self._finish(ended)

    def close(self) -> None:
        """Close the run, which cannot be written any more."""
        self._sampler.stop()
        super().close()


class RecorderRuns:
    """The runs of all recorders that connect.

    Args:
        listener: Where they connect.
    """

    def __init__(self, listener: Listener) -> None:
        self._numbers = itertools.count(1)
        self._used_at = time.monotonic()
        self._check_due = 0.0
        self._listener = listener
        self._server = RecorderServer(listener, self._begin, lambda _: None)

    def serve(self, script: int) -> None:
        """Write them until no recorder is left and none can come, or none has come for :data:`LINGER_SECONDS`.

        Args:
            script: The process that has started this one.
        """
        process = ProcessIdentity.of(script)
        while self._server.recordings or (process.alive and time.monotonic() < self._used_at + LINGER_SECONDS):
            with suppress(Exception):  # a mistake of this program; the other recordings continue
                self._look_after()
            time.sleep(POLL_SECONDS)
        self._listener.close()

    def _look_after(self) -> None:
        now = time.monotonic()
        for recording in self._server.recordings:
            self._used_at = now
            for command in recording.run.commands():
                recording.forward(command)
        if now >= self._check_due:
            self._check_due = now + HEARTBEAT_SECONDS
            for recording in self._server.recordings:
                if not recording.is_ending:
                    recording.run.heartbeat()
            self._server.check()

    def _begin(self, message: dict[str, Any]) -> Recording:
        """Create or continue the run of a recorder.

        Raises:
            RunError: The run cannot be created or written.
        """
        pid = int(message["pid"])
        if message["run"]:
            directory = Path(message["run"])
            for recording in self._server.recordings:
                if recording.run.directory == directory:
                    recording.end_left("interrupted before the recording began")
        else:
            directory = create_recorded(message["begin"], message["script"], parent=Path(message["runs"]))
        run = RecorderRun(directory, pid)
        run.begin(message)
        return Recording(next(self._numbers), run, pid)
