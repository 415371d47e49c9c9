"""Whose a run is: refusing one that another process trains."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.run.process_identity import machine_id
from accel_engine.run.schema import connect
from accel_engine.run.status import HEARTBEAT_SECONDS, RunInfo, Status, read_info

WATCH_SECONDS = 3 * HEARTBEAT_SECONDS
"""How long a run that another machine has written is watched for a heartbeat, before it is taken from there."""


def taken(info: RunInfo) -> RunError:
    """The error that says which process has a run."""
    return RunError(f"run {info.id} is being trained by process {info.pid} already")


def refuse_written_elsewhere(directory: Path) -> None:
    """Refuse a lost run that another machine, whose locks are not seen here, or an older program still writes.

    It watches whether the heartbeat moves, for :data:`WATCH_SECONDS`, and compares no clocks: those of two machines
    differ. A run that this machine has written since it was booted takes no time: its lock says all there is to know.

    Raises:
        RunError: The run is being written, or cannot be read.
    """
    before = _heartbeat(directory)
    if before is None:
        return
    time.sleep(WATCH_SECONDS)
    if _heartbeat(directory) != before:
        raise RunError(
            f"run {directory.name} is being trained by another machine or by an older accel-tui: its heartbeat moves, "
            "although it is not locked here. Stop it there first"
        )


def _heartbeat(directory: Path) -> object:
    """The last heartbeat of a lost run; ``None`` where the lock is enough to know that it is lost."""
    try:
        with closing(connect(directory, read_only=True)) as connection:
            meta = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('machine', 'heartbeat')"))
            if meta.get("machine") == machine_id() or read_info(connection, directory).status is not Status.LOST:
                return None
            return meta.get("heartbeat")
    except sqlite3.Error as error:
        raise RunError(f"run {directory.name} cannot be read: {error}") from error
