"""Statistics of consecutive steps."""

import math

import numpy as np
import pytest

from accel_engine.run.store.buckets import BUCKET, Statistics, bucket_statistics, downsample, empty, merge, statistics

ROWS = np.array([[1.0, 2.0, 3.0, 4.0, 5.0], [math.nan, 6.0, math.inf, -math.inf, math.nan]], np.float32)
STARTS = np.array([0, 2])


def check(found: Statistics, high: list[list[float]]) -> None:
    np.testing.assert_array_equal(found.low, [[1, 3], [6, math.nan]])
    np.testing.assert_array_equal(found.high, high)
    np.testing.assert_array_equal(found.total, [[3, 12], [6, 0]])
    np.testing.assert_array_equal(found.finite, [[2, 3], [1, 0]])


def test_values_are_reduced_along_the_last_axis() -> None:
    check(statistics(ROWS, STARTS), [[2, 5], [6, math.nan]])
    (low, *others) = statistics(ROWS[:1], STARTS)  # where all are finite
    assert [low.tolist(), *(each.tolist() for each in others)] == [[[1, 3]], [[2, 5]], [[3, 12]], [[2, 3]]]


def test_buckets_are_merged_along_the_last_axis() -> None:
    finite = np.isfinite(ROWS)
    clean = np.where(finite, ROWS, np.nan)
    single = Statistics(clean, clean + 1, np.where(finite, ROWS, 0).astype(np.float64), finite.astype("<u4"))
    merged = single.merge_from(STARTS)
    check(merged, [[3, 6], [7, math.nan]])
    assert merged.finite.dtype == np.uint32


def test_the_last_bucket_may_have_fewer_values() -> None:
    buckets = downsample(ROWS[0], 2)
    assert buckets.dtype == BUCKET
    assert buckets.tolist() == [(1, 2, 3, 2), (3, 4, 7, 2), (5, 5, 5, 1)]
    assert merge(buckets, 2).tolist() == [(1, 4, 10, 4), (5, 5, 5, 1)]
    assert merge(buckets, 1) is buckets


def test_empty_buckets_have_no_values() -> None:
    low, high, total, finite = bucket_statistics(empty(2))
    assert np.isnan([low, high]).all()
    assert [total.tolist(), finite.tolist()] == [[0, 0], [0, 0]]


@pytest.mark.parametrize("values", [[1e38] * 100, [0.1] * 1000])
def test_sums_have_twice_the_precision_of_values(values: list[float]) -> None:
    (bucket,) = downsample(np.array(values, np.float32), len(values))
    assert bucket["total"] == pytest.approx(math.fsum(np.array(values, np.float32).astype(float)), rel=1e-12)
