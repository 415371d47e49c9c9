"""The runs of trials that a place trains, such as a cluster, which has the directory of runs under the same path."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accel_engine.devices.device_types import Device
from accel_engine.errors import DataError, RunError, UsageError
from accel_engine.places import HOST, PlaceName, PlaceRequest, placed_runs
from accel_engine.places.place import ArrayPlace, JobState, Place
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.run import Status, read_run, runs_directory
from accel_engine.run_queue.queue import cancel, why_waits
from accel_engine.search.engine_runs import EngineRuns
from accel_engine.search.study_paths import ARRAYS, study_directory
from accel_engine.search.trial_runs import Observation

TRIES = 5
"""How often a run is given to a place that has taken others, before its trial fails: a busy one may not answer."""

PAUSE_SECONDS = 30.0
"""Seconds between two tries."""

AHEAD = 100
"""Most trials that wait in an array at once."""

END_SECONDS = 60.0
"""How long the job of a lost run may take to end, which then tells whether somebody has cancelled it."""


class RunsAtPlace(EngineRuns):
    """Runs that a place trains.

    Args:
        name: The place.
        request: What each run asks of it.
        at_once: Most runs that train at the same time; 0 for as many as the place has room for.

    Attributes:
        environment: Describes the cluster of a run's engine, as far as checks of plans need it.

    Raises:
        UsageError: The place cannot be used from here, or cannot train trials.
        RunError: The place cannot be asked.
    """

    def __init__(self, name: PlaceName, request: PlaceRequest, at_once: int = 0) -> None:
        if name.kind == HOST:
            raise UsageError(f"{name} has its own directory of runs: search there with accel-tui search --on {name}")
        place = placed_runs.open_place(name)
        request = replace(request, nodes=place.nodes(request))
        if not place.has_run_here(request):
            raise UsageError(f"the runs of {name} would not be in {runs_directory()}, where a search reads them")
        devices = place.describe(request)
        super().__init__(_PlaceStarter(place, request, devices, at_once or place.room(request)), devices)
        self.environment = placed_runs.cluster_environment(request.nodes or 1)
        self._place, self._request = place, request
        self._lost_since: dict[str, float] = {}

    @property
    def part(self) -> Mapping[str, Any]:
        """The fields of :class:`~accel_engine.search.study_database.StudyPart` that say where."""
        return {"place": str(self._place.name), "place_request": self._request}

    def check(self, plan: Plan) -> None:
        """Check that the place can start a plan.

        Raises:
            PlanError: The plan does not fit the place.
            UsageError: The place cannot start such a run.
        """
        placed_runs.check_at_place(self._place, self._request, plan, self.devices)

    def slots(self) -> int:
        """How many runs the place can train at the same time."""
        return self._place.room(self._request)

    def ahead(self) -> int:
        """How many trials may wait there besides those that train."""
        return AHEAD if isinstance(self._place, ArrayPlace) else 0

    def observe(self, run: str) -> Observation:
        """Look at a run; one that its place starts again waits, and one whose job somebody has cancelled is stopped."""
        found, directory = super().observe(run), runs_directory() / run
        if found.status.live:
            self._lost_since.pop(run, None)
        elif placed_runs.starts_again(directory) is not False:
            return replace(found, status=Status.QUEUED)
        elif found.status in (Status.STOPPED, Status.LOST):
            with suppress(RunError, UsageError):
                return self._explained(run, found)
        return found

    def _explained(self, run: str, found: Observation) -> Observation:
        """The end of a run that was stopped or lost, as its job reports it, once that has ended."""
        info = read_run(runs_directory() / run, watched=False)
        state = placed_runs.state_of(info.place) if info.place else JobState()
        if state.is_cancelled:
            return replace(found, status=Status.STOPPED, reason=state.reason)
        if found.status is not Status.LOST:
            return found
        since = self._lost_since.setdefault(run, time.monotonic())
        if state.runs and time.monotonic() < since + END_SECONDS:
            return replace(found, status=Status.QUEUED)
        return found if found.out_of_memory else replace(found, reason=f"its engine on {info.host} was lost")

    def reopen(self, run: str, changes: Mapping[str, Any]) -> None:
        """Prepare an ended run to be continued by another job."""
        with suppress(RunError):
            info = read_run(runs_directory() / run, watched=False)
            if info.place and not info.status.live:
                placed_runs.end_job(info.place)
        super().reopen(run, changes)


class _PlaceStarter:
    """Gives runs to a place.

    Args:
        place: The place.
        request: What each run asks of it.
        devices: The devices of one of its machines.
        at_once: Most runs of an array that train at the same time.
    """

    def __init__(self, place: Place, request: PlaceRequest, devices: Sequence[Device], at_once: int) -> None:
        self._place, self._request, self._devices, self._at_once = place, request, devices, at_once
        self._failures: dict[Path, _Failure] = {}
        self._gathered: dict[Path, ResolvedPlan] = {}
        self._has_taken_one = False

    def start(self, directory: Path) -> str:
        """Give a run to the place, unless it has the run; returns why the run waits there.

        If the place has arrays, a run is kept until the next call for it: all runs of a step of the search go together.
        """
        info = read_run(directory, watched=False)
        if info.place:
            return why_waits(directory.name)
        failure = self._failures.get(directory, _Failure())
        if failure.tries and not self._has_taken_one:
            raise DataError(failure.reason)
        if failure.tries and time.monotonic() < failure.time + PAUSE_SECONDS:
            return failure.reason
        if info.plan is None:
            raise DataError(f"run {directory.name} has no plan that can be trained here")
        is_new = directory not in self._gathered
        self._gathered[directory] = placed_runs.check_at_place(self._place, self._request, info.plan, self._devices)
        if is_new and isinstance(self._place, ArrayPlace):
            return ""
        together = {each: plan for each, plan in self._gathered.items() if _is_to_start(each)}
        self._gathered.clear()
        try:
            folder = study_directory(info.study) / ARRAYS
            placed_runs.hand_over_together(self._place, self._request, together, folder, self._at_once)
        except RunError as error:
            tries, left = failure.tries + 1, [each for each in together if _is_to_start(each)]
            self._failures |= dict.fromkeys(left, _Failure(tries, time.monotonic(), str(error)))
            self._has_taken_one |= len(left) < len(together)
            if directory not in left:
                return ""
            if not self._has_taken_one or tries >= TRIES:
                raise DataError(str(error)) from error
            return str(error)
        self._has_taken_one = True
        for each in together:
            self._failures.pop(each, None)
        return ""

    def cancel(self, directory: Path) -> None:
        """End a run that waits."""
        with suppress(RunError, UsageError):  # it has just started, or ended
            cancel(directory.name)


@dataclass(frozen=True, slots=True)
class _Failure:
    """That a place has not taken a run."""

    tries: int = 0
    time: float = 0.0
    """When it was tried last, by ``time.monotonic()``."""
    reason: str = ""


def _is_to_start(directory: Path) -> bool:
    with suppress(RunError):  # it was deleted
        info = read_run(directory, watched=False)
        return info.status is Status.QUEUED and info.place is None
    return False
