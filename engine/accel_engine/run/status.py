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

import psutil

from accel_engine.errors import UsageError
from accel_engine.events import Phase
from accel_engine.plan import Plan
from accel_engine.run.labels import Labels, labels_of

HEARTBEAT_SECONDS = 1.0
"""How often an engine says that it lives."""

SILENCE_SECONDS = 15.0
"""How long an engine on another machine may be silent before its run counts as lost."""

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
    """

    id: str
    directory: Path
    plan: Plan | None
    values: dict[str, Any]
    created: float
    host: str
    pid: int | None
    status: Status
    labels: Labels = field(default_factory=Labels)
    script: str = ""

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
        status=_status(connection, meta),
        labels=labels_of(meta),
        script=script,
    )


@lru_cache(maxsize=64)
def _plan_of(text: str) -> Plan | None:
    """A plan, where this program knows all of it; whoever follows a run asks every second."""
    with suppress(UsageError):
        return Plan.from_mapping(json.loads(text))
    return None


def is_alive(pid: int, started: float) -> bool:
    """Whether the process that had this id at this start time still runs on this machine."""
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - started) < 2.0 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _status(connection: sqlite3.Connection, meta: dict[str, Any]) -> Status:
    """Judge from ``pending`` (handed to an engine that has not begun), the last event and the process."""
    pid, pending = meta.get("pid"), meta.get("pending")
    now = time.time()
    if pid is None:
        return Status.STARTING if now - float(pending or 0.0) < START_SECONDS else Status.LOST
    # Looked at before the events: an engine that ends in between has written its end by then.
    if meta.get("host") == socket.gethostname():
        alive = is_alive(int(pid), float(meta["pid_started"]))
    else:
        alive = now - float(meta.get("heartbeat", 0.0)) < SILENCE_SECONDS
    found = connection.execute(_LAST).fetchone() if pending is None else None
    last, said = (found[0], json.loads(found[1])) if found else ("", {})
    if last == "run_ended":
        return Status(said["outcome"])
    if not alive:
        return Status.LOST
    if pending is not None:
        return Status.STARTING
    return Status.PAUSED if said.get("phase") == Phase.PAUSED else Status.RUNNING
