"""Reading a stream ahead and stacking its batches."""

import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from accel_engine import data
from accel_engine.data.dataset import Split
from accel_engine.data.structure import Batch, map_structure
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.core.assembly import assemble
from accel_engine.training.core.loop import ExecutionMode, Loop
from accel_engine.training.core.stream_feed import AHEAD, StreamFeed
from accel_engine.training.distributed import strategy_builders
from waiting import wait_until

from .streams import EXAMPLES, ROWS, Recorded, X, Y, dataset, sizes


def feed_of(stream: Any, *, replicas: int = 1, device: str = "CPU:0", worker: int = 0, workers: int = 1) -> StreamFeed:
    if replicas == 1:
        strategy = strategy_builders.default((device,), resolve(Plan()))
    else:
        devices = [f"CPU:{index}" for index in range(replicas)]
        strategy = tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())
    return StreamFeed(strategy, stream, device, worker, workers)


def test_batches_are_stacked_in_their_order_and_a_smaller_one_is_apart() -> None:
    segments = list(feed_of(Recorded()).segments(0, 0, lambda: 4, exact=True))

    assert [(segment.steps, segment.examples) for segment in segments] == [(4, 32), (2, 32), (1, 8)]
    assert [sizes(segment.order) for segment in segments] == [(4, 32), (2, 32), (1, 8)]
    np.testing.assert_array_equal(np.concatenate([np.reshape(each.order.inputs, (-1, 6)) for each in segments]), X)
    np.testing.assert_array_equal(np.concatenate([np.reshape(each.order.targets, -1) for each in segments]), Y)
    assert segments[0].order.weights is None


def test_reading_starts_at_the_position() -> None:
    stream = Recorded()

    (segment,) = feed_of(stream).segments(3, 6, lambda: 1, exact=True)

    assert stream.reads == [(3, 6)]
    np.testing.assert_array_equal(segment.order.inputs[0], X[192:])


@pytest.mark.parametrize("exact", [True, False])
def test_any_chunks_have_all_batches(exact: bool) -> None:
    wanted = iter([1, 1, 3, 2, 9] * 9)

    segments = list(feed_of(Recorded(size=10)).segments(0, 0, lambda: next(wanted), exact=exact))

    assert sum(segment.steps for segment in segments) == 20
    assert [sizes(segment.order)[0] for segment in segments] == [segment.steps for segment in segments]
    np.testing.assert_array_equal(np.concatenate([np.reshape(each.order.inputs, (-1, 6)) for each in segments]), X)


def test_structures_and_text_are_stacked() -> None:
    words = np.array([f"w{row}" for row in range(EXAMPLES)])
    rows = Split({"x": X, "words": words}, (Y, Y.astype(np.float32)), np.ones(EXAMPLES, np.float32))

    first, *_ = list(feed_of(Recorded(rows)).segments(0, 0, lambda: 2, exact=True))

    assert first.order.inputs["x"].shape == (2, 32, 6)
    assert first.order.inputs["words"].numpy()[1, 0] == b"w32"
    assert [each.shape for each in first.order.targets] == [(2, 32), (2, 32)]
    assert first.order.weights.shape == (2, 32)


class Stacking(Recorded):
    """Stacks its batches itself, three at a time at most."""

    def stacks(self, epoch: int, position: int, wanted: Callable[[], int]) -> Iterator[tuple[Batch, int]]:
        batches = list(self.read(epoch, position))
        for first in range(0, len(batches), min(wanted(), 3)):
            some = batches[first : first + min(wanted(), 3)]
            yield map_structure(lambda *arrays: np.stack(arrays), *some), len(some)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_stream_that_stacks_batches_itself_does_so(exact: bool, replicas: int) -> None:
    stream = Stacking(Split(X[:128], Y[:128]))

    segments = list(feed_of(stream, replicas=replicas).segments(2, 0, lambda: 64, exact=exact))

    assert stream.reads == [(2, 0)]
    assert [(segment.steps, segment.examples) for segment in segments] == ([(4, 32)] if exact else [(3, 32), (1, 32)])
    np.testing.assert_array_equal(
        np.concatenate([np.reshape(each.order.inputs, (-1, 6)) for each in segments]), X[:128]
    )


class Growing(Recorded):
    """Batches of one size whose examples have more and more values."""

    def read(self, epoch: int, position: int) -> Iterator[Batch]:
        for values in (3, 3, 4, 4, 5, 3):
            yield Batch(np.ones((2, values), np.float32), np.zeros(2, np.int32))


def test_batches_of_other_shapes_are_chunks_of_their_own() -> None:
    segments = list(feed_of(Growing()).segments(0, 0, lambda: 64, exact=True))

    assert [segment.order.inputs.shape for segment in segments] == [(2, 2, 3), (2, 2, 4), (1, 2, 5), (1, 2, 3)]


