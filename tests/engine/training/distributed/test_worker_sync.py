"""Collective operations of a single worker; ``test_workers.py`` tests several processes."""

import tensorflow as tf

from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.training.distributed.worker_sync import WorkerSync


def test_strings_of_any_length_are_gathered() -> None:
    sync = WorkerSync(tf.distribute.get_strategy(), ClusterSpec(("a:1",)))
    for words in ("", "a", "größer als 漢字 ✓", "x" * 5000):
        assert sync.all_gather_text(words) == (words,)


def test_one_replica_per_worker_contributes() -> None:
    sync = WorkerSync(tf.distribute.MirroredStrategy(["/CPU:0", "/CPU:1"]), ClusterSpec(("a:1",)))
    assert sync.all_gather_text("once") == ("once",)
    assert sync.all_gather(3.0, 4.0).tolist() == [[3.0, 4.0]]
