"""Exchanges the workers' hosts and run directories once they have connected."""

import json
import socket
from pathlib import Path

from accel_engine import clock
from accel_engine.events import Worker, WorkersMet
from accel_engine.run.worker_runs import link, path_of
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.training.distributed.worker_sync import WorkerSync


def link_worker_runs(sync: WorkerSync, cluster: ClusterSpec, directory: Path, reduction: str) -> WorkersMet:
    """Gather the run directories of all workers, and link this worker's run from the chief's.

    Args:
        sync: Synchronizes the workers, all of which call this now.
        cluster: Their addresses.
        directory: This worker's run.
        reduction: How gradients are summed.
    """
    gathered = [
        json.loads(text) for text in sync.all_gather_text(json.dumps([socket.gethostname(), path_of(directory)]))
    ]
    if not cluster.chief:
        host, run = gathered[0]
        link(directory, run, host, cluster.index)
    workers = tuple(
        Worker(f"worker {index}", address, host, run)
        for index, (address, (host, run)) in enumerate(zip(cluster.workers, gathered, strict=True))
    )
    return WorkersMet(time=clock.now(), workers=workers, reduction=reduction)
