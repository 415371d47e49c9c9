"""The runs of trials that a place trains, such as a cluster, which has the directory of runs under the same path."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from accel_engine.devices.device_types import Device
from accel_engine.errors import DataError, RunError, UsageError
from accel_engine.places import HOST, PlaceName, PlaceRequest
from accel_engine.places.place import Place
from accel_engine.places.placed_runs import check, cluster_environment, end_job, hand_over, open_place, starts_again
from accel_engine.plan import Plan
from accel_engine.run import Status, read_run, runs_directory
from accel_engine.run_queue.queue import cancel, why_waits
from accel_engine.search.engine_runs import EngineRuns
from accel_engine.search.trial_runs import Observation

TRIES = 5
"""How often a run is given to a place that has taken others, before its trial fails: a busy one may not answer."""

PAUSE_SECONDS = 30.0
"""Seconds between two tries."""


class RunsAtPlace(EngineRuns):
    """Runs that a place trains.

    Args:
        name: The place.
        request: What each run asks of it.

    Attributes:
        environment: Describes the cluster of a run's engine, as far as checks of plans need it.

    Raises:
        UsageError: It cannot be used from here, or cannot train trials.
        RunError: It cannot be asked.
    """

    def __init__(self, name: PlaceName, request: PlaceRequest) -> None:
        if name.kind == HOST:
            raise UsageError(f"{name} has its own directory of runs: start the search there, such as with ssh")
        place = open_place(name)
        request = replace(request, nodes=place.nodes(request))
        if not place.has_run_here(request):
            raise UsageError(f"the runs of {name} would not be in {runs_directory()}, where a search reads them")
        devices = place.describe(request)
        super().__init__(_PlaceStarter(place, request, devices), devices)
        self.environment = cluster_environment(request.nodes or 1)
        self._place, self._request = place, request

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
        check(self._place, self._request, plan, self.devices)

    def slots(self) -> int:
        """How many runs the place can train at the same time."""
        return self._place.room(self._request)

    def observe(self, run: str) -> Observation:
        """Look at a run; one that its place starts again waits."""
        found = super().observe(run)
        if found.status.live or starts_again(runs_directory() / run) is False:
            return found
        return replace(found, status=Status.QUEUED)

    def reopen(self, run: str, changes: Mapping[str, Any]) -> None:
        """Prepare an ended run to be continued by another job."""
        with suppress(RunError):
            info = read_run(runs_directory() / run, watched=False)
            if info.place and not info.status.live:
                end_job(info.place)
        super().reopen(run, changes)


class _PlaceStarter:
    """Gives runs to a place.

    Args:
        place: The place.
        request: What each run asks of it.
        devices: The devices of one of its machines.
    """

    def __init__(self, place: Place, request: PlaceRequest, devices: Sequence[Device]) -> None:
        self._place, self._request, self._devices = place, request, devices
        self._failures: dict[str, tuple[int, float, str]] = {}
        self._has_taken_one = False

    def start(self, directory: Path) -> str:
        """Give a run to the place, unless it has the run; returns why the run waits there."""
        info = read_run(directory, watched=False)
        if info.place:
            return why_waits(directory.name)
        count, time_of_last, reason = self._failures.get(directory.name, (0, 0.0, ""))
        if count and time.monotonic() < time_of_last + PAUSE_SECONDS:
            return reason
        if info.plan is None:
            raise DataError(f"run {directory.name} has no plan that can be trained here")
        resolved = check(self._place, self._request, info.plan, self._devices)
        try:
            hand_over(self._place, self._request, resolved, directory)
        except RunError as error:
            if not self._has_taken_one or count + 1 >= TRIES:
                raise DataError(str(error)) from error
            self._failures[directory.name] = count + 1, time.monotonic(), str(error)
            return str(error)
        self._has_taken_one = True
        self._failures.pop(directory.name, None)
        return ""

    def cancel(self, directory: Path) -> None:
        """End a run that waits."""
        with suppress(RunError, UsageError):  # it has just started, or ended
            cancel(directory.name)
