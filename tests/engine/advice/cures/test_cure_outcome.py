"""Whether a run is clearly worse since a change."""

import math

import numpy as np
import pytest

from accel_engine.advice.cures.cure_outcome import compare_series, compare_speed, window_rates


def chunks(rate: float, seconds: float, began: float = 0.0) -> list[tuple[float, int]]:
    """Chunks of 0.05 s."""
    return [(began + 0.05 * number, round(0.05 * number * rate)) for number in range(int(seconds / 0.05) + 1)]


def test_rates_are_of_windows_of_time_without_pauses() -> None:
    running = chunks(100.0, 3.0)
    assert window_rates(running, examples=32) == pytest.approx([3200.0] * 6, rel=0.05)
    after_pause = [(at + 60.0, step + 300) for at, step in running]
    assert window_rates([*running, *after_pause]) == pytest.approx([100.0] * 12, rel=0.2)
    assert window_rates([]) == []


def test_a_step_that_takes_long_is_a_rate_too() -> None:
    assert window_rates([(0.0, 1), (10.0, 2), (20.0, 3)]) == [0.1, 0.1]


def test_a_clearly_slower_run_is_worse() -> None:
    noise = np.random.default_rng(0).normal(1.0, 0.05, 20)
    found = compare_speed((100 * noise).tolist(), (60 * noise).tolist())
    assert found is not None
    assert found.is_worse
    assert found.text.startswith("59.47 examples/s after the change, 99.12 before: worse")


def test_chance_takes_nothing_back() -> None:
    random = np.random.default_rng(1)
    found = [
        compare_speed(random.lognormal(0.0, 0.3, 20).tolist(), random.lognormal(0.0, 0.3, 20).tolist())
        for _ in range(200)
    ]
    assert np.mean([each.is_worse for each in found if each]) < 0.03


def test_a_slower_run_with_noise_is_watched_on() -> None:
    found = compare_speed([100.0, 20.0] * 5, [90.0, 15.0] * 5)
    assert found is not None
    assert (found.is_worse, found.may_be_worse) == (False, True)
    assert "may be chance" in found.text


def test_too_few_rates_tell_nothing() -> None:
    assert compare_speed([1.0] * 7, [1.0] * 20) is None


def losses(start: float, end: float, noise: float = 0.1) -> np.ndarray:
    return np.linspace(start, end, 200) + np.random.default_rng(2).normal(0.0, noise, 200)


@pytest.mark.parametrize(
    ("after", "is_worse"),
    [
        (losses(0.8, 0.6), False),
        (losses(0.85, 0.85), False),
        (losses(2.3, 2.3), True),
        (np.full(200, math.nan), True),
    ],
)
def test_losses_that_rise_are_worse(after: np.ndarray, is_worse: bool) -> None:
    found = compare_series(losses(1.0, 0.8), after, "loss")
    assert found is not None
    assert found.is_worse is is_worse


@pytest.mark.parametrize(
    ("before", "after", "is_worse"),
    [(-2.0, -1.0, True), (-2.0, -3.0, False), (0.0, 1.0, True), (-2.0, -1.999, False), (0.0, 0.004, False)],
)
def test_losses_at_or_below_zero_are_judged_by_their_difference(before: float, after: float, is_worse: bool) -> None:
    found = compare_series(losses(before, before), losses(after, after), "loss")
    assert found is not None
    assert found.is_worse is is_worse


def test_too_few_losses_tell_nothing() -> None:
    assert compare_series(np.ones(3), np.ones(200), "loss") is None
