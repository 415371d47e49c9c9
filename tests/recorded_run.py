"""Events of a run, and changes of its database behind the engine's back."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from accel_engine.events import RunStarted
from accel_engine.run.store.database import DATABASE, RunDatabase


def started(first_step: int = 0, *, time: float = 1.0, run: str = "k7m2", worker: str = "") -> RunStarted:
    """The first event of an engine."""
    return RunStarted(
        time=time,
        run=run,
        name="",
        plan={},
        first_step=first_step,
        pid=os.getpid(),
        host="h",
        versions={},
        worker=worker,
    )


def execute(directory: Path, statement: str, *parameters: object) -> list[Any]:
    """Run one statement in a run's database, and return its rows, whole or not."""
    with closing(sqlite3.connect(directory / DATABASE, isolation_level=None)) as database:
        return database.execute(statement, parameters).fetchall()


def put(directory: Path, **values: object) -> None:
    """Set rows of ``meta``."""
    with closing(RunDatabase(directory)) as database:
        database.set_meta(**values)
