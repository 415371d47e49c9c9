"""The status of a run, found from its database and its engine's lock."""

import json
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from accel_engine import clock
from accel_engine.errors import UsageError
from accel_engine.events import Phase
from accel_engine.plan import Plan
from accel_engine.plan.field_needs import without_ignored
from accel_engine.run import lock
from accel_engine.run.annotations import Annotations, read_annotations
from accel_engine.run.database import Database
from accel_engine.run.process_identity import ProcessIdentity, machine_id

HEARTBEAT_SECONDS = 1.0
"""Interval of an engine's heartbeat, which matters only to machines that do not see the file system's locks."""

SILENCE_SECONDS = 15.0
"""Maximum age of the heartbeat of a live engine on another machine, if its lock is not visible here."""

START_SECONDS = 30.0
"""How long a new run may wait for its engine before it counts as lost."""


class Status(StrEnum):
    """The status of a run."""

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
        return self in (Status.STARTING, Status.RUNNING, Status.PAUSED)


@dataclass(frozen=True, slots=True)
class ImportSource:
    """The files of another tool that a run was imported from.

    Attributes:
        path: The folder or file.
        format: ``TensorBoard``, ``W&B`` or ``CSV``.
        fingerprint: Checksum of the contents.
    """

    path: str
    format: str
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run's ``meta`` table and its present status.

    Attributes:
        id: Its id, the name of its directory.
        directory: Its directory.
        plan: Its plan; ``None`` if this machine cannot load the plan (e.g. a file has moved), and without an engine.
        plan_values: The plan's fields as stored; without an engine, those that are known.
        created: Seconds since the Unix epoch.
        host: Host name of its engine.
        pid: Process id of its engine; ``None`` before it has one.
        annotations: The user's name, note and tags.
        script: Command line of the user's script that trains it; empty for other runs.
        source: The files that it was imported from; ``None`` for other runs.
        launched: Whether ``accel-tui run`` started the script, so that its output is the log and it can be interrupted.
        clock_offset: :data:`accel_engine.clock.OFFSET` of its engine, if that is on this machine.
    """

    id: str
    directory: Path
    plan: Plan | None
    plan_values: dict[str, Any]
    created: float
    host: str
    pid: int | None
    status: Status
    annotations: Annotations = field(default_factory=Annotations)
    script: str = ""
    source: ImportSource | None = None
    launched: bool = False
    clock_offset: float | None = None

    @property
    def has_engine(self) -> bool:
        """Whether an engine of this program trains it: it has a plan and a log, and can have checkpoints."""
        return not self.script and self.source is None

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
        return self.name or " on ".join(
            str(value) for field in ("model", "data") if (value := self.plan_values.get(field))
        )


def read_info(database: Database) -> RunInfo:
    """Read a run's ``meta`` and find its status."""
    directory, meta = database.directory, database.meta()
    script = str(meta.get("script", ""))
    source = _source_of(meta["source"]) if "source" in meta else None
    has_engine = not script and source is None
    values = _plan_values(meta["plan"]) if has_engine else json.loads(meta["plan"])
    pid = meta.get("pid")
    return RunInfo(
        id=directory.name,
        directory=directory,
        plan=_plan_of(meta["plan"]) if has_engine else None,
        plan_values=values,
        created=float(meta["created"]),
        host=str(meta.get("host", "")),
        pid=int(pid) if pid is not None else None,
        status=_status(database, meta),
        annotations=read_annotations(meta),
        script=script,
        source=source,
        launched=bool(meta.get("launched")),
        clock_offset=meta.get("clock_offset") if meta.get("machine") == machine_id() else None,
    )


def _source_of(text: str) -> ImportSource:
    values = json.loads(text)
    return ImportSource(values["path"], values["format"], values.get("fingerprint", ""))


_EARLIER = {"last_batch": "drop"}
"""What versions without these plan fields did, where it differs from the default."""


@lru_cache(maxsize=64)
def _plan_of(text: str) -> Plan | None:
    """Parse a plan; ``None`` if this program does not know all of it. Cached, as followers read it every second."""
    with suppress(UsageError):
        return Plan.from_mapping(_plan_values(text))
    return None


def _plan_values(text: str) -> dict[str, Any]:
    """A stored plan's fields that have an effect; those that the run's version did not have say what it did."""
    return without_ignored({**_EARLIER, **json.loads(text)})


def _status(database: Database, meta: dict[str, Any]) -> Status:
    """Find the status from the lock, the last event, and ``pending`` (since when the run waits for an engine)."""
    if (pending := meta.get("pending")) is not None:
        return Status.STARTING if _is_starting(meta, float(pending)) else Status.LOST
    # Read before the events: an engine that exits in between has written its last event by then.
    has_writer = lock.is_held(database.directory) or _is_written_elsewhere(meta)
    kind, text = database.last_event("run_started", "phase_changed", "run_ended")
    body = json.loads(text or "{}")
    if kind == "run_ended":
        return Status(body["outcome"])
    if not has_writer:
        return Status.LOST
    return Status.PAUSED if body.get("phase") == Phase.PAUSED else Status.RUNNING


def _is_written_elsewhere(meta: dict[str, Any]) -> bool:
    """Whether another machine, or an older program, wrote the run a moment ago, assuming synchronized clocks.

    For display only, on file systems that do not share locks. Before writing a run of another machine,
    :mod:`accel_engine.run.ownership` checks without comparing clocks.
    """
    if "machine" not in meta:  # written by version 1, whose heartbeats were the wall clock's time
        written = meta.get("heartbeat", 0.0)
    elif meta["machine"] == machine_id() or meta.get("host") == socket.gethostname():
        return False
    else:
        written = meta.get("written", 0.0)
    return abs(time.time() - float(written)) < SILENCE_SECONDS


def _is_starting(meta: dict[str, Any], pending: float) -> bool:
    """Whether a pending run may still start: its engine is alive, or it has not waited for long."""
    process = ProcessIdentity.parse(meta.get("process"))
    if process and process.visible:
        return process.alive
    return meta.get("machine") == machine_id() and 0 <= clock.boot_seconds() - pending < START_SECONDS
