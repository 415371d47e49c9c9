"""Watches the engine of a run, and starts it again from the last checkpoint when it is lost."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from accel_engine import clock
from accel_engine.errors import AccelError, DatabaseError
from accel_engine.events import ENGINE_LOST, Outcome, RunEnded
from accel_engine.keep_alive.memory_restart import adapted, was_killed_for_memory
from accel_engine.keep_alive.restart import Restart
from accel_engine.process import engine_process
from accel_engine.run import RunInfo, RunWriter, Status, read_run, reopen
from accel_engine.run.directory import log_file
from accel_engine.run.directory.lock import is_locked
from accel_engine.run.directory.run_paths import latest_checkpoint, reference
from accel_engine.run.engine.commands import Command
from accel_engine.run.history.history import read_history
from accel_engine.run.runs.worker_runs import worker_runs_of
from accel_engine.run.store.database import reading, writing
from accel_engine.run.store.stored_events import last_event

POLL_SECONDS = 0.5
"""How often the run is looked at."""

WORKERS_SECONDS = 60.0
"""How long the workers of a lost chief may take to exit: they notice it after some seconds."""

PATIENCE_SECONDS = 600.0
"""How long the run's database may be unusable, locked or on a full disk, before the watcher gives up."""


MAX_RESTARTS = 5
"""Restarts without a newer checkpoint in between; after them the run has failed."""

_FIRST_PAUSE_SECONDS = 1.0
"""Pause before the first restart, doubled before each that follows without a newer checkpoint; the environment variable
``ACCEL_TUI_RESTART_SECONDS`` overrides it."""

_MAX_PAUSE_SECONDS = 300.0


class Restarts:
    """Counts the restarts of a run."""

    def __init__(self) -> None:
        self.count = 0
        self._checkpoint = -1

    def next_pause(self, checkpoint: int) -> float | None:
        """Count a restart; returns the seconds to wait before it, or ``None`` if the limit is reached.

        Args:
            checkpoint: The step of the newest checkpoint; 0 if there is none.
        """
        if checkpoint > self._checkpoint:
            self.count, self._checkpoint = 0, checkpoint
        if self.count == MAX_RESTARTS:
            return None
        self.count += 1
        return min(_MAX_PAUSE_SECONDS, _first_pause() * 2.0 ** (self.count - 1))


def _first_pause() -> float:
    with suppress(KeyError, ValueError):
        return float(os.environ["ACCEL_TUI_RESTART_SECONDS"])
    return _FIRST_PAUSE_SECONDS


