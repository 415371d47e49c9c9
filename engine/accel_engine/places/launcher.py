"""``python -m accel_engine.places.launcher DIRECTORY``: starts a run's processes at a place, until it ends for good."""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from accel_engine.errors import AccelError, DatabaseError, RunError, UsageError
from accel_engine.events import Outcome
from accel_engine.keep_alive.watcher import WORKERS_SECONDS, Restarts
from accel_engine.places import PlaceRequest
from accel_engine.places.launched import LAUNCHER_LOCK, REQUEST, LaunchedPlace, Member, last_line
from accel_engine.places.own_process import is_to_start_again, set_place
from accel_engine.places.place import PlacedJob
from accel_engine.places.placed_runs import cluster_environment, place_of
from accel_engine.plan.resolved_plan import resolve
from accel_engine.process.detached import work_alone
from accel_engine.run import RunInfo, Status, read_run
from accel_engine.run.directory.lock import is_locked
from accel_engine.run.directory.run_paths import latest_checkpoint
from accel_engine.run.runs.worker_runs import worker_runs_of
from accel_engine.run.writing.waiting_run import end_waiting

POLL_SECONDS = 0.5
"""How often processes and run are looked at."""


class Launcher:
    """Starts the processes of one run, and starts all again where its plan or the system wants that.

    Args:
        directory: The run's directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._restarts = Restarts()

    def launch(self) -> None:
        """Start the run's processes until it has ended for good.

        Raises:
            AccelError: The run cannot be read or written.
        """
        placed = self._info().place
        place = place_of(placed) if placed else None
        if not isinstance(place, LaunchedPlace):
            raise UsageError(f"run {self._directory.name} is not started by this process")
        request = PlaceRequest(**json.loads((self._directory / REQUEST).read_text("utf-8")))
        while self._is_to_start():
            plan = self._info().plan
            if plan is None:
                raise RunError(f"run {self._directory.name} has no plan that can be trained here")
            again = False
            try:
                resolved = resolve(plan, environment=cluster_environment(request.nodes or 1), chosen=())
                members = place.start(PlacedJob(resolved, request, self._directory), self._tell)
            except AccelError as error:
                print(error, flush=True)  # noqa: T201 (this is its log)
                again = isinstance(error, RunError) and self._pause(str(error))
                if not again:
                    end_waiting(self._directory, str(error), Outcome.FAILED)
            else:
                self._wait(members)
                again = is_to_start_again(self._directory) and self._pause("")
            finally:
                place.close()
            if not again:
                break
        if self._info().status is Status.QUEUED:
            end_waiting(self._directory, f"its processes have ended{last_line(self._directory)}", Outcome.FAILED)

    def _info(self) -> RunInfo:
        return read_run(self._directory, watched=False)

    def _is_to_start(self) -> bool:
        info = self._info()
        return info.status is Status.QUEUED and info.place is not None and not info.place.is_cancelled

    def _tell(self, waits: str) -> bool:
        """Record what is waited for; returns whether the run still waits."""
        placed = self._info().place
        if placed and placed.waits != waits:
            set_place(self._directory, replace(placed, waits=waits))
        return self._is_to_start()

    def _pause(self, problem: str) -> bool:
        """Wait before all processes are started again; returns whether to start them."""
        info = self._info()
        if problem and not (info.plan and info.plan.keep_alive == "on" and info.place and info.place.reason):
            return False  # the first start has failed
        pause = self._restarts.next_pause(latest_checkpoint(self._directory))
        until = time.monotonic() + (pause or 0.0)
        while time.monotonic() < until:
            if not self._tell(problem or "all processes are started again in a moment"):
                return False
            time.sleep(POLL_SECONDS)
        return pause is not None and self._workers_have_exited()

    def _workers_have_exited(self) -> bool:
        until = time.monotonic() + WORKERS_SECONDS
        while any(is_locked(run) for run in worker_runs_of(self._directory).values()):
            if time.monotonic() > until:
                print("a worker of the last start still runs", flush=True)  # noqa: T201 (this is its log)
                return False
            time.sleep(POLL_SECONDS)
        return True

    def _wait(self, members: Sequence[Member]) -> None:
        """Wait until all processes have exited and nobody trains the run; end them if they are to end."""
        has_ended = False
        while True:
            info = None
            with suppress(DatabaseError):  # read again
                info = self._info()
            if info and info.place and info.place.is_cancelled and not has_ended:
                has_ended = True
                for member in members:
                    member.end()
            exited = [member.poll() is not None for member in members]
            # A connection that has broken says nothing about the processes, which the run's lock does.
            if all(exited) and info and (info.status is Status.QUEUED or not info.status.live):
                return
            time.sleep(POLL_SECONDS)


def main() -> int:
    """Start the run's processes; returns the exit status."""
    directory = Path(sys.argv[1])

    def launch(_: object) -> int:
        Launcher(directory).launch()
        return 0

    return work_alone(directory, LAUNCHER_LOCK, launch)


if __name__ == "__main__":
    sys.exit(main())
