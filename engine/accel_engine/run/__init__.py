"""A run on disk, which engines write and dashboards read.

A run is a directory with ``run.db`` (see :mod:`accel_engine.run.store.database`), ``log.txt``, ``checkpoints/``
and, once trained, ``model.keras``.
"""

from accel_engine.run.directory.run_paths import home, runs_directory
from accel_engine.run.engine.commands import Command, send_command
from accel_engine.run.engine.status import RunInfo, Status
from accel_engine.run.reading.reader import RunReader, read_run
from accel_engine.run.reading.update import Chunk, Update
from accel_engine.run.runs.creation import create, reopen
from accel_engine.run.runs.listing import RunList, RunSummary, find_run, list_runs
from accel_engine.run.store.annotations import Annotations
from accel_engine.run.store.database import SCHEMA_VERSION
from accel_engine.run.writing.writer import RunWriter

__all__ = [
    "SCHEMA_VERSION",
    "Annotations",
    "Chunk",
    "Command",
    "RunInfo",
    "RunList",
    "RunReader",
    "RunSummary",
    "RunWriter",
    "Status",
    "Update",
    "create",
    "find_run",
    "home",
    "list_runs",
    "read_run",
    "reopen",
    "runs_directory",
    "send_command",
]
