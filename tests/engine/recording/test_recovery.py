"""Running means give back what each batch measured, or say that they cannot."""

import numpy as np
import pytest

from accel_engine.recording.recovery import PRECISE_BATCHES, Point, recover, weights


def running_means(values: np.ndarray, each: np.ndarray) -> np.ndarray:
    """As Keras computes them, in float32."""
    total, count, means = np.float32(0), np.float32(0), []
    for value, weight in zip(values.astype(np.float32), each.astype(np.float32), strict=True):
        total, count = total + value * weight, count + weight
        means.append(total / count)
    return np.array(means, np.float64)


@pytest.mark.parametrize("split", [1, 7, 99, 100])
def test_batches_are_recovered_with_a_smaller_one_at_the_end(split: int) -> None:
    values = np.random.default_rng(0).lognormal(size=100)
    each = np.full(100, 32.0)
    each[-1] = 5
    means = running_means(values, each)

    first = recover(Point(), means[:split], each[:split])
    rest = recover(Point(means[split - 1], each[:split].sum()), means[split:], each[split:])

    np.testing.assert_allclose(np.concatenate([first, rest])[:-1], values[:-1], rtol=1e-4)
    np.testing.assert_allclose(np.concatenate([first, rest])[-1], values[-1], rtol=1e-3)


def test_the_last_batch_that_counts_as_precise_is_known_to_a_hundredth_of_the_mean() -> None:
    values = np.random.default_rng(0).uniform(0.5, 1.5, PRECISE_BATCHES)
    each = np.full(len(values), 32.0)

    found = recover(Point(), running_means(values, each), each)

    error = np.abs(found - values)
    assert error.max() < 0.01
    assert error[:1000].max() < 2e-4


def test_weights_are_told_where_they_are_certain() -> None:
    assert weights(96, 3, 32, over=False) == pytest.approx([32, 32, 32])
    assert weights(69, 3, 32, over=True) == pytest.approx([32, 32, 5])
    assert weights(17, 1, 32, over=False) == pytest.approx([17])


@pytest.mark.parametrize(
    ("count", "calls", "over"),
    [
        (69, 3, False),  # one of them is smaller, and which is not known
        (64, 3, True),  # two of them are
        (97, 3, True),  # one is larger
        (0, 1, True),
    ],
)
def test_weights_are_not_made_up(count: float, calls: int, over: bool) -> None:
    assert weights(count, calls, 32, over=over) is None