def test_stacks_are_on_the_device_that_trains() -> None:
    segment = next(feed_of(Recorded(), device="CPU:1").segments(0, 0, lambda: 2, exact=True))

    assert segment.order.inputs.device.endswith("CPU:1")


def test_replicas_share_every_batch_whole() -> None:
    stream = Recorded(Split(X[:105], Y[:105]), size=32)  # 32, 32, 32 and 9 examples

    segments = list(feed_of(stream, replicas=2).segments(0, 0, lambda: 8, exact=True))

    assert [(segment.steps, segment.examples) for segment in segments] == [(3, 32), (1, 9)]
    assert segments[0].order.inputs.shape == (3, 2, 16, 6)
    np.testing.assert_array_equal(segments[1].order.inputs[0, 0], X[[96, 97, 98, 99, 104]])
    np.testing.assert_array_equal(segments[1].order.inputs[0, 1], X[[100, 101, 102, 103, 104]])


def test_gpus_have_the_parts_of_their_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two CPUs stand in for them; the last batch has other sizes."""
    monkeypatch.setattr(data, "load", lambda *_: dataset(Recorded(size=33)))
    plan = Plan(model="mlp", batch_size=33, strategy="mirrored", virtual_cpus=2, validation="off", xla="off")

    def losses(device: str) -> list[float]:
        assembly = assemble(resolve(plan), ("CPU:0", "CPU:1"), None)
        feed = StreamFeed(assembly.strategy, assembly.dataset.train, device)
        loop = Loop(replace(assembly, feed=feed), ExecutionMode())
        segments = list(feed.segments(0, 0, lambda: 4, exact=True))
        own = assembly.strategy.experimental_local_results(feed.open(segments[0].order).inputs)
        assert [part.device[-5:] for part in own] == (["CPU:0", "CPU:1"] if device == "GPU:0" else ["CPU:0"])
        return [loss for each in segments for chunk in loop.run(each, 0) for loss in chunk.series["loss"].tolist()]

    assert losses("GPU:0") == losses("CPU:0")


@pytest.mark.parametrize("worker", [0, 1])
def test_a_worker_has_the_part_of_its_own_replicas(worker: int) -> None:
    segment = next(feed_of(Recorded(), replicas=2, worker=worker, workers=2).segments(0, 0, lambda: 2, exact=True))

    assert segment.examples == 32
    np.testing.assert_array_equal(segment.order.inputs, np.stack([X[16 * worker :][:16], X[32 + 16 * worker :][:16]]))


@pytest.mark.parametrize("worker", [0, 1])
def test_a_batch_with_fewer_examples_than_replicas_is_on_all(worker: int) -> None:
    stream = Recorded(Split(X[:33], Y[:33]), size=32)

    feed = feed_of(stream, replicas=2, worker=worker, workers=2)
    segments = list(feed.segments(0, 0, lambda: 8, exact=True))

    assert [(segment.steps, segment.examples) for segment in segments] == [(1, 32), (1, 1)]
    np.testing.assert_array_equal(segments[1].order.inputs, X[np.newaxis, 32:33])


def test_an_error_is_raised_after_the_batches_before_it() -> None:
    def fail(_: int, index: int) -> None:
        if index == 3:
            raise ValueError("a damaged page")

    segments = feed_of(Recorded(before=fail)).segments(0, 0, lambda: 1, exact=True)

    assert [next(segments).steps for _ in range(3)] == [1, 1, 1]
    with pytest.raises(ValueError, match="a damaged page"):
        next(segments)


class Endless(Recorded):
    def read(self, epoch: int, position: int) -> Iterator[Batch]:
        while True:
            self.given += 1
            yield ROWS.take(np.arange(4))


def test_few_chunks_are_read_ahead_and_the_thread_ends_with_the_reading() -> None:
    stream = Endless()
    segments = feed_of(stream).segments(0, 0, lambda: 5, exact=True)
    assert [next(segments).steps for _ in range(3)] == [5, 5, 5]
    wait_until(lambda: stream.given >= 5 * (3 + AHEAD + 1))  # the last one waits for room

    segments.close()  # waits for the thread

    assert stream.given == 5 * (3 + AHEAD + 1)
    assert not any(thread.name == "read-ahead" for thread in threading.enumerate())


def test_large_batches_are_read_ahead_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel_engine.training.core.stream_feed.AHEAD_BYTES", 1)
    monkeypatch.setattr("accel_engine.training.core.stream_feed.AHEAD", math.inf)
    stream = Endless()
    segments = feed_of(stream).segments(0, 0, lambda: 1, exact=True)
    assert [next(segments).steps for _ in range(4)] == [1] * 4
    wait_until(lambda: stream.given >= 4 + 2)

    segments.close()

    assert stream.given == 4 + 2
