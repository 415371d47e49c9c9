import numpy as np
import pytest

from accel_engine.data.dataset import Split
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.core import feed
from accel_engine.training.core.feed import StreamedFeed, epoch_order, epoch_segment
from accel_engine.training.distributed import strategy_builders


def test_an_epoch_uses_every_example_at_most_once() -> None:
    order = epoch_order(seed=3, epoch=0, examples=100, steps=6, replicas=2, batch=8)

    assert order.shape == (6, 2, 8)
    assert len(set(order.ravel().tolist())) == 96


def test_epochs_differ_and_depend_on_the_seed() -> None:
    first = epoch_order(3, 0, 100, 6, 1, 16)

    assert not np.array_equal(first, epoch_order(3, 1, 100, 6, 1, 16))
    assert not np.array_equal(first, epoch_order(4, 0, 100, 6, 1, 16))
    np.testing.assert_array_equal(first, epoch_order(3, 0, 100, 6, 1, 16))


def test_an_epoch_longer_than_the_data_starts_another_pass() -> None:
    order = epoch_order(0, 0, examples=10, steps=5, replicas=1, batch=5)

    for turn in (order[0:2], order[2:4]):
        assert sorted(turn.ravel()) == list(range(10))


def test_the_order_of_a_long_epoch_is_generated_in_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "MAX_ROWS", 50)
    whole = epoch_order(0, 3, examples=11, steps=23, replicas=1, batch=5)

    parts = [epoch_segment(step, examples=11, steps=23, batch=5) for step in (0, 9, 10, 19, 20, 22)]

    assert parts == [range(10), range(10), range(10, 20), range(10, 20), range(20, 23), range(20, 23)]
    for part in parts:
        np.testing.assert_array_equal(epoch_order(0, 3, 11, len(part), 1, 5, part.start), whole[part.start : part.stop])


def test_replicas_split_the_batches_of_one_device() -> None:
    alone = epoch_order(0, 0, 100, 6, 1, 16)
    shared = epoch_order(0, 0, 100, 6, 2, 8)

    np.testing.assert_array_equal(alone.reshape(6, -1), shared.reshape(6, -1))


def test_streamed_batches_are_prefetched_to_their_device() -> None:
    strategy = strategy_builders.default(("CPU:1",), resolve(Plan()))  # as an accelerator; CPU:0 is the host
    split = Split(np.arange(40, dtype=np.float32).reshape(20, 2), np.zeros(20, np.int32))

    x, _ = next(StreamedFeed(strategy, split).open(epoch_order(0, 0, 20, 5, 1, 4)))

    assert x.device.endswith("CPU:1")
