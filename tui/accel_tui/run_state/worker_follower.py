"""Follows the other workers of a distributed run."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.events import RunEnded, RunStarted, WorkersMet
from accel_engine.run import RunReader
from accel_engine.run.runs.worker_runs import worker_runs_of
from accel_engine.strategies.cluster_spec import CHIEF, COORDINATOR
from accel_engine.text import printable_fields
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.state import RunState

_HOSTS = 3
"""Maximum number of machines that are named."""

STATUS_SECONDS = 3.0
"""Seconds between two checks whether a worker's engine is alive; the chief notices a missing one later."""

_SAMPLES = 500
"""Maximum number of past samples of a worker that are read."""


class WorkerFollower:
    """Folds the other workers' runs into states, without steps, which are the chief's.

    Args:
        directory: The chief's run directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._readers: dict[str, RunReader] = {}
        self._states: dict[str, RunState] = {}
        self._file_ids: dict[str, tuple[int, int]] = {}
        self._status_times: dict[str, float] = {}

    def poll(self) -> Mapping[str, RunState]:
        """States by worker, of the runs that are visible here; the same object while unchanged."""
        found = {name: self._poll_worker(name, path) for name, path in worker_runs_of(self._directory).items()}
        states = {name: state for name, state in found.items() if state}
        if states.keys() != self._states.keys() or any(
            state is not self._states[name] for name, state in states.items()
        ):
            self._states = states
        return self._states

    def close(self) -> None:
        """Close the workers' runs."""
        for reader in self._readers.values():
            reader.close()

    def _poll_worker(self, name: str, path: Path) -> RunState | None:
        state = self._states.get(name)
        try:
            if self._open_reader(name, path):
                state = None
            update = self._readers[name].poll()
        except (RunError, OSError):
            return state  # incomplete, or its disk is away: tried again at the next poll
        state = state or RunState()
        after = apply_update(state, update) if update else state
        started_or_ended = any(isinstance(event, RunStarted | RunEnded) for event in update.events)
        if started_or_ended or after.info is None or time.monotonic() - self._status_times[name] >= STATUS_SECONDS:
            self._status_times[name] = time.monotonic()
            with suppress(RunError):
                info = printable_fields(self._readers[name].info())
                after = after if info == after.info else replace(after, info=info)
        return after

    def _open_reader(self, name: str, path: Path) -> bool:
        """Open a worker's run, which changes when it continues on another machine; returns whether it has changed."""
        found = path.stat()
        file_id = found.st_dev, found.st_ino
        if self._file_ids.get(name) == file_id:
            return False
        reader = RunReader(path, max_samples=_SAMPLES, steps=False, past_phases=False)
        if name in self._readers:
            self._readers[name].close()
        self._readers[name], self._file_ids[name] = reader, file_id
        return True


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """A worker of a distributed run."""

    name: str
    """E.g. ``worker 1``."""
    state: RunState | None
    """Its state; ``None`` if its run is not visible from this machine."""
    host: str = ""
    """Its machine; empty if unknown."""
    address: str = ""
    """Its address; empty before the workers connect."""
    run: str = ""
    """Id of its run; empty before the workers connect."""


def workers_of(state: RunState) -> tuple[WorkerStatus, ...]:
    """All workers of a run, the chief first; empty for a single worker."""
    if not state.workers_met and not state.workers:
        return ()
    chief = COORDINATOR if CHIEF in state.workers else CHIEF
    own_name = (state.started and state.started.worker) or chief
    states = {**state.workers, own_name: state}
    if state.workers_met:
        return tuple(
            WorkerStatus(each.name, states.get(each.name), each.host, each.address, each.run)
            for each in state.workers_met.workers
        )
    return tuple(WorkerStatus(name, states[name], _host(states[name])) for name in (own_name, *state.workers))


def worker_locations(met: WorkersMet) -> str:
    """Number of workers and their machines: ``4 on node1, node2``."""
    hosts = dict.fromkeys(worker.host for worker in met.workers)
    where = ", ".join(hosts) if len(hosts) <= _HOSTS else f"{len(hosts)} machines"
    return f"{len(met.workers)} on {where}"


def reduction_name(met: WorkersMet) -> str:
    """Name of the all-reduce implementation."""
    return {"nccl": "NCCL", "ring": "ring"}.get(met.reduction, met.reduction)


def _host(state: RunState) -> str:
    return state.info.host if state.info else ""
