"""Batches of examples that are read by row."""

import numpy as np
import pytest

from accel_engine.data.dataset import Split
from accel_engine.data.structure import Batch
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.core import feed
from accel_engine.training.core.feed import CachedFeed, StreamedFeed, choose_feed, filled
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

    for step in range(2, 5):
        batch = made.examples(*made.arguments(source, step))
        assert isinstance(batch, Batch)
        rows = ORDER[step, 0]
        np.testing.assert_array_equal(batch.inputs["pixels"], SPLIT.inputs["pixels"][rows])
        assert [word.decode() for word in batch.inputs["words"].numpy()] == [f"w{row}" for row in rows]
        for ours, theirs in zip(batch.targets, SPLIT.targets, strict=True):
            np.testing.assert_array_equal(ours, theirs[rows])
        np.testing.assert_array_equal(batch.weights, SPLIT.weights[rows])


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


def test_an_array_may_be_input_and_target() -> None:
    x, y = np.zeros((3, 2)), np.ones(3)

    assert filled(Batch({"b": x, "a": y}, x), iter("abb")) == Batch({"b": "b", "a": "a"}, "b")
