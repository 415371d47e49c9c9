"""Learning rates that are suggested from synthetic curves, and why some suggest none."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_engine.finders.rate_curve import Ramp, has_exploded, ramp_rates, smooth, smoothed_curve
from accel_engine.finders.rate_suggestions import PREFERRED, Rule, longest_fall, rate_by, suggest

STEPS = 120
RATES = ramp_rates(1e-6, 10.0, STEPS)


def typical(rate: float) -> float:
    """Flat up to 1e-4, steepest at 1e-3, lowest at about 0.05, and rising from there on."""
    return 0.3 + 2 / (1 + (rate / 1e-3)) + (rate / 0.5) ** 2


def ramp(loss: Callable[[float], float], *, seed: int = 0, noise: float = 0.0, rates: list[float] = RATES) -> Ramp:
    """A ramp that ends as a finder ends it."""
    generator = np.random.default_rng(seed)
    losses: list[float] = []
    for number in range(len(rates)):
        losses.append(loss(rates[number - 1]) + noise * generator.normal() if number else loss(rates[0]))
        if has_exploded(losses):
            break
    return Ramp.of(seed, rates, losses)


def test_rates_rise_by_the_same_factor() -> None:
    rates = ramp_rates(1e-3, 1.0, 4)
    np.testing.assert_allclose(rates, [1e-3, 1e-2, 1e-1, 1.0])


def test_each_rule_takes_its_place_of_a_typical_curve() -> None:
    found = suggest([ramp(typical, seed=seed, noise=0.03) for seed in range(3)])
    rates = {each.rule: each.rate for each in found.found}
    assert not found.problem
    assert 4e-4 < rates[Rule.STEEPEST] < 2.5e-3
    assert 1e-5 < rates[Rule.VALLEY] < 5e-3
    assert 2e-3 < rates[Rule.MINIMUM_TENTH] < 1e-2
    for each in found.found:
        assert each.low <= each.rate <= each.high
    best = found.best_of({})
    assert best is not None
    assert best.rule is PREFERRED


def test_the_answer_is_what_trained_best_or_the_preferred_if_it_is_as_good() -> None:
    found = suggest([ramp(typical)])

    def answer(steepest: float, valley: float, minimum: float, third: float = 9.0) -> Rule | None:
        losses = {Rule.STEEPEST: steepest, Rule.VALLEY: valley, Rule.MINIMUM_TENTH: minimum, Rule.MINIMUM_THIRD: third}
        best = found.best_of(losses)
        return best and best.rule

    assert answer(0.5, 0.6, 0.504) is Rule.MINIMUM_TENTH
    assert answer(0.5, 0.6, 0.52) is Rule.STEEPEST
    assert answer(0.7, 0.6, math.inf) is Rule.VALLEY
    assert answer(0.7, 0.6, 0.5, 0.4) is Rule.MINIMUM_THIRD
    assert answer(-0.7, -0.6, -0.1) is Rule.STEEPEST


def test_the_loss_of_a_step_is_that_after_the_update_with_the_rate_before() -> None:
    found = Ramp.of(0, [1.0, 2.0, 3.0], [9.0, 8.0, math.nan])
    assert (found.rates, found.losses, found.has_exploded) == ((1.0,), (8.0,), True)


@pytest.mark.parametrize(
    ("loss", "noise", "words"),
    [
        (lambda _: 2.3, 0.0, "flat"),
        (lambda _: 2.3, 0.01, "flat"),
        (lambda rate: 2.3 - 0.3 * (1e-3 < rate < 1), 2.0, "differ too much"),
        (lambda rate: 0.05 * (1 + (rate / 1e-3) ** 2), 0.0, "only rises"),
    ],
)
def test_where_nothing_can_be_suggested_it_says_why(loss: Callable[[float], float], noise: float, words: str) -> None:
    found = suggest([ramp(loss, seed=seed, noise=noise) for seed in range(3)])
    assert words in found.problem
    assert not found.found
    assert found.best_of({}) is None


def test_a_loss_that_explodes_at_once_suggests_nothing() -> None:
    assert "explodes at once" in suggest([Ramp(0, tuple(RATES[:5]), (1.0, 2.0, 9.0, 40.0, 200.0), True)]).problem
    assert "not finite at the lowest" in suggest([Ramp.of(0, RATES, [math.nan])]).problem
    assert "not finite at the lowest" in suggest([]).problem


def test_a_curve_that_still_falls_at_its_end_says_so() -> None:
    found = suggest([ramp(lambda rate: 2 / (1 + rate / 1e-3))])
    assert "still falls at the highest" in found.remark


def test_a_seed_without_a_suggestion_of_its_own_is_counted() -> None:
    noisy = Ramp(1, tuple(RATES[:-1]), tuple(2.3 for _ in RATES[:-1]), has_exploded=False)
    assert "1 of 2 seeds" in suggest([ramp(typical), noisy]).remark


@settings(deadline=None, max_examples=25)
@given(st.floats(1e-3, 1e3), st.floats(0.1, 100.0), st.integers(0, 1000))
def test_the_scale_of_losses_and_rates_does_not_matter(by: float, factor: float, seed: int) -> None:
    plain = suggest([ramp(typical, seed=seed, noise=0.01)])
    moved = [rate * factor for rate in RATES]
    scaled = suggest([ramp(lambda rate: by * typical(rate / factor), seed=seed, noise=by * 0.01, rates=moved)])
    for before, after in zip(plain.found, scaled.found, strict=True):
        assert after.rate == pytest.approx(factor * before.rate, rel=0.35)  # at most a step or two by rounding


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_any_losses_give_rates_of_the_ramp_or_a_reason(losses: list[float]) -> None:
    rates = RATES[: len(losses)]
    found = suggest([Ramp(0, tuple(rates), tuple(losses), has_exploded=False)])
    assert bool(found.found) is not bool(found.problem)
    assert all(RATES[0] / 10 <= each.rate <= RATES[-1] for each in found.found)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=30))
def test_the_longest_fall_is_the_longest_falling_subsequence(losses: list[int]) -> None:
    longest = [1] * len(losses)
    for index in range(len(losses)):
        before = [longest[other] for other in range(index) if losses[other] > losses[index]]
        longest[index] = 1 + max(before, default=0)
    first, last = longest_fall(np.array(losses, float))
    assert longest[last] == max(longest)
    assert last - first + 1 >= max(longest)
    assert losses[first] > losses[last] or first == last


def test_smoothing_is_symmetric_and_keeps_constants() -> None:
    peak = np.zeros(61)
    peak[30] = 1.0
    smoothed = smooth(peak)
    np.testing.assert_allclose(smoothed, smoothed[::-1])
    assert int(np.argmax(smoothed)) == 30
    np.testing.assert_allclose(smooth(np.full(40, 3.0)), 3.0)
    assert smooth(np.array([2.0])).tolist() == [2.0]


def test_the_noise_of_a_curve_is_that_of_its_losses_not_of_its_slope() -> None:
    straight = smoothed_curve([Ramp(0, tuple(RATES), tuple(np.linspace(3, 1, STEPS)), has_exploded=False)])
    assert straight.noise == pytest.approx(0, abs=1e-9)
    losses = 2 + 0.1 * np.random.default_rng(0).normal(size=STEPS)
    noisy = smoothed_curve([Ramp(0, tuple(RATES), tuple(losses), has_exploded=False)])
    assert 0.02 < noisy.noise < 0.1


def test_an_explosion_is_far_above_the_first_losses() -> None:
    assert has_exploded([2.3, math.inf])
    assert not has_exploded([2.3] * 8 + [5.0] * 3)
    assert has_exploded([2.3] * 8 + [7.5] * 3)
    assert not has_exploded([2.3] * 8 + [7.5, 7.5, 2.0])  # a single lower loss
    assert not has_exploded([2.3] * 3 + [100.0])


def test_shares_of_the_rate_with_the_lowest_loss() -> None:
    curve = smoothed_curve([ramp(typical)])
    lowest = curve.rates[int(np.argmin(curve.losses))]
    assert rate_by(Rule.MINIMUM_TENTH, curve) == pytest.approx(lowest / 10)
    assert rate_by(Rule.MINIMUM_THIRD, curve) == pytest.approx(lowest / 3)
