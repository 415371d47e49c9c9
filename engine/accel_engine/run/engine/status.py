"""The status of a run, found from its database and its engine's lock."""

import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from accel_engine import clock
from accel_engine.errors import RunError, UsageError
from accel_engine.events import Event, Phase, PhaseChanged, RunEnded, RunStarted
from accel_engine.json_values import decode_or_none
from accel_engine.plan import Plan
from accel_engine.run.directory import lock
from accel_engine.run.directory.disk_problem import DiskProblem, read_waiting
from accel_engine.run.directory.run_paths import LOCK, WATCHER_LOCK, run_name
from accel_engine.run.engine.memory_loss import MemoryLoss, last_words, memory_loss
from accel_engine.run.engine.process_identity import ProcessIdentity, machine_id
from accel_engine.run.store.annotations import Annotations, read_annotations
from accel_engine.run.store.database import RunDatabase
from accel_engine.run.store.meta import (
    HOST_STATE,
    HostState,
    ImportSource,
    PlacedRun,
    effective_plan,
    read_meta,
    stored_plan,
)
from accel_engine.run.store.series_names import BATCH_SIZE
from accel_engine.run.store.stored_events import last_event

HEARTBEAT_SECONDS = 1.0
"""Interval of an engine's heartbeat, which matters only to machines that do not see the file system's locks."""

SILENCE_SECONDS = 15.0
"""Maximum age of the heartbeat of a live engine on another machine, if its lock is not visible here."""

START_SECONDS = 30.0
"""How long a new run may wait for its engine before it counts as lost."""

BENCH_MONITOR = "throughput"
"""The series of a bench that counts: examples per second, or requests."""


class Status(StrEnum):
    """The status of a run."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    LOST = "lost"

    @property
    def live(self) -> bool:
        """Whether an engine trains the run, or will."""
        return self is Status.QUEUED or self.has_engine

    @property
    def has_engine(self) -> bool:
        """Whether an engine is at work on the run, also while it starts or is paused."""
        return self in (Status.STARTING, Status.RUNNING, Status.PAUSED)


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run's ``meta`` table and its present status."""

    id: str
    """Its id, the name of its directory; of a run that is mirrored from a host, ``HOST:ID``."""
    directory: Path
    """Its directory."""
    plan: Plan | None
    """Its plan; ``None`` if this machine cannot load the plan (e.g. a file has moved), and without an engine."""
    plan_values: dict[str, Any]
    """The plan's fields as stored; without an engine, those that are known."""
    created: float
    """Seconds since the Unix epoch; 0 if that is missing and there are no events."""
    host: str
    """Host name of its engine."""
    pid: int | None
    """Process id of its engine; ``None`` before it has one."""
    status: Status
    annotations: Annotations = field(default_factory=Annotations)
    """The user's name, note and tags."""
    script: str = ""
    """Command line of the user's script that trains it; empty for other runs."""
    source: ImportSource | None = None
    """The files that it was imported from; ``None`` for other runs."""
    place: PlacedRun | None = None
    """Where it was started, such as on a cluster; ``None`` for a run of this program's own engines."""
    bench: str = ""
    """The scenario in which ``accel-tui bench`` measured inference; empty for other runs."""
    launched: bool = False
    """Whether ``accel-tui run`` started the script, so that its output is the log and it can be interrupted."""
    clock_offset: float | None = None
    """:data:`accel_engine.clock.OFFSET` of its engine, by this machine's clock; ``None`` for an engine of another
    machine, unless its run is mirrored."""
    waiting: DiskProblem | None = None
    """Why its live engine waits for the disk; ``None`` if it does not."""
    is_directory_lost: bool = False
    """Whether its directory was deleted, moved or replaced since it was opened: no command finds it."""
    memory_loss: MemoryLoss | None = None
    """How it was lost because memory ran out; ``None`` if it was not, as far as is known."""
    last_words: str = ""
    """What native code wrote as it ended its engine, if that is why it was lost."""
    study: str = ""
    """Name of the search that it belongs to; empty for none."""
    trial: int | None = None
    """Number of its trial there; ``None`` for a run that confirms the best one, and without a search."""

    @property
    def has_engine(self) -> bool:
        """Whether an engine of this program trains it: it has a plan and a log, and can have checkpoints."""
        return self.kind == "training"

    @property
    def kind(self) -> str:
        """The origin of the run: ``training`` by an engine, a ``script``, an ``import`` or a ``bench`` of inference."""
        return _kind(self.script, self.source, self.bench)

    @property
    def made(self) -> str:
        """How it was made without an engine, in words, such as ``imported``."""
        return {"script": "recorded by a script", "import": "imported", "bench": "measured by accel-tui bench"}[
            self.kind
        ]

    def require_plan(self, otherwise: str) -> Plan:
        """The plan of a run that an engine of this program trains.

        Args:
            otherwise: The end of the message for another run.

        Raises:
            RunError: The run has no plan, or one that this version cannot read.
        """
        if not self.has_engine:
            raise RunError(f"run {self.id} was {self.made}: {otherwise}")
        if self.plan is None:
            raise RunError(f"the plan of run {self.id} cannot be read on this machine")
        return self.plan

    def setting(self, name: str) -> Any:
        """A field of the plan, or else the setting of that name that a script or another tool has logged.

        ``None`` if it is unknown.
        """
        value, config = self.plan_values.get(name), self.plan_values.get("config")
        return config.get(name, value) if isinstance(config, dict) and not value else value

    @property
    def x_series(self) -> str:
        """The series by which its other series are; empty if they are by step."""
        return BATCH_SIZE if self.bench else ""

    @property
    def x_name(self) -> str:
        """The name of the axis of its series: ``step`` or ``batch size``."""
        return self.x_series.replace("_", " ") or "step"

    @property
    def monitor(self) -> str:
        """The metric that counts; empty if it is inferred from those that it has."""
        return BENCH_MONITOR if self.bench else str(self.plan_values.get("monitor") or "")

    def now(self) -> float:
        """The time by the clock of its engine's events, in seconds since the Unix epoch."""
        return clock.now() if self.clock_offset is None else clock.boot_seconds() + self.clock_offset

    @property
    def name(self) -> str:
        """Its annotated name, or its plan's; empty if it has none."""
        return self.annotations.name or str(self.plan_values.get("name") or "")

    @property
    def title(self) -> str:
        """The run's name, or its model and data; a script's model may not be known yet."""
        return self.name or " on ".join(str(value) for field in ("model", "data") if (value := self.setting(field)))


