"""Starts the process that watches a run."""

import os
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

from accel_engine import hangup
from accel_engine.errors import AccelError, UsageError
from accel_engine.run import RunReader
from accel_engine.run.directory import lock
from accel_engine.run.directory.run_paths import LOG, WATCHER_LOCK
from accel_engine.strategies.cluster_spec import ClusterSpec


def ensure_watched(directory: Path) -> None:
    """Start a process that watches a run, if its plan says so and there is none yet.

    It is in a session of its own, and outlives the engine, the dashboard and the terminal. The workers that a chief
    starts are started again with the chief.
    """
    with suppress(AccelError), closing(RunReader(directory, steps=False)) as reader:
        if reader.info().plan_values.get("keep_alive") != "on" or _has_chief():
            return
        if not lock.is_held(directory, WATCHER_LOCK):
            _start(directory)


def _start(directory: Path) -> None:
    log = os.open(directory / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        with hangup.held():
            process = subprocess.Popen(
                [sys.executable, "-m", "accel_engine.keep_alive", str(directory)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    finally:
        os.close(log)
    process.returncode = 0  # it outlives this process: without this, Python would warn of that at the exit


def _has_chief() -> bool:
    """Whether this process is one of the workers that the chief has started on this machine."""
    with suppress(UsageError):  # reported where the cluster is needed
        cluster = ClusterSpec.find(os.environ)
        return cluster is not None and cluster.local and not cluster.chief
    return False
