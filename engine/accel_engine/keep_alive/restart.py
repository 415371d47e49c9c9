"""Starts the process that watches a run, and tells a new engine why that process started it again."""

import os
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from accel_engine import clock
from accel_engine.errors import AccelError, RunError, UsageError
from accel_engine.events import Recovered
from accel_engine.json_values import Count, JsonValue, Text, decode_or_none, encode
from accel_engine.process.detached import leave, start_detached
from accel_engine.run import RunReader
from accel_engine.run.directory import lock
from accel_engine.run.directory.log_file import note_in_log
from accel_engine.run.directory.run_paths import LOG, WATCHER_LOCK
from accel_engine.strategies.cluster_spec import ClusterSpec

_VARIABLE = "ACCEL_TUI_RESTART"

STARTED_BY_PLACE = "ACCEL_TUI_PLACE"
"""Environment variable of engines that a cluster has started, which also starts them again."""


@dataclass(frozen=True, slots=True)
class Restart:
    """The restart of an engine."""

    trouble: Text
    """As ``trouble`` of :class:`accel_engine.events.Recovered`."""
    failed_step: Count
    """Steps that the lost engine had taken."""
    reason: Text
    """Why it was lost."""
    action: Text
    """The action of the restart, in words."""
    changes: dict[str, JsonValue] = field(default_factory=dict)
    """Fields of the plan that changed."""
    variables: dict[str, Text] = field(default_factory=dict)
    """Environment variables that the new engine gets, as the lost one had them."""

    @classmethod
    def take(cls) -> Self | None:
        """Read and remove the restart from the environment, so that later children lack it; ``None`` without one."""
        return decode_or_none(os.environ.pop(_VARIABLE, ""), cls)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of the new engine."""
        return {**self.variables, _VARIABLE: encode(self)}

    def event(self, step: int) -> Recovered:
        """The event that records it, in a run that continues from a step."""
        return Recovered(
            time=clock.now(),
            trouble=self.trouble,
            step=step,
            failed_step=self.failed_step,
            reason=self.reason,
            action=self.action,
            changes=self.changes,
        )


def ensure_watched(directory: Path) -> None:
    """Start a process that watches a run, if its plan says so and there is none yet.

    The workers that a chief starts are started again with the chief; engines that a cluster starts, by the cluster. A
    process that cannot be started is noted in the run's log.
    """
    with suppress(AccelError), closing(RunReader(directory, steps=False)) as reader:
        if reader.info().plan_values.get("keep_alive") != "on" or _has_chief() or STARTED_BY_PLACE in os.environ:
            return
        if not lock.is_locked(directory, WATCHER_LOCK):
            _start(directory)


def _start(directory: Path) -> None:
    what = f"the process that watches run {directory.name}"
    try:
        leave(start_detached(what, "-m", "accel_engine.keep_alive", str(directory), log=directory / LOG))
    except RunError as error:
        note_in_log(directory, f"{error}. Nothing starts the engine again if it is lost")


def _has_chief() -> bool:
    """Whether this process is one of the workers that the chief has started on this machine."""
    with suppress(UsageError):  # reported where the cluster is needed
        cluster = ClusterSpec.find(os.environ)
        return cluster is not None and cluster.local and not cluster.chief
    return False