def read_info(database: RunDatabase, *, watched: bool = True) -> RunInfo:
    """Read a run's ``meta`` and find its status.

    Args:
        database: The run.
        watched: Whether a run whose engine will be started again is starting; else it has the status of its end.

    Raises:
        RunError: It cannot be read, or its host tells a state that this version does not know.
    """
    directory, meta = database.directory, read_meta(database)
    script, source, bench, plan = meta.get("script", ""), meta.get("source"), meta.get("bench", ""), meta.get("plan")
    has_engine = _kind(script, source, bench) == "training"
    is_directory_lost = not database.is_current()
    mirrored: HostState | None = meta.get(HOST_STATE)
    status = _status_there(mirrored) if mirrored else _status(database, meta, is_directory_lost=is_directory_lost)
    values = dict((effective_plan if has_engine else stored_plan)(plan)) if plan else {}
    if source and not isinstance(values.get("config"), dict):  # earlier versions wrote its settings as plan fields
        settings = {name: values.pop(name) for name in [*values] if name != "name"}
        values |= {"config": settings} if settings else {}
    info = RunInfo(
        id=run_name(directory),
        directory=directory,
        plan=_plan_of(plan) if has_engine and plan else None,
        plan_values=values,
        created=meta["created"] if "created" in meta else database.first_time(),
        host=meta.get("host", ""),
        pid=meta.get("pid"),
        status=Status.STARTING if watched and _will_restart(database, values, status) else status,
        annotations=read_annotations(meta),
        script=script,
        source=source,
        place=meta.get("place"),
        bench=bench,
        launched=meta.get("launched", False),
        clock_offset=meta.get("clock_offset") if meta.get("machine") == machine_id() else None,
        waiting=read_waiting(directory) if status.live and not is_directory_lost else None,
        is_directory_lost=is_directory_lost,
        memory_loss=memory_loss(directory, meta) if status is Status.LOST else None,
        last_words=last_words(directory, meta) if status is Status.LOST else "",
        study=meta.get("study", ""),
        trial=meta.get("trial"),
    )
    return _with_state_there(info, mirrored) if mirrored else info


