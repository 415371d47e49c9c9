import math

import numpy as np
import pytest

from accel_engine.inference.measurement.percentiles import interval_ranks, percentiles


def test_percentiles_are_those_of_the_nearest_rank() -> None:
    found = percentiles(np.arange(1000, 0, -1) * 1_000_000)  # 1 to 1000 ms
    assert [found[name].value for name in ("p50", "p90", "p99", "p999")] == [0.5, 0.9, 0.99, 0.999]


def test_the_ends_of_an_interval_are_latencies_around_its_percentile() -> None:
    p50 = percentiles(np.arange(1, 101) * 1_000_000)["p50"]
    assert (p50.value, p50.low, p50.high) == (0.05, 0.04, 0.061)


def probability(count: int, share: float, low: int, high: int) -> float:
    """That the percentile is between the values of two ranks: ``low <= successes < high``."""
    return sum(math.comb(count, each) * share**each * (1 - share) ** (count - each) for each in range(low, high))


@pytest.mark.parametrize(("count", "share"), [(6, 0.5), (100, 0.5), (100, 0.9), (800, 0.99)])
def test_an_interval_has_the_probability_and_no_narrower_one_has_half_the_rest_on_each_side(
    count: int, share: float
) -> None:
    low, high = interval_ranks(count, share, 0.95)
    assert low is not None
    assert high is not None
    assert probability(count, share, low, high) >= 0.95
    assert probability(count, share, 0, low + 1) > 0.025
    assert probability(count, share, high - 1, count + 1) > 0.025


def test_too_few_requests_leave_an_end_open() -> None:
    assert interval_ranks(5, 0.5, 0.95) == (None, None)
    low, high = interval_ranks(300, 0.999, 0.95)
    assert low is not None
    assert high is None
    found = percentiles(np.full(300, 2_000_000))["p999"]
    assert (found.value, found.low, found.high) == (0.002, 0.002, None)


def test_intervals_of_random_latencies_enclose_the_true_percentile_as_often_as_they_say() -> None:
    draws = np.random.default_rng(7)
    true = -math.log(1 - 0.9)  # of the exponential distribution
    inside = 0
    for _ in range(1000):
        p90 = percentiles((draws.exponential(1.0, 200) * 1e9).astype(np.int64))["p90"]
        assert p90.low is not None
        assert p90.high is not None
        inside += p90.low <= true <= p90.high
    assert 940 <= inside <= 985


def test_the_ranks_of_a_million_requests_are_those_of_the_normal_approximation() -> None:
    low, high = interval_ranks(1_000_000, 0.5, 0.95)
    assert low == pytest.approx(500_000 - 1.96 * 500, abs=2)
    assert high == pytest.approx(500_000 + 1.96 * 500, abs=2)


def test_without_latencies_there_are_no_percentiles() -> None:
    assert percentiles(np.empty(0, np.int64)) == {}
