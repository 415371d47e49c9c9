"""The workers of a run that is trained by many: following what they write, and who they are."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.events import RunEnded, RunStarted, WorkersMet
from accel_engine.run import RunReader
from accel_engine.run.worker_runs import worker_runs_of
from accel_engine.text import printable_fields
from accel_tui.formatting.names import CHIEF, COORDINATOR
from accel_tui.run.fold_events import fold
from accel_tui.run.state import RunState

_HOSTS = 3
"""How many machines are named."""

STATUS_SECONDS = 3.0
"""How often it is asked whether a worker's engine still lives; the chief misses one later."""

_SAMPLES = 500
"""How many of the samples that a worker took before are read."""


class WorkerFollower:
    """Folds what the other workers of a run say into a state each, but for their steps: those are the chief's.

    Args:
        directory: The chief's run.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._readers: dict[str, RunReader] = {}
        self._states: dict[str, RunState] = {}
        self._places: dict[str, tuple[int, int]] = {}
        self._asked: dict[str, float] = {}

    def look(self) -> Mapping[str, RunState]:
        """The states by worker, those of runs that are here by now; the same object while nothing has changed."""
        found = {name: self._look_at(name, path) for name, path in worker_runs_of(self._directory).items()}
        states = {name: state for name, state in found.items() if state}
        if states.keys() != self._states.keys() or any(
            state is not self._states[name] for name, state in states.items()
        ):
            self._states = states
        return self._states

    def close(self) -> None:
        """Let go of their files."""
        for reader in self._readers.values():
            reader.close()

    def _look_at(self, name: str, path: Path) -> RunState | None:
        state = self._states.get(name)
        try:
            if self._turn_to(name, path):
                state = None
            update = self._readers[name].poll()
        except (RunError, OSError):
            return state  # it may be half made, or its disk away: at the next look it is tried again
        state = state or RunState()
        after = fold(state, update) if update else state
        turned = any(isinstance(event, RunStarted | RunEnded) for event in update.events)
        if turned or after.info is None or time.monotonic() - self._asked[name] >= STATUS_SECONDS:
            self._asked[name] = time.monotonic()
            with suppress(RunError):
                info = printable_fields(self._readers[name].info())
                after = after if info == after.info else replace(after, info=info)
        return after

    def _turn_to(self, name: str, path: Path) -> bool:
        """Read a worker's run, which is another once it was resumed elsewhere; whether it is."""
        found = path.stat()
        place = found.st_dev, found.st_ino
        if self._places.get(name) == place:
            return False
        reader = RunReader(path, max_samples=_SAMPLES, steps=False, past_phases=False)
        if name in self._readers:
            self._readers[name].close()
        self._readers[name], self._places[name] = reader, place
        return True


@dataclass(frozen=True, slots=True)
class Worker:
    """One of those that train together.

    Attributes:
        name: As in ``worker 1``.
        state: What it says; ``None`` where its run cannot be seen from here.
        host: The machine that it is on; empty while that is not known.
        address: Where the others reach it; empty before they met.
        run: What it writes there; empty before they met.
    """

    name: str
    state: RunState | None
    host: str = ""
    address: str = ""
    run: str = ""


def workers_of(state: RunState) -> tuple[Worker, ...]:
    """All workers of a run, the chief first; none for one that is trained alone."""
    if not state.met and not state.workers:
        return ()
    chief = COORDINATOR if CHIEF in state.workers else CHIEF
    mine = (state.started and state.started.worker) or chief
    states = {**state.workers, mine: state}
    if state.met:
        return tuple(Worker(state=states.get(worker["name"]), **worker) for worker in state.met.workers)
    return tuple(Worker(name, states[name], _host(states[name])) for name in (mine, *state.workers))


def whereabouts(met: WorkersMet) -> str:
    """How many workers there are, and where: ``4 on node1, node2``."""
    hosts = dict.fromkeys(worker["host"] for worker in met.workers)
    where = ", ".join(hosts) if len(hosts) <= _HOSTS else f"{len(hosts)} machines"
    return f"{len(met.workers)} on {where}"


def means_of(met: WorkersMet) -> str:
    """By what gradients are summed over workers, in words."""
    return {"nccl": "NCCL", "ring": "a ring"}.get(met.reduction, met.reduction)


def _host(state: RunState) -> str:
    return state.info.host if state.info else ""
