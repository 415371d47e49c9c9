"""Starts the process that watches a run."""

import os
from contextlib import closing, suppress
from pathlib import Path

from accel_engine.errors import AccelError, UsageError
from accel_engine.process.detached import leave, start_detached
from accel_engine.run import RunReader
from accel_engine.run.directory import lock
from accel_engine.run.directory.run_paths import LOG, WATCHER_LOCK
from accel_engine.strategies.cluster_spec import ClusterSpec


def ensure_watched(directory: Path) -> None:
    """Start a process that watches a run, if its plan says so and there is none yet.

    It is in a session of its own, and outlives the engine, the dashboard and the terminal. The workers that a chief
    starts are started again with the chief.

    Raises:
        RunError: It cannot be started.
    """
    if _should_watch(directory) and not lock.is_held(directory, WATCHER_LOCK):
        what = f"the process that watches run {directory.name}"
        leave(start_detached(what, "accel_engine.keep_alive", str(directory), log=directory / LOG))


def _should_watch(directory: Path) -> bool:
    with suppress(AccelError), closing(RunReader(directory, steps=False)) as reader:
        return reader.info().plan_values.get("keep_alive") == "on" and not _has_chief()
    return False


def _has_chief() -> bool:
    """Whether this process is one of the workers that the chief has started on this machine."""
    with suppress(UsageError):  # reported where the cluster is needed
        cluster = ClusterSpec.find(os.environ)
        return cluster is not None and cluster.local and not cluster.chief
    return False
