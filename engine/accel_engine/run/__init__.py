"""A run on disk, which engines write and dashboards read.

A run is a directory with ``run.db`` (see :mod:`accel_engine.run.connection`), ``log.txt``, ``checkpoints/``
and, once trained, ``model.keras``.
"""

from accel_engine.run.annotations import Annotations
from accel_engine.run.commands import Command, request
from accel_engine.run.connection import SCHEMA_VERSION
from accel_engine.run.creation import create, reopen
from accel_engine.run.listing import RunList, RunSummary, find, list_runs
from accel_engine.run.reader import RunReader
from accel_engine.run.run_paths import home, runs_directory
from accel_engine.run.status import RunInfo, Status
from accel_engine.run.update import Chunk, Update
from accel_engine.run.writer import RunWriter

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
    "find",
    "home",
    "list_runs",
    "reopen",
    "request",
    "runs_directory",
]
