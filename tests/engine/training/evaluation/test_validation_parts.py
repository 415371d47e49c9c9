"""The batches of a validation have every example once, weighted where replicas repeat it."""

import numpy as np
import pytest

from accel_engine.training.evaluation.validation_parts import row_parts


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