class Watcher:
    """Watches one run until it ends for good.

    An engine is started again if its process was lost, or if it ended for a reason that may be temporary. A run that a
    user has stopped, and one that would fail in the same way again, ends.

    Args:
        directory: The run's directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._restarts = Restarts()
        self._engine: subprocess.Popen[str] | None = None

    def watch(self) -> None:
        """Watch the run until it ends for good.

        Raises:
            RunError: The run is deleted, or cannot be read or written.
        """
        usable = time.monotonic()
        while True:
            try:
                if not self._restart_if_lost():
                    return
                usable = time.monotonic()
            except DatabaseError as error:
                if time.monotonic() > usable + PATIENCE_SECONDS:
                    raise
                log_file.note_in_log(self._directory, f"the run is read again: {error}")
            time.sleep(POLL_SECONDS)

    def _restart_if_lost(self) -> bool:
        """Start the engine again if it is lost; returns whether to continue."""
        exit_status = self._engine.poll() if self._engine else None  # also, so that it is no zombie
        info = self._info()
        if info.status.live:
            return info.plan_values.get("keep_alive") == "on"  # else it was continued without
        reason = self._why_again(info, exit_status)
        return bool(reason) and self._start_again(info, reason, exit_status)

    def _info(self) -> RunInfo:
        return read_run(self._directory, watched=False)

    def _why_again(self, info: RunInfo, exit_status: int | None) -> str:
        """Why the engine is started again; empty if it is not."""
        if info.plan is None or info.is_directory_lost or self._answer_stop():
            return ""
        if info.status is Status.LOST:
            why = ", as memory ran out" if was_killed_for_memory(self._directory, exit_status) else ""
            return f"the engine exited unexpectedly{_how(exit_status)}{why}"
        with reading(self._directory) as database:
            ended = last_event(database, RunEnded)
        return ended.reason if ended and ended.temporary else ""

    def _start_again(self, info: RunInfo, reason: str, exit_status: int | None) -> bool:
        """Start the engine again after a pause; returns whether to watch it, or to try it again."""
        checkpoint = latest_checkpoint(self._directory)
        pause = self._restarts.next_pause(checkpoint)
        if pause is None:
            tries = f"{reason}; it was started again {MAX_RESTARTS} times without a new checkpoint"
            self._end(tries, f"the log says more; continue it: accel-tui continue {reference(self._directory)}")
            return False
        log_file.note_in_log(self._directory, f"{reason}: the engine is started again in {pause:g} s")
        if not (self._wait(pause) and self._workers_have_exited()):
            return False
        if self._info().status.live:
            return True  # a user has continued it
        action = f"the engine is started again ({self._restarts.count} of {MAX_RESTARTS} without a new checkpoint)"
        assert info.plan is not None  # noqa: S101 (else it is not started again)
        plan, restart = info.plan, Restart(ENGINE_LOST, self._steps(), reason, action)
        if was_killed_for_memory(self._directory, exit_status):
            plan, restart = adapted(self._directory, reason, action) or (plan, restart)
        if self._answer_stop():
            return False
        try:
            reopen(self._directory, plan)
            self._engine = engine_process.start_engine(self._directory, restart.environment)
        except AccelError as error:  # little memory, a full disk, TensorFlow is being upgraded, or a user was first
            log_file.note_in_log(self._directory, f"the engine was not started again: {error}")
        return True

    def _wait(self, seconds: float) -> bool:
        """Wait; returns whether no user has stopped the run."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._answer_stop():
                return False
            time.sleep(min(left, POLL_SECONDS))
        return True

    def _answer_stop(self) -> bool:
        """Answer a command to stop that the engine has not answered; returns whether there was one."""
        with reading(self._directory) as database:
            stops = [command.id for command in database.unanswered(Command) if command.stops]
        if stops:
            with writing(self._directory) as database:
                for number in stops:
                    answer = "stopped: the engine is not started again"
                    database.answer(number, answer, obeyed=True)
        return bool(stops)

    def _workers_have_exited(self) -> bool:
        """Wait for the workers on this machine to exit; returns whether they have, and no user has stopped the run."""
        until = time.monotonic() + WORKERS_SECONDS
        while any(is_locked(run) for run in worker_runs_of(self._directory).values()):
            if time.monotonic() > until:
                log_file.note_in_log(self._directory, "the engine is not started again: a worker of it still runs")
                return False
            if self._answer_stop():
                return False
            time.sleep(POLL_SECONDS)
        return True

    def _steps(self) -> int:
        """Steps that were recorded."""
        with reading(self._directory) as database:
            return database.chunk_from_end()[1]

    def _end(self, reason: str, hint: str) -> None:
        """Write the end of a run that is not started again."""
        steps, history = self._steps(), read_history(self._directory)
        writer = RunWriter(self._directory)
        writer.begin()
        ended = RunEnded(
            time=clock.now(),
            outcome=Outcome.FAILED,
            steps=steps,
            epochs=int(history.trained_epochs(steps)),
            seconds=history.latest_seconds,
            reason=reason,
            hint=hint,
        )
        writer.end(ended)


def _how(exit_status: int | None) -> str:
    """How a process ended, in parentheses; empty if it is unknown."""
    if exit_status is None:
        return ""
    try:
        return f" ({signal.Signals(-exit_status).name})" if exit_status < 0 else f" (exit status {exit_status})"
    except ValueError:
        return f" (signal {-exit_status})"
