"""Running means give back what each batch measured, or say that they cannot."""

import numpy as np
import pytest

from accel_engine.recording.running_means import PRECISE_BATCHES, RunningMean, batch_weights, recover_values


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

    first, usual = recover_values(RunningMean(), means[:split], each[:split])
    rest, _ = recover_values(RunningMean(means[split - 1], each[:split].sum()), means[split:], each[split:], usual)

    assert usual == pytest.approx(np.median(values[:split]), rel=1e-3)
    np.testing.assert_allclose(np.concatenate([first, rest])[:-1], values[:-1], rtol=1e-4)
    np.testing.assert_allclose(np.concatenate([first, rest])[-1], values[-1], rtol=1e-3)


def test_the_last_batch_that_counts_as_precise_is_known_to_a_hundredth_of_the_mean() -> None:
    values = np.random.default_rng(0).uniform(0.5, 1.5, PRECISE_BATCHES)
    each = np.full(len(values), 32.0)

    found, _ = recover_values(RunningMean(), running_means(values, each), each)

    error = np.abs(found - values)
    assert error.max() < 0.01
    assert error[:1000].max() < 2e-4


def test_an_accuracy_is_at_most_one_though_the_means_are_rounded() -> None:
    values = np.random.default_rng(0).choice([31 / 32, 1.0], 45, p=[0.2, 0.8])
    each = np.full(len(values), 32.0)
    found, _ = recover_values(RunningMean(), running_means(values, each), each)
    assert found.max() == 1.0
    np.testing.assert_allclose(found, values, atol=1e-5)


def test_weights_are_told_where_they_are_certain() -> None:
    assert batch_weights(96, 3, 32, epoch_ended=False) == pytest.approx([32, 32, 32])
    assert batch_weights(69, 3, 32, epoch_ended=True) == pytest.approx([32, 32, 5])
    assert batch_weights(65, 3, 32, epoch_ended=True) == pytest.approx([32, 32, 1])
    assert batch_weights(17, 1, 32, epoch_ended=False) == pytest.approx([17])
    assert batch_weights(0.5, 1, 32, epoch_ended=False) == pytest.approx([0.5])


@pytest.mark.parametrize(
    ("count", "calls", "epoch_ended"),
    [
        (69, 3, False),  # one of them is smaller, and which is not known
        (64, 3, True),  # two of them are
        (97, 3, True),  # one is larger
        (0, 1, True),
    ],
)
def test_weights_are_not_made_up(count: float, calls: int, epoch_ended: bool) -> None:
    assert batch_weights(count, calls, 32, epoch_ended=epoch_ended) is None


@pytest.mark.parametrize("split", [0, 3, 6])
def test_what_a_very_large_value_leaves_too_little_of_is_missing_and_not_noise(split: int) -> None:
    values = np.array([18.641, 12.157, 12.015, 3.125e8, 9.838, 18.068, 15.622, 9.528, 12.778])
    each = np.full(len(values), 32.0)
    means = running_means(values, each)
    before, usual = (RunningMean(means[split - 1], 32.0 * split), 15.0) if split else (RunningMean(), 0.0)
    found, _ = recover_values(before, means[split:], each[split:], usual)
    known = np.isfinite(found)
    np.testing.assert_allclose(found[known], values[split:][known], rtol=0.1)
    assert known[: max(0, 4 - split)].all()
    assert not known[max(0, 4 - split) :].any()


def test_small_values_after_larger_ones_are_known_as_long_as_rounding_leaves_them() -> None:
    values = 2.5 * np.exp(-np.arange(500) / 40)
    each = np.full(len(values), 32.0)
    means, usual, found = running_means(values, each), 0.0, []
    for first in range(0, 500, 50):  # as in ten looks
        before = RunningMean(means[first - 1], 32.0 * first) if first else RunningMean()
        part, usual = recover_values(before, means[first : first + 50], each[first : first + 50], usual)
        found.append(part)
    known = np.isfinite(all_found := np.concatenate(found))
    assert known[:300].all()
    np.testing.assert_allclose(all_found[:300], values[:300], rtol=0.05)
    np.testing.assert_allclose(all_found[known], values[known], atol=2e-5, rtol=0.05)


@pytest.mark.parametrize("split", [0, 2, 5])
def test_zeros_are_known(split: int) -> None:
    values = np.array([0.0, 0.5, 0.0, 0.0, 1.0, 0.0])
    each = np.full(len(values), 8.0)
    means = running_means(values, each)
    before, usual = (RunningMean(means[split - 1], 8.0 * split), 0.5) if split else (RunningMean(), 0.0)
    found, usual = recover_values(before, means[split:], each[split:], usual)
    np.testing.assert_allclose(found, values[split:], atol=1e-6)
    assert usual == pytest.approx(0.5 if split else 0.75)
    np.testing.assert_array_equal(recover_values(RunningMean(), np.zeros(4), np.ones(4))[0], np.zeros(4))
