"""Starts the process that watches a run."""

import os
from contextlib import closing, suppress
from pathlib import Path

from accel_engine.errors import AccelError, RunError, UsageError
from accel_engine.process.detached import leave, start_detached
from accel_engine.run import RunReader
from accel_engine.run.directory import lock
from accel_engine.run.directory.log_file import note
from accel_engine.run.directory.run_paths import LOG, WATCHER_LOCK
from accel_engine.strategies.cluster_spec import ClusterSpec


def ensure_watched(directory: Path) -> None:
    """Start a process that watches a run, if its plan says so and there is none yet.

    The workers that a chief starts are started again with the chief. That no process can be started is noted in the
    run's log.
    """
    with suppress(AccelError), closing(RunReader(directory, steps=False)) as reader:
        if reader.info().plan_values.get("keep_alive") != "on" or _has_chief():
            return
        if not lock.is_held(directory, WATCHER_LOCK):
            _start(directory)


def _start(directory: Path) -> None:
    what = f"the process that watches run {directory.name}"
    try:
        leave(start_detached(what, "-m", "accel_engine.keep_alive", str(directory), log=directory / LOG))
    except RunError as error:
        note(directory, f"{error}. Nothing starts the engine again if it is lost")


def _has_chief() -> bool:
    """Whether this process is one of the workers that the chief has started on this machine."""
    with suppress(UsageError):  # reported where the cluster is needed
        cluster = ClusterSpec.find(os.environ)
        return cluster is not None and cluster.local and not cluster.chief
    return False
