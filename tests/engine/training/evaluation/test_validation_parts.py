"""The batches of a validation have every example once, weighted where replicas repeat it."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from accel_engine.data.dataset import Split
from accel_engine.training.core.stream_feed import StreamFeed
from accel_engine.training.evaluation.validation_parts import row_parts, stream_parts

from ..core.streams import Recorded


@pytest.mark.parametrize(
    ("examples", "replicas", "size"), [(700, 2, 100), (701, 3, 64), (2, 4, 8), (12, 3, 4), (0, 2, 5)]
)
def test_every_row_has_the_weight_of_one_example(examples: int, replicas: int, size: int) -> None:
    weights = np.zeros(examples)
    for part in row_parts(examples, replicas, size):
        assert part.order.shape[:2] == (part.steps, replicas)
        assert part.order.shape[2] <= size
        assert part.examples == part.order[0].size * part.weight
        np.add.at(weights, part.order.ravel(), part.weight)

    np.testing.assert_allclose(weights, 1.0)


@pytest.mark.parametrize("limit", [None, 1, 2])
@pytest.mark.parametrize(("examples", "replicas", "size"), [(21, 3, 8), (2, 4, 8), (12, 3, 6), (5, 1, 2)])
def test_every_row_of_a_stream_has_the_weight_of_one_example(
    examples: int, replicas: int, size: int, limit: int | None
) -> None:
    weights, batches = np.zeros(examples), []
    feed = cast(StreamFeed, SimpleNamespace(stacked=lambda batch: batch))
    for part in stream_parts(Recorded(Split(np.arange(examples)), size), feed, replicas, limit):
        assert part.steps == 1
        assert part.examples <= replicas * (limit or size)
        assert part.batch is not None
        assert part.examples == len(part.batch.inputs) == len(part.order.inputs) * part.weight
        np.add.at(weights, part.order.inputs, part.weight)
        batches.append(part.batch.inputs)

    np.testing.assert_allclose(weights, 1.0)
    np.testing.assert_array_equal(np.concatenate(batches), np.arange(examples))
