"""Curves against plain lists of numbers."""

import math
from itertools import pairwise

import numpy as np
import pytest

from accel_engine.run.store.buckets import downsample
from accel_tui.run_state.curve import CAPACITY, RecordedCurve, extended_curve


def values_of(*numbers: float) -> np.ndarray:
    return np.array(numbers, dtype=np.float32)


def in_chunks(values: np.ndarray, rng: np.random.Generator, most: int) -> RecordedCurve:
    curve = RecordedCurve()
    start = 0
    while start < len(values):
        stop = start + int(rng.integers(0, most + 1))
        curve = curve.extend(values[start:stop])
        start = stop
    return curve


def noisy(rng: np.random.Generator, count: int, broken: float) -> np.ndarray:
    values = rng.standard_normal(count).astype(np.float32)
    bad = rng.random(count) < broken
    values[bad] = rng.choice(values_of(np.nan, np.inf, -np.inf), int(bad.sum()))
    return values


def assert_same(curve: RecordedCurve, values: np.ndarray) -> None:
    width = curve.width
    buckets = [values[start : start + width] for start in range(0, len(values), width)]
    finite = [bucket[np.isfinite(bucket)].astype(np.float64) for bucket in buckets]
    assert curve.end_step == len(values)
    assert len(buckets) <= CAPACITY
    assert width == 1 or len(values) > CAPACITY * width // 2
    np.testing.assert_array_equal(curve.low, [bucket.min() if bucket.size else math.nan for bucket in finite])
    np.testing.assert_array_equal(curve.high, [bucket.max() if bucket.size else math.nan for bucket in finite])
    np.testing.assert_array_equal(curve.finite, [bucket.size for bucket in finite])
    np.testing.assert_allclose(curve.total, [bucket.sum() for bucket in finite], rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(
        curve.means, [bucket.mean() if bucket.size else math.nan for bucket in finite], atol=1e-9
    )
    assert curve.gaps == np.count_nonzero(~np.isfinite(values))
    known = values[np.isfinite(values)]
    assert curve.last_value == (pytest.approx(float(known[-1])) if known.size else pytest.approx(math.nan, nan_ok=True))


@pytest.mark.parametrize("broken", [0.0, 0.02, 0.7, 1.0])
@pytest.mark.parametrize(("count", "most"), [(1, 1), (500, 7), (CAPACITY, 999), (CAPACITY + 1, 4000), (70_001, 9000)])
def test_a_curve_knows_what_a_list_would(count: int, most: int, broken: float) -> None:
    rng = np.random.default_rng(count)
    values = noisy(rng, count, broken)
    assert_same(in_chunks(values, rng, most), values)


def test_ten_million_values_at_once_keep_their_spike_and_their_sum() -> None:
    values = np.ones(10_000_000, np.float32)
    values[1_234_567] = 7
    curve = RecordedCurve().extend(values)
    assert curve.width == 4096
    assert curve.high[1_234_567 // 4096] == 7
    assert curve.total.sum() == 10_000_006


def test_extending_leaves_the_old_curve_alone() -> None:
    old = RecordedCurve().extend(values_of(*range(3000)))
    before = old.low.copy(), old.total.copy()
    old.extend(values_of(*range(20_000)))
    old.extend(values_of(-1))
    np.testing.assert_array_equal(old.low, before[0])
    np.testing.assert_array_equal(old.total, before[1])
    assert (old.end_step, old.width) == (3000, 1)


def test_nothing_to_add_is_nothing_new() -> None:
    curve = RecordedCurve().extend(values_of(1, 2))
    assert curve.extend(values_of()) is curve


def test_curves_that_go_on_together_are_what_each_would_be_alone() -> None:
    rng = np.random.default_rng(5)
    values = np.array([noisy(rng, 9000, broken) for broken in (0.0, 0.3, 1.0)])
    curves = [RecordedCurve()] * 3
    for start in range(0, 9000, 900):
        curves = extended_curve(curves, values[:, start : start + 900])
    for curve, its in zip(curves, values, strict=True):
        assert_same(curve, its)


def test_curves_that_go_on_together_become_as_wide_as_the_widest() -> None:
    wide, narrow = (
        RecordedCurve().extend(values_of(*range(2 * CAPACITY))).truncate(100),
        RecordedCurve().extend(values_of(*range(100))),
    )
    curves = extended_curve([wide, narrow], np.array([[7.0, 8.0], [9.0, math.nan]]))
    assert [(curve.width, curve.end_step, len(curve.low)) for curve in curves] == [(2, 102, 51)] * 2
    assert [curve.at(101) for curve in curves] == [(7, 8, 7.5), (9, 9, 9)]


@pytest.mark.parametrize("step", [0, 1, 4999, 8192, 10_000])
def test_truncating_single_steps_is_as_if_they_had_never_been(step: int) -> None:
    values = noisy(np.random.default_rng(3), CAPACITY, 0.1)
    assert_same(RecordedCurve().extend(values).truncate(step), values[:step])


def test_a_cut_bucket_keeps_its_bounds_and_its_mean() -> None:
    values = np.arange(4 * CAPACITY, dtype=np.float32)
    whole = RecordedCurve().extend(values)
    cut = whole.truncate(4 * 100 + 1)
    assert (cut.end_step, cut.width, len(cut.low)) == (401, 4, 101)
    assert (cut.low[-1], cut.high[-1], cut.means[-1]) == (400, 403, 401.5)
    assert (cut.last_value, cut.gaps) == (401.5, 0)
    again = cut.extend(values[401:])
    np.testing.assert_array_equal(again.low, whole.low)
    np.testing.assert_array_equal(again.finite, whole.finite)
    assert again.last_value == whole.last_value


def test_columns_hold_the_extremes_of_their_steps() -> None:
    rng = np.random.default_rng(5)
    values = noisy(rng, 30_000, 0.01)
    values[17_777] = 99
    low, high, mean = in_chunks(values, rng, 1000).columns(0, 30_000, 160)
    assert np.flatnonzero(high == 99).tolist() == [17_777 * 160 // 30_000]
    assert np.nanmin(low) == np.min(values[np.isfinite(values)])
    assert np.all((low <= mean) & (mean <= high))


def test_every_column_agrees_with_its_steps_when_columns_are_whole_buckets() -> None:
    values = noisy(np.random.default_rng(6), 6000, 0.2)
    low, high, mean = RecordedCurve().extend(values).columns(0, 6000, 60)
    parts = values.astype(np.float64).reshape(60, 100)
    parts[~np.isfinite(parts)] = np.nan
    np.testing.assert_array_equal(low, np.nanmin(parts, axis=1))
    np.testing.assert_array_equal(high, np.nanmax(parts, axis=1))
    np.testing.assert_allclose(mean, np.nanmean(parts, axis=1))


def test_few_steps_are_joined_by_lines() -> None:
    low, high, mean = RecordedCurve().extend(values_of(0, 4, 2)).columns(0, 3, 12)
    np.testing.assert_allclose(mean, [0, 1, 2, 3, 4, 3.5, 3, 2.5, 2, *[math.nan] * 3])
    np.testing.assert_array_equal(low, mean)
    np.testing.assert_array_equal(high, mean)


def test_no_line_crosses_a_gap() -> None:
    _, _, mean = RecordedCurve().extend(values_of(1, 1, math.nan, 5)).columns(0, 4, 8)
    np.testing.assert_array_equal(np.isnan(mean), [False, False, False, True, True, True, False, True])


def test_a_closer_look_goes_on_to_its_edges() -> None:
    _, _, mean = RecordedCurve().extend(values_of(*range(100))).columns(10, 14, 40)
    assert not np.isnan(mean).any()
    assert all(after > before for before, after in pairwise(mean))


@pytest.mark.parametrize(("first", "last"), [(500, 600), (5, 5), (-30, -10)])
def test_nothing_is_seen_where_nothing_is(first: float, last: float) -> None:
    for column in RecordedCurve().extend(values_of(*range(100))).columns(first, last, 8):
        assert np.isnan(column).all()
    for column in RecordedCurve().columns(0, 10, 8):
        assert np.isnan(column).all()


@pytest.mark.parametrize("width", [1, 16, 1024])
def test_what_was_summarised_goes_on_as_if_it_had_been_followed(width: int) -> None:
    rng = np.random.default_rng(width)
    values = noisy(rng, width * CAPACITY // 2 + 4001, 0.02)
    cut = len(values) - 1003
    curve = RecordedCurve.of(downsample(values[:cut], width), 0, cut, width)
    curve = curve.extend(values[cut : cut + 500]).extend(values[cut + 500 :])
    assert_same(curve, values)


def extremes(curve: RecordedCurve, first: float, last: float) -> tuple[float, float]:
    span = slice(*curve.span(first, last))
    return np.fmin.reduce(curve.low[span], initial=math.nan), np.fmax.reduce(curve.high[span], initial=math.nan)


def test_a_part_of_a_run_is_where_it_belongs() -> None:
    values = np.arange(10_000, dtype=np.float32)
    whole = RecordedCurve().extend(values)
    part = RecordedCurve.of(downsample(values[4096:6001], 4), 4096, 6001, 4)
    assert (part.gaps, part.end_step) == (0, 6001)
    for got, wanted in zip(part.columns(4400, 5200, 40), whole.columns(4400, 5200, 40), strict=True):
        np.testing.assert_allclose(got, wanted, atol=4)
    assert extremes(part, 5000, 5100) == (5000, 5099)
    assert extremes(part.extend(values[6001:8000]), 4000, 9000) == (4096, 7999)
    assert extremes(part.truncate(5000), 0, 9000) == (4096, 4999)
    assert part.truncate(100).end_step == 4096


def test_extremes_are_those_of_the_steps_asked_for() -> None:
    curve = RecordedCurve().extend(values_of(5, 1, math.nan, 3, 9))
    assert extremes(curve, 1, 4) == (1, 3)
    assert extremes(curve, -10, 100) == (1, 9)
    for first, last in ((2, 3), (7, 9), (-3, 0), (3, 3)):
        assert extremes(curve, first, last) == pytest.approx((math.nan, math.nan), nan_ok=True)
    assert extremes(RecordedCurve(), 0, 10) == pytest.approx((math.nan, math.nan), nan_ok=True)


def test_the_values_of_a_series_that_is_logged_every_few_steps_are_joined() -> None:
    values = np.full(101, np.nan, np.float32)
    values[[0, 50, 100]] = 1, 2, 4
    curve = RecordedCurve().extend(values)
    assert curve.is_sparse
    assert curve.columns(0, 101, 101)[2] == pytest.approx(np.interp(np.arange(101), [0, 50, 100], [1, 2, 4]))
    # Also between values of which one is not among the steps that are asked for.
    assert curve.columns(60, 70, 10)[2] == pytest.approx(2 + 0.04 * np.arange(10, 20), abs=0.03)


def test_a_curve_with_some_gaps_or_a_long_end_without_values_is_not_sparse() -> None:
    assert not RecordedCurve().is_sparse
    assert not RecordedCurve().extend(values_of(1, math.nan, 2, 3, math.nan, 4)).is_sparse
    assert not RecordedCurve().extend(np.array([1.0, 2.0, *[math.nan] * 100])).is_sparse
