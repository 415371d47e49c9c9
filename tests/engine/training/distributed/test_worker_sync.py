"""Collective operations of a single worker; ``test_workers.py`` tests several processes."""

import numpy as np
import pytest
import tensorflow as tf

from accel_engine.errors import RunError
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


@pytest.mark.parametrize(("steps", "start"), [([30, 20], 20), ([20, 30], 20), ([0, 0], 0)])
def test_workers_continue_from_the_newest_checkpoint_that_all_of_them_have(
    monkeypatch: pytest.MonkeyPatch, steps: list[int], start: int
) -> None:
    sync = WorkerSync(tf.distribute.get_strategy(), ClusterSpec(("a:1",)))
    monkeypatch.setattr(sync, "all_gather", lambda *_: np.array(steps, float)[:, np.newaxis])
    assert sync.start_step(30) == start


def test_a_worker_without_checkpoints_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    sync = WorkerSync(tf.distribute.get_strategy(), ClusterSpec(("a:1",)))
    monkeypatch.setattr(sync, "all_gather", lambda *_: np.array([[3000.0], [0.0]]))
    with pytest.raises(RunError, match=r"worker 1 has no checkpoint of this run, but worker 0 has .* step 3,000: copy"):
        sync.start_step(0)
