"""Histograms of what a script logs."""

from typing import Any

import numpy as np
import pytest

from accel_engine.run.media import histogram_of


def test_values_are_counted_in_bins_of_one_width() -> None:
    values = np.random.default_rng(0).normal(size=(10, 100))
    histogram = histogram_of(values, bins=10)
    counts, edges = np.histogram(values, 10)
    np.testing.assert_array_equal(histogram.counts, counts)
    np.testing.assert_array_equal(histogram.edges, edges)
    assert (histogram.not_finite, histogram.note) == (0, "")


def test_equal_values_are_in_bins_around_them() -> None:
    histogram = histogram_of(np.full(3, 7.0), 10)
    counts, edges = np.histogram(np.full(3, 7.0), 10)
    np.testing.assert_array_equal(histogram.edges, edges)
    np.testing.assert_array_equal(histogram.counts, counts)


def test_values_that_are_not_finite_are_counted_apart() -> None:
    histogram = histogram_of([1.0, np.nan, 2.0, np.inf, -np.inf])
    assert histogram.counts.sum() == 2
    assert histogram.not_finite == 3

    histogram = histogram_of([np.nan])
    assert (len(histogram.edges), len(histogram.counts), histogram.not_finite) == (0, 0, 1)


@pytest.mark.parametrize(
    "values",
    [[1e308, -1e308, 0.0], [1.0, 1.0 + 2**-52], [0.0, 5e-324], [1e308], [3.0, 3.0], [True, False], [2**60, 0]],
)
def test_any_range_of_numbers_has_a_histogram(values: list[float]) -> None:
    histogram = histogram_of(values)
    assert histogram.counts.sum() == len(values)
    assert histogram.edges[0] <= min(values) <= max(values) <= histogram.edges[-1]


@pytest.mark.parametrize(
    ("values", "bins", "message"),
    [
        ([], 64, "needs values"),
        ([1.0], 0, "at least 1 bin"),
        (["a"], 64, "a histogram is an array of numbers"),
        (None, 64, "a histogram is an array of numbers"),
    ],
)
def test_what_has_no_histogram_is_refused(values: Any, bins: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        histogram_of(values, bins)
