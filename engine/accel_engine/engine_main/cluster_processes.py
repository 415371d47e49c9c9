"""The processes of a run on several: starts the local ones, waits for the others, and notices lost ones."""

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from accel_engine import clock
from accel_engine.events import Event, Phase, PhaseChanged, RunEnded
from accel_engine.plan import isolation
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.training.distributed import peers

LOST_HINT = "the last checkpoint is kept: continue the run once all workers are reachable"


class ClusterProcesses:
    """The processes that train a run together; none but this one until :meth:`start` finds that there are others.

    Args:
        write_event: Adds an event to the run.
        warn: Adds a warning to the run.

    Attributes:
        spec: Where they are, and which one this is; ``None`` if the run has one process.
    """

    def __init__(self, write_event: Callable[[Event], None], warn: Callable[[str], None]) -> None:
        self._write_event = write_event
        self._warn = warn
        self.spec: ClusterSpec | None = None
        self._local: peers.LocalWorkers | None = None
        self._monitor: peers.PeerMonitor | None = None

    def start(self, directory: Path, resolved: ResolvedPlan, *, isolated: bool) -> ResolvedPlan:
        """Start the plan's local workers and monitor the cluster's processes; returns the plan with its cluster.

        Args:
            directory: The run's directory.
            resolved: Its plan.
            isolated: Whether nobody else can reach the ports of this process.
        """
        if not resolved.strategy.processes:
            return resolved
        cluster = resolved.cluster
        if cluster is None:
            if not isolated and (reachable := isolation.warning(resolved)):
                self._warn(reachable)
            plan, start = resolved.plan, partial(peers.start_worker_run, directory, resolved.plan)
            self._local = peers.LocalWorkers(plan.local_workers, start, coordinated=resolved.strategy.coordinated)
            cluster = self._local.cluster
        if self._local or cluster.source != "TF_CONFIG":
            os.environ |= peers.worker_environment(cluster)  # where TensorFlow reads it
        self.spec = cluster
        if cluster.peers:
            self._monitor = peers.PeerMonitor(cluster, self._report_missing, self._warn)
        return replace(resolved, cluster=cluster)

    def wait_for_all(self) -> None:
        """Wait until all processes have started.

        TensorFlow waits too briefly for servers, and ignores signals while it waits for workers.
        """
        if not (self._monitor and self.spec):
            return
        own = self.spec.workers[self.spec.index] if not self.spec.coordinated else None
        with peers.ReadinessListener(own) if own else nullcontext():
            self._monitor.wait_for_all()

    @property
    def problem(self) -> str:
        """Why training cannot continue, as processes are lost; empty while it can."""
        return self._monitor.problem if self._monitor else ""

    @property
    def has_served(self) -> bool:
        """Whether this process serves a coordinator, to which all others were connected: a loss is the normal end."""
        return bool(self._monitor and self._monitor.all_joined and self.spec and self.spec.serves)

    def explain_loss(self, ended: RunEnded) -> RunEnded:
        """Name the lost process if training failed because its connection was lost; TensorFlow's error does not."""
        if self._monitor and (problem := self._monitor.wait_for_problem()):
            return replace(ended, reason=problem, hint=LOST_HINT, temporary=True)
        return ended

    def stop_monitoring(self) -> None:
        """Look for lost processes no more."""
        if self._monitor:
            self._monitor.stop()

    def end_local(self, *timeout: float) -> None:
        """End the workers that this process has started; see :meth:`LocalWorkers.end`."""
        if self._local:
            self._local.end(*timeout)

    def _report_missing(self, names: str) -> None:
        phase, detail = Phase.BUILDING, f"waiting for {names}" if names else ""
        if not names and self.spec and self.spec.serves:
            phase = Phase.TRAINING
            detail = f"{'running steps' if self.spec.role == 'worker' else 'storing weights'} for the coordinator"
        self._write_event(PhaseChanged(time=clock.now(), phase=phase, detail=detail))
