"""Intervals contain what they should as often as they say, and tests find differences that are there only."""

import numpy as np
import pytest

from accel_engine.trained.evaluation import resampling
from accel_engine.trained.evaluation.resampling import (
    bootstrap_sums,
    p_value,
    percentile_interval,
    share_interval,
    swapped_sums,
)


def mean_and_count(values: np.ndarray) -> np.ndarray:
    """The states of a mean of values, ``[examples, 2]``."""
    return np.stack([values, np.ones_like(values)], axis=1).astype(np.float32)


def means(sums: np.ndarray) -> np.ndarray:
    found: np.ndarray = sums[:, 0] / sums[:, 1]
    return found


def test_resamples_have_as_many_examples_as_there_are() -> None:
    sums = bootstrap_sums(mean_and_count(np.arange(50.0)), 200, seed=0)
    assert sums.shape == (200, 2)
    assert (sums[:, 1] == 50).all()


def test_parts_of_the_draws_do_not_change_them(monkeypatch: pytest.MonkeyPatch) -> None:
    states = mean_and_count(np.random.default_rng(0).normal(size=30))
    whole = bootstrap_sums(states, 50, seed=3)
    monkeypatch.setattr(resampling, "_DRAWN", 100)
    np.testing.assert_allclose(bootstrap_sums(states, 50, seed=3), whole)


def test_the_interval_of_a_mean_contains_the_true_mean_as_often_as_it_says() -> None:
    generator, hits = np.random.default_rng(1), 0
    for seed in range(200):
        states = mean_and_count(generator.normal(5.0, 2.0, 60))
        low, high = percentile_interval(means(bootstrap_sums(states, 400, seed)), 0.9)
        hits += low <= 5.0 <= high
    assert 165 <= hits <= 193  # 90% of 200, with three standard deviations to each side, and the bootstrap's bias


def test_the_interval_of_a_mean_is_about_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(2).normal(size=400)
    low, high = percentile_interval(means(bootstrap_sums(mean_and_count(values), 4000, seed=0)), 0.95)
    half = 1.96 * values.std() / np.sqrt(400)
    assert low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert high == pytest.approx(values.mean() + half, abs=0.1 * half)


def moving_averages(generator: np.random.Generator, length: int = 600, width: int = 12) -> np.ndarray:
    """Values with a mean of 0 that depend on those before, as the errors of overlapping windows do."""
    return np.convolve(generator.normal(size=length + width - 1), np.ones(width), "valid")


@pytest.mark.parametrize(
    ("block", "least", "most"), [pytest.param(1, 0, 110, marks=pytest.mark.campaign), (24, 160, 200)]
)
def test_only_blocks_have_intervals_of_values_that_depend_on_each_other(block: int, least: int, most: int) -> None:
    generator, hits = np.random.default_rng(8), 0
    for seed in range(200):
        states = mean_and_count(moving_averages(generator))
        low, high = percentile_interval(means(bootstrap_sums(states, 400, seed, block)), 0.95)
        hits += low <= 0.0 <= high
    assert least <= hits <= most


def test_blocks_begin_anywhere_and_follow_the_last_example_with_the_first() -> None:
    sums = bootstrap_sums(np.eye(5, dtype=np.float32), 100, seed=0, block=5)
    np.testing.assert_allclose(sums, 1.0)


def test_examples_that_are_no_multiple_of_a_block_are_counted_as_they_are() -> None:
    sums = bootstrap_sums(mean_and_count(np.arange(50.0)), 200, seed=0, block=7)
    np.testing.assert_allclose(sums[:, 1], 50)


def test_values_that_are_not_finite_are_left_out_of_an_interval() -> None:
    assert percentile_interval(np.array([np.nan, 1.0, 1.0, np.inf]), 0.95) == (1.0, 1.0)
    assert np.isnan(percentile_interval(np.array([np.nan]), 0.95)).all()


@pytest.mark.parametrize(
    ("right", "examples", "low", "high"), [(40, 40, 0.9124, 1.0), (0, 40, 0.0, 0.0876), (50, 100, 0.4038, 0.5962)]
)
def test_the_interval_of_a_share_is_wilsons(right: int, examples: int, low: float, high: float) -> None:
    assert share_interval(right, examples, 0.95) == pytest.approx((low, high), abs=1e-4)


def test_swapped_sums_keep_the_sum_of_both_models() -> None:
    generator = np.random.default_rng(4)
    first, second = (mean_and_count(generator.normal(size=20)) for _ in range(2))
    one, other = swapped_sums(first, second, 100, seed=0)
    np.testing.assert_allclose(one + other, np.broadcast_to((first + second).sum(0), (100, 2)), rtol=1e-5)
    assert len(np.unique(one[:, 0].round(4))) > 50


def test_blocks_are_swapped_as_a_whole() -> None:
    first, second = mean_and_count(np.zeros(10)), mean_and_count(np.repeat([1.0, 10.0], 5))
    one, _ = swapped_sums(first, second, 100, seed=0, block=5)
    assert set(one[:, 0]) == {0.0, 5.0, 50.0, 55.0}


def differences(first: np.ndarray, second: np.ndarray) -> tuple[float, np.ndarray]:
    one, other = (means(each) for each in swapped_sums(first, second, 999, seed=0))
    return float(means(second.sum(0)[None])[0] - means(first.sum(0)[None])[0]), other - one


def test_equal_models_differ_by_chance_as_often_as_the_level_says() -> None:
    generator, found = np.random.default_rng(5), 0
    for _ in range(200):
        hard = generator.normal(size=80)
        first, second = (mean_and_count((generator.normal(size=80) > hard).astype(float)) for _ in range(2))
        found += p_value(*differences(first, second)) <= 0.05
    assert 1 <= found <= 20


def test_a_better_model_is_found() -> None:
    right = np.random.default_rng(6).random(300) < 0.7
    better = right | (np.arange(300) % 12 == 0)
    assert p_value(*differences(mean_and_count(right.astype(float)), mean_and_count(better.astype(float)))) < 0.01


def test_a_difference_that_is_not_a_number_has_no_p() -> None:
    assert np.isnan(p_value(float("nan"), np.zeros(10)))
    assert p_value(1.0, np.array([np.nan, 2.0, 0.0])) == pytest.approx(2 / 3)


def test_models_with_the_same_results_have_a_p_of_1() -> None:
    states = mean_and_count(np.random.default_rng(7).random(50))
    assert p_value(*differences(states, states)) == 1.0
