"""Checks that no other process trains a run."""

import time
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.run.engine.process_identity import machine_id
from accel_engine.run.engine.status import HEARTBEAT_SECONDS, RunInfo, Status, read_info
from accel_engine.run.store.database import reading
from accel_engine.run.store.meta import read_meta

WATCH_SECONDS = 3 * HEARTBEAT_SECONDS
"""How long to watch the heartbeat of a run that another machine has written, before this one may write it."""


def already_training_error(info: RunInfo) -> RunError:
    """The error for a run that another process trains."""
    by = f" by process {info.pid}" if info.pid is not None else ""
    return RunError(f"run {info.id} is already being trained{by}")


def check_not_written_elsewhere(*directories: Path) -> None:
    """Reject lost runs that another machine still writes, whose locks are not visible here.

    This watches for :data:`WATCH_SECONDS` whether the heartbeat changes, since the clocks of two machines differ.
    Runs that this machine has written since its boot take no time: their locks are enough.

    Raises:
        RunError: A run is being written, or cannot be read.
    """
    before = {directory: beat for directory in directories if (beat := _heartbeat(directory)) is not None}
    if not before:
        return
    time.sleep(WATCH_SECONDS)
    moved = next((directory for directory, beat in before.items() if _heartbeat(directory) != beat), None)
    if moved:
        raise RunError(
            f"run {moved.name} is being trained on another machine: its heartbeat changes, although it is not locked "
            "here. Stop it there first"
        )


def _heartbeat(directory: Path) -> object:
    """The last heartbeat of a lost run; ``None`` if its lock is enough to know its status."""
    with reading(directory) as database:
        meta = read_meta(database)
        if meta.get("machine") == machine_id() or read_info(database).status is not Status.LOST:
            return None
        return meta.get("heartbeat")
