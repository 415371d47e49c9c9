"""Which of the measured batch sizes matter, and what they mean for steps and learning rate."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_engine.finders.batch_effects import LINEAR, SQUARE_ROOT, batch_effects
from accel_engine.finders.throughput import (
    KNEE_SHARE,
    MeasuredSize,
    choose_sizes,
    got_slower,
    predicted_memory,
    sizes_between,
)
from accel_engine.plan import Plan


def size(batch: int, throughput: float, memory: float | None = None, **more: object) -> MeasuredSize:
    return MeasuredSize(batch, batch, throughput, 0.98 * throughput, 1.02 * throughput, memory, **more)  # type: ignore[arg-type]


def failed(batch: int) -> MeasuredSize:
    return MeasuredSize(batch, batch, problem="out of memory", out_of_memory=True)


SATURATING = [size(batch, 1000 * batch / (batch + 20), 10.0 * batch) for batch in (8, 16, 32, 64, 128, 256, 512)]


def test_the_knee_is_the_smallest_that_is_nearly_as_fast_as_the_fastest() -> None:
    chosen = choose_sizes([*SATURATING[::-1], failed(1024)], None)
    assert chosen is not None
    assert (chosen.knee.batch_size, chosen.fastest.batch_size, chosen.largest.batch_size) == (256, 512, 512)


def test_the_largest_leaves_some_memory_free() -> None:
    chosen = choose_sizes(SATURATING, 5200.0)
    assert chosen is not None
    assert chosen.largest.batch_size == chosen.fastest.batch_size == 256


def test_without_a_size_that_trains_there_is_none() -> None:
    assert choose_sizes([failed(8)], 1.0) is None
    tight = choose_sizes([size(8, 1.0, 100.0)], 50.0)
    assert tight is not None  # it trains, whatever was thought to be free
    assert tight.knee.batch_size == 8


@given(st.lists(st.tuples(st.integers(1, 4096), st.floats(1e-3, 1e6)), min_size=1, unique_by=lambda each: each[0]))
def test_the_sizes_are_in_order_and_the_knee_is_fast(measured: list[tuple[int, float]]) -> None:
    chosen = choose_sizes([size(*each) for each in measured], None)
    assert chosen is not None
    assert chosen.knee.batch_size <= chosen.fastest.batch_size <= chosen.largest.batch_size
    assert chosen.knee.throughput >= KNEE_SHARE * max(throughput for _, throughput in measured)


def test_sizes_stop_growing_after_two_that_are_clearly_slower() -> None:
    assert not got_slower(SATURATING)
    assert not got_slower([size(8, 100), size(16, 200), size(32, 100)])
    assert got_slower([size(8, 100), size(16, 200), size(32, 150), size(64, 150)])
    assert not got_slower([size(8, 100), size(16, 200), size(32, 150), size(64, 195)])


def test_sizes_between_are_below_the_knee_and_above_the_largest_that_fits() -> None:
    assert sizes_between(SATURATING, 256, 1) == [192]
    assert sizes_between([*SATURATING, failed(1024)], 256, 1) == [192, 768]
    assert sizes_between([size(8, 1.0)], 8, 4) == [4]
    assert sizes_between([size(4, 1.0)], 4, 4) == []


def test_memory_is_predicted_along_a_line() -> None:
    assert predicted_memory(SATURATING, 1024) == pytest.approx(10240)
    assert predicted_memory([size(8, 1.0, 100.0)], 16) is None
    assert predicted_memory([size(8, 1.0, 100.0), size(16, 1.0, 90.0)], 32) == 90.0


@pytest.mark.parametrize(("optimizer", "rule", "rate"), [("SGD", LINEAR, 0.4), ("Adam", SQUARE_ROOT, 0.2)])
def test_the_learning_rate_goes_with_the_batch(optimizer: str, rule: str, rate: float) -> None:
    plan = Plan(epochs=2, batch_size=32)
    found = batch_effects(plan, 128, 1, optimizer=optimizer, rate=0.1, examples=1024)
    assert (found.rule, found.learning_rate) == (rule, pytest.approx(rate))
    assert (found.steps_per_epoch, found.total_steps, found.steps_before) == (8, 16, 64)
    assert not found.quality


def test_what_is_unknown_of_a_batch_is_left_out() -> None:
    found = batch_effects(Plan(), 64, 1, optimizer="", rate=None, examples=None, noise_scale=math.inf)
    assert (found.learning_rate, found.total_steps) == (None, 0)
    assert "very large" in found.quality