def _with_state_there(info: RunInfo, state: HostState) -> RunInfo:
    """Add the state of a mirrored run that only its host knows: locks, memory and clock."""
    try:
        waiting = DiskProblem(state.waiting) if state.waiting else None
        loss = MemoryLoss(state.memory_loss) if state.memory_loss else None
    except ValueError as error:
        raise RunError(f"run {info.id}: its host tells what this version does not know: {error}") from error
    offset = clock.OFFSET + state.ahead
    return replace(info, clock_offset=offset, waiting=waiting, memory_loss=loss, last_words=state.last_words)


def _status_there(state: HostState) -> Status:
    try:
        return Status(state.status)
    except ValueError as error:
        raise RunError(f"its host tells a status that this version does not know: {error}") from error


def _will_restart(database: RunDatabase, plan: Mapping[str, Any], status: Status) -> bool:
    """Whether a process beside the engine will start the lost or ended engine again."""
    if status.live or plan.get("keep_alive") != "on" or not lock.is_locked(database.directory, WATCHER_LOCK):
        return False
    ended = last_event(database, RunEnded)
    return status is Status.LOST or (ended is not None and ended.temporary)


def _kind(script: str, source: ImportSource | None, bench: str) -> str:
    if script:
        return "script"
    return "import" if source else "bench" if bench else "training"


@lru_cache(maxsize=64)
def _plan_of(text: str) -> Plan | None:
    """Parse a plan; ``None`` if this program does not know all of it. Cached, as followers read it every second."""
    with suppress(UsageError):
        return Plan.from_mapping(effective_plan(text))
    return None


def _status(database: RunDatabase, meta: Mapping[str, Any], *, is_directory_lost: bool) -> Status:
    """Find the status from the lock, the last event, and ``pending`` (since when the run waits for an engine)."""
    if (pending := meta.get("pending")) is not None:
        return Status.STARTING if _is_starting(meta, pending) else Status.LOST
    if meta.get("queued"):
        return Status.QUEUED
    # Read before the events: an engine that exits in between has written its last event by then.
    has_writer = lock.is_locked(database.directory) or _is_written_elsewhere(meta)
    is_here = meta.get("machine") == machine_id()
    if is_here and (is_directory_lost or not (database.directory / LOCK).exists()):  # its writer notices it in a moment
        process = decode_or_none(meta.get("process"), ProcessIdentity)
        has_writer = has_writer or (process is not None and process.alive)
    status = _status_after(last_event(database, RunStarted, PhaseChanged, RunEnded))
    return status if has_writer or not status.live else Status.LOST


def _status_after(event: Event | None) -> Status:
    match event:
        case RunEnded(outcome=outcome):
            return Status(outcome)
        case PhaseChanged(phase=Phase.PAUSED):
            return Status.PAUSED
    return Status.RUNNING


def _is_written_elsewhere(meta: Mapping[str, Any]) -> bool:
    """Whether another machine wrote the run a moment ago, assuming synchronized clocks.

    For display only, on file systems that do not share locks. Before writing a run of another machine,
    :mod:`accel_engine.run.engine.ownership` checks without comparing clocks.
    """
    if meta.get("machine") == machine_id() or meta.get("host") == socket.gethostname():
        return False
    return bool(abs(time.time() - meta.get("written", 0.0)) < SILENCE_SECONDS)


def _is_starting(meta: Mapping[str, Any], pending: float) -> bool:
    """Whether a pending run may still start: its engine is alive, or it has not waited for long."""
    process = decode_or_none(meta.get("process"), ProcessIdentity)
    if process and process.visible:
        return process.alive
    return meta.get("machine") == machine_id() and 0 <= clock.boot_seconds() - pending < START_SECONDS
