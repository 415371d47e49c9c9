"""Batches of examples that are read by row."""

import threading
import time
from types import SimpleNamespace
from typing import cast

import numpy as np
import psutil
import pytest
import tensorflow as tf

from accel_engine.data.dataset import Split
from accel_engine.data.structure import Batch
from accel_engine.memory import CACHE_SHARE
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.core import feed
from accel_engine.training.core.feed import CachedFeed, InputWait, StreamedFeed, choose_feed, filled
from accel_engine.training.distributed import strategy_builders

ORDER = np.random.default_rng(0).permutation(20).astype(np.int32).reshape(5, 1, 4)

SPLIT = Split(
    {"pixels": np.arange(40, dtype=np.float32).reshape(20, 2), "words": np.array([f"w{row}" for row in range(20)])},
    (np.arange(20, dtype=np.int32), np.arange(60, dtype=np.uint8).reshape(20, 3)),
    np.linspace(0, 1, 20, dtype=np.float32),
)
"""Structures of numbers and text, with sample weights."""


def test_streamed_batches_are_prefetched_to_their_device() -> None:
    strategy = strategy_builders.default(("CPU:1",), resolve(Plan()))  # as an accelerator; CPU:0 is the host
    split = Split(np.arange(40, dtype=np.float32).reshape(20, 2), np.zeros(20, np.int32))

    x, _, weights = next(StreamedFeed(strategy, split).open(ORDER))

    assert x.device.endswith("CPU:1")
    assert weights is None


@pytest.mark.parametrize("kind", ["cached", "streamed", "portable"])
def test_a_batch_has_the_rows_of_every_array(kind: str) -> None:
    strategy = strategy_builders.default(("CPU:0",), resolve(Plan()))
    made = (
        CachedFeed(strategy, SPLIT) if kind == "cached" else StreamedFeed(strategy, SPLIT, portable=kind == "portable")
    )
    source = made.open(ORDER, 2)
    assert made.spec(source).is_compatible_with(source)

    for step in range(2, 5):
        batch = made.examples(*made.arguments(source, step))
        assert isinstance(batch, Batch)
        rows = ORDER[step, 0]
        np.testing.assert_array_equal(batch.inputs["pixels"], SPLIT.inputs["pixels"][rows])
        assert [word.decode() for word in batch.inputs["words"].numpy()] == [f"w{row}" for row in rows]
        for ours, theirs in zip(batch.targets, SPLIT.targets, strict=True):
            np.testing.assert_array_equal(ours, theirs[rows])
        np.testing.assert_array_equal(batch.weights, SPLIT.weights[rows])


@pytest.mark.parametrize("pipeline", [0, 1])
def test_a_worker_reads_the_rows_of_its_own_replicas(pipeline: int) -> None:
    """Two workers with three replicas each."""
    order = np.random.default_rng(1).permutation(24).astype(np.int32).reshape(2, 6, 2)
    context = tf.distribute.InputContext(num_input_pipelines=2, input_pipeline_id=pipeline)
    strategy = cast(
        tf.distribute.Strategy, SimpleNamespace(distribute_datasets_from_function=lambda function: function(context))
    )
    numbers = np.arange(24)

    batches = list(StreamedFeed(strategy, Split(numbers)).open(order, 1))

    own = order[1, 3 * pipeline : 3 * pipeline + 3]
    np.testing.assert_array_equal([batch[0] for batch in batches], own)


class Slow:
    """Numbers whose first rows come after others, if those are read at the same time."""

    shape, dtype, nbytes = (20,), np.dtype(np.int64), 160

    def __init__(self) -> None:
        self._others = threading.Event()

    def __len__(self) -> int:
        return 20

    def take(self, rows: np.ndarray) -> np.ndarray:
        if rows[0]:
            self._others.set()
        else:
            self._others.wait(0.5)
        return rows.astype(np.int64)


def test_batches_that_are_read_in_parallel_keep_their_order() -> None:
    strategy = strategy_builders.default(("CPU:0",), resolve(Plan()))

    batches = StreamedFeed(strategy, Split(Slow())).open(np.arange(20, dtype=np.int32).reshape(5, 1, 4))

    assert [int(batch[0][0]) for batch in batches] == [0, 4, 8, 12, 16]


def test_examples_are_cached_where_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    strategy = strategy_builders.default(("CPU:0",), resolve(Plan()))
    numbers = Split(np.zeros((20, 2), np.float32), np.zeros(20, np.int32))

    assert choose_feed(strategy, numbers, None).kind == "resident"
    assert choose_feed(strategy, numbers, 4 * numbers.nbytes).kind == "resident"
    assert choose_feed(strategy, numbers, 4 * numbers.nbytes - 1).kind == "streamed"
    assert choose_feed(strategy, numbers, 0).kind == "streamed"
    assert choose_feed(strategy, SPLIT, None).kind == "resident"
    assert choose_feed(strategy, SPLIT, 1 << 30).kind == "streamed"  # text stays on the host
    monkeypatch.setattr(feed, "CACHE_SHARE", 0.0)
    assert choose_feed(strategy, numbers, None).kind == "streamed"


@pytest.mark.parametrize(("memory", "copied"), [(1, False), (0, True)])
def test_only_what_another_host_reads_is_copied(memory: int, copied: bool) -> None:
    strategy, numbers = strategy_builders.default(("CPU:0",), resolve(Plan())), np.zeros(20)
    made = choose_feed(strategy, Split(numbers), memory)
    numbers[:] = 1

    batch = next(made.open(ORDER))

    assert batch[0].numpy().tolist() == [0 if copied else 1] * 4


def test_replicas_share_the_memory_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice())
    numbers = Split(np.zeros((20, 2), np.float32), np.zeros(20, np.int32))
    need = round(2 * numbers.nbytes / CACHE_SHARE)

    for available, kind in ((need, "resident"), (need - 1, "streamed")):
        monkeypatch.setattr(psutil, "virtual_memory", lambda available=available: SimpleNamespace(available=available))
        assert choose_feed(strategy, numbers, None).kind == kind


def test_an_array_may_be_input_and_target() -> None:
    x, y = np.zeros((3, 2)), np.ones(3)

    assert filled(Batch({"b": x, "a": y}, x), iter("abb")) == Batch({"b": "b", "a": "a"}, "b")


def test_a_graph_measures_how_long_it_waits_for_its_batches() -> None:
    def read() -> tf.Tensor:
        return tf.ensure_shape(tf.numpy_function(lambda: time.sleep(0.02) or 1.0, [], tf.float64), ())

    wait = InputWait()

    @tf.function
    def steps(count: tf.Tensor) -> tf.Tensor:
        total = tf.constant(0.0, tf.float64)
        for _ in tf.range(count):
            total += wait.measure(read)
        return total

    assert float(steps(tf.constant(3))) == 3.0
    assert wait.take() >= 0.06
    assert wait.take() == 0.0
