"""Workers that have come together tell each other who and where they are."""

import json
import socket
from pathlib import Path

from accel_engine import clock
from accel_engine.cluster_spec import ClusterSpec
from accel_engine.events import WorkersMet
from accel_engine.run.worker_runs import link, path_of
from accel_engine.training.worker_sync import WorkerSync


def introduce(council: WorkerSync, cluster: ClusterSpec, directory: Path, reduction: str) -> WorkersMet:
    """Hear from all workers where their runs are, and let the chief's run lead to this worker's.

    Args:
        council: All workers, each of whom does this now.
        cluster: Who they are.
        directory: The run that this one writes.
        reduction: How gradients are summed.
    """
    heard = [json.loads(text) for text in council.share(json.dumps([socket.gethostname(), path_of(directory)]))]
    if not cluster.chief:
        host, run = heard[0]
        link(directory, run, host, cluster.index)
    workers = tuple(
        {"name": f"worker {index}", "address": address, "host": host, "run": run}
        for index, (address, (host, run)) in enumerate(zip(cluster.workers, heard, strict=True))
    )
    return WorkersMet(time=clock.now(), workers=workers, reduction=reduction)
