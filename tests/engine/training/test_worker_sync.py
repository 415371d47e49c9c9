"""What workers tell each other. That many of them hear the same is tested with processes."""

import tensorflow as tf

from accel_engine.cluster_spec import ClusterSpec
from accel_engine.training.worker_sync import WorkerSync


def test_words_come_back_as_they_were_said_whatever_their_length() -> None:
    sync = WorkerSync(tf.distribute.get_strategy(), ClusterSpec(("a:1",)))
    for words in ("", "a", "größer als 漢字 ✓", "x" * 5000):
        assert sync.all_gather_text(words) == (words,)


def test_of_a_worker_s_replicas_one_speaks() -> None:
    sync = WorkerSync(tf.distribute.MirroredStrategy(["/CPU:0", "/CPU:1"]), ClusterSpec(("a:1",)))
    assert sync.all_gather_text("once") == ("once",)
    assert sync.all_gather(3.0, 4.0).tolist() == [[3.0, 4.0]]
