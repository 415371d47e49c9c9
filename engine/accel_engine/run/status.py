"""What state a run is in, judged from its file and from whether its engine still lives."""

import json
import socket
import sqlite3
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
from accel_engine.run import lock
from accel_engine.run.annotations import Annotations, read_annotations
from accel_engine.run.process_identity import ProcessIdentity, machine_id

HEARTBEAT_SECONDS = 1.0
"""How often an engine writes its heartbeat, which only machines that do not share the file system's locks look at."""

SILENCE_SECONDS = 15.0
"""How long ago an engine on another machine may have written its run, where its lock is not seen here."""

START_SECONDS = 30.0
"""How long a new run may wait for its engine before it counts as lost."""


_LAST = """
SELECT kind, body FROM event WHERE kind IN ('run_started', 'phase_changed', 'run_ended') ORDER BY id DESC LIMIT 1
"""


class Status(StrEnum):
    """The state of a run as a whole."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    LOST = "lost"

    @property
    def live(self) -> bool:
        """Whether more is to come."""
        return self in (Status.STARTING, Status.RUNNING, Status.PAUSED)


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What stands in a run's ``meta`` table, and its status now.

    Attributes:
        id: Its id, the name of its directory.
        directory: Where it is.
        plan: What it trains; ``None`` when this machine cannot read the plan (a file has moved, say), and
            where a script trains.
        values: The plan's fields as stored.
        created: Seconds since the Unix epoch.
        host: The machine of its engine.
        pid: Process id of its engine, or ``None`` before there is one.
        labels: What people have called it, noted of it and tagged it with.
        script: The command line of the user's own script that trains it; empty where an engine does.
        clock_offset: :data:`accel_engine.clock.OFFSET` of its engine, if that is on this machine.
    """

    id: str
    directory: Path
    plan: Plan | None
    values: dict[str, Any]
    created: float
    host: str
    pid: int | None
    status: Status
    labels: Annotations = field(default_factory=Annotations)
    script: str = ""
    clock_offset: float | None = None

    def now(self) -> float:
        """The time by the clock that its engine times events with, in seconds since the Unix epoch."""
        return clock.now() if self.clock_offset is None else clock.boot_seconds() + self.clock_offset

    @property
    def name(self) -> str:
        """What it was renamed to, else what its plan calls it; empty when nobody named it."""
        return self.labels.name or str(self.values.get("name") or "")

    @property
    def title(self) -> str:
        """The run's name, or what it trains."""
        return self.name or f"{self.values.get('model')} on {self.values.get('data')}"


def read_info(connection: sqlite3.Connection, directory: Path) -> RunInfo:
    """Read ``meta`` and judge the run's status."""
    meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    values = json.loads(meta["plan"])
    script = str(meta.get("script", ""))
    pid = meta.get("pid")
    return RunInfo(
        id=directory.name,
        directory=directory,
        plan=None if script else _plan_of(meta["plan"]),
        values=values,
        created=float(meta["created"]),
        host=str(meta.get("host", "")),
        pid=int(pid) if pid is not None else None,
        status=_status(connection, directory, meta),
        labels=read_annotations(meta),
        script=script,
        clock_offset=meta.get("clock_offset") if meta.get("machine") == machine_id() else None,
    )


@lru_cache(maxsize=64)
def _plan_of(text: str) -> Plan | None:
    """A plan, where this program knows all of it; whoever follows a run asks every second."""
    with suppress(UsageError):
        return Plan.from_mapping(json.loads(text))
    return None


def _status(connection: sqlite3.Connection, directory: Path, meta: dict[str, Any]) -> Status:
    """Judge from the lock, the last event, and ``pending`` (when the run began to wait for an engine)."""
    if (pending := meta.get("pending")) is not None:
        return Status.STARTING if _is_starting(meta, float(pending)) else Status.LOST
    # Looked at before the events: an engine that ends in between has written its end by then.
    written = lock.is_held(directory) or _is_written_elsewhere(meta)
    found = connection.execute(_LAST).fetchone()
    last, said = (found[0], json.loads(found[1])) if found else ("", {})
    if last == "run_ended":
        return Status(said["outcome"])
    if not written:
        return Status.LOST
    return Status.PAUSED if said.get("phase") == Phase.PAUSED else Status.RUNNING


def _is_written_elsewhere(meta: dict[str, Any]) -> bool:
    """Whether another machine, or an older program, wrote the run a moment ago, if both clocks are right.

    It is for showing, where a file system does not share its locks: :mod:`accel_engine.run.ownership` decides whether a
    run may be taken from another machine.
    """
    if "machine" not in meta:  # written by version 1, whose heartbeats were the wall clock's time
        written = meta.get("heartbeat", 0.0)
    elif meta["machine"] == machine_id() or meta.get("host") == socket.gethostname():
        return False
    else:
        written = meta.get("written", 0.0)
    return abs(time.time() - float(written)) < SILENCE_SECONDS


def _is_starting(meta: dict[str, Any], pending: float) -> bool:
    """Whether a run that no engine has taken up yet may still be: its engine lives, or it has not waited for long."""
    process = ProcessIdentity.parse(meta.get("process"))
    if process and process.visible:
        return process.alive
    return meta.get("machine") == machine_id() and 0 <= clock.boot_seconds() - pending < START_SECONDS
