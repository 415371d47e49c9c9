"""Watches the engine of a run, and starts it again from the last checkpoint when it is lost."""

import signal
import subprocess
import time
from contextlib import closing
from pathlib import Path

from accel_engine import clock
from accel_engine.events import Outcome, RunEnded
from accel_engine.keep_alive.restart import ENGINE_LOST, OUT_OF_MEMORY, Restart
from accel_engine.keep_alive.restarts import MAX_RESTARTS, Restarts
from accel_engine.launch import engine_process
from accel_engine.run import RunInfo, RunReader, RunWriter, Status, log_file, reopen
from accel_engine.run.connection import reading, writing
from accel_engine.run.ending import end
from accel_engine.run.lock import is_held
from accel_engine.run.memory_kill import adapted, was_killed_for_memory
from accel_engine.run.run_paths import latest_checkpoint, reference
from accel_engine.run.stored_events import last_event
from accel_engine.run.worker_runs import worker_runs_of

POLL_SECONDS = 0.5
"""How often the run is looked at."""

WORKERS_SECONDS = 60.0
"""How long the workers of a lost chief may take to exit: they notice it after some seconds."""

_STOPS = ("stop", "stop_now")


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
        while True:
            exit_status = self._engine.poll() if self._engine else None  # also, so that it is no zombie
            info = self._info()
            if info.status.live:
                if info.plan_values.get("keep_alive") != "on":
                    return  # it was continued without
                time.sleep(POLL_SECONDS)
                continue
            reason = self._why_again(info, exit_status)
            if not reason or not self._start_again(info, reason, exit_status):
                return

    def _info(self) -> RunInfo:
        with closing(RunReader(self._directory, steps=False)) as reader:
            return reader.info(watched=False)

    def _why_again(self, info: RunInfo, exit_status: int | None) -> str:
        """Why the engine is started again; empty if it is not."""
        if info.plan is None or info.is_directory_lost or info.is_end_damaged or self._obey_stop():
            return ""
        if info.status is Status.LOST:
            why = ", as memory ran out" if was_killed_for_memory(self._directory, exit_status) else ""
            return f"the engine exited unexpectedly{_how(exit_status)}{why}"
        with reading(self._directory) as database:
            ended = last_event(database, RunEnded)
        return ended.reason if ended and ended.temporary else ""

    def _start_again(self, info: RunInfo, reason: str, exit_status: int | None) -> bool:
        """Start the engine again after a pause; returns whether it was."""
        checkpoint = latest_checkpoint(self._directory)
        pause = self._restarts.next_pause(checkpoint)
        if pause is None:
            tries = f"{reason}; it was started again {MAX_RESTARTS} times without a new checkpoint"
            self._end(info, tries, f"the log says more; continue it: accel-tui continue {reference(self._directory)}")
            return False
        log_file.note(self._directory, f"{reason}: the engine is started again in {pause:g} s")
        if not self._wait(pause) or not self._workers_have_exited():
            return False
        action = f"the engine is started again ({self._restarts.count} of {MAX_RESTARTS} without a new checkpoint)"
        restart, plan = Restart(ENGINE_LOST, self._steps(), reason, action), info.plan
        if was_killed_for_memory(self._directory, exit_status) and (found := adapted(self._directory)):
            plan, action = found.plan, f"{action}, and {found.cure.action}"
            restart = Restart(OUT_OF_MEMORY, restart.failed_step, reason, action, dict(found.cure.changes))
        assert plan is not None  # noqa: S101 (else it is not started again)
        reopen(self._directory, plan)
        self._engine = engine_process.start(self._directory, restart.environment)
        return True

    def _wait(self, seconds: float) -> bool:
        """Wait; returns whether the run is still to be started again: no user has stopped or continued it."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._obey_stop():
                return False
            time.sleep(min(left, POLL_SECONDS))
        return not self._info().status.live

    def _obey_stop(self) -> bool:
        """Answer a command to stop that the engine has not answered; returns whether there was one."""
        with reading(self._directory) as database:
            stops = [int(row[0]) for row in database.unanswered() if row[3] in _STOPS]
        if stops:
            with writing(self._directory) as database:
                for number in stops:
                    answer = "stopped: the engine is not started again"
                    database.answer(number, clock.now(), answer, obeyed=True)
        return bool(stops)

    def _workers_have_exited(self) -> bool:
        """Wait for the workers on this machine to exit; returns whether they have."""
        until = time.monotonic() + WORKERS_SECONDS
        while any(is_held(run) for run in worker_runs_of(self._directory).values()):
            if time.monotonic() > until:
                log_file.note(self._directory, "the engine is not started again: a worker of it still runs")
                return False
            time.sleep(POLL_SECONDS)
        return True

    def _steps(self) -> int:
        """Steps that were recorded."""
        with reading(self._directory) as database:
            return int(database.chunk_from_end()[1])

    def _end(self, info: RunInfo, reason: str, hint: str) -> None:
        """Write the end of a run that is not started again."""
        writer = RunWriter(self._directory)
        writer.begin()
        ended = RunEnded(
            time=clock.now(),
            outcome=Outcome.FAILED,
            steps=self._steps(),
            epochs=0,
            seconds=max(0.0, time.time() - info.created),
            reason=reason,
            hint=hint,
        )
        end(writer, ended)


def _how(exit_status: int | None) -> str:
    """How a process ended, in parentheses; empty if it is unknown."""
    if exit_status is None:
        return ""
    try:
        return f" ({signal.Signals(-exit_status).name})" if exit_status < 0 else f" (exit status {exit_status})"
    except ValueError:
        return f" (signal {-exit_status})"
