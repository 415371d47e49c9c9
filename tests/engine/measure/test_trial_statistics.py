"""The order of turns, and what rounds tell about a difference."""

import math

import numpy as np
import pytest

from accel_engine.measure.trial_statistics import PlanVerdict, compare_losses, compare_rates, in_turn, spread


def test_ways_take_turns_there_and_back() -> None:
    assert [in_turn("AB", number) for number in range(4)] == ["AB", "BA", "AB", "BA"]
    assert in_turn("ABC", 1) == "CBA"


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (1.3, PlanVerdict.BETTER),
        (0.7, PlanVerdict.WORSE),
        (1.0, PlanVerdict.NO_DIFFERENCE),
        (1.005, PlanVerdict.NO_DIFFERENCE),
    ],
)
def test_rates_are_compared_round_by_round(ratio: float, verdict: PlanVerdict) -> None:
    load = np.random.default_rng(3).uniform(0.3, 1.0, 20)  # slows both turns of a round alike
    noise = np.random.default_rng(4).normal(1.0, 0.01, 20)
    found = compare_rates((100 * load).tolist(), (100 * ratio * load * noise).tolist())
    assert (found.verdict, found.rounds) == (verdict, 20)
    assert found.value == pytest.approx(ratio, rel=0.01)
    assert found.low < found.value < found.high


def test_equal_ways_are_seldom_told_apart() -> None:
    random = np.random.default_rng(0)
    told = [
        compare_rates(*(random.lognormal(0.0, 0.3, (2, 15)).tolist())).verdict is not PlanVerdict.NO_DIFFERENCE
        for _ in range(400)
    ]
    assert np.mean(told) < 0.07


@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_too_few_rounds_tell_nothing(rounds: int) -> None:
    found = compare_rates([1.0] * rounds, [9.0] * rounds)
    assert found.verdict is PlanVerdict.NO_DIFFERENCE
    assert (found.low, found.high) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        ([0.5, 0.6, 0.55], PlanVerdict.BETTER),
        ([2.5, 2.6, 2.4], PlanVerdict.WORSE),
        ([1.0, 1.2, 0.9], PlanVerdict.NO_DIFFERENCE),
        ([math.nan, 0.5, 0.5], PlanVerdict.WORSE),
        ([math.inf] * 3, PlanVerdict.WORSE),
    ],
)
def test_losses_are_compared_order_by_order(after: list[float], verdict: PlanVerdict) -> None:
    assert compare_losses([1.0, 1.1, 1.05], after).verdict is verdict


def test_a_cure_of_losses_that_are_not_finite_is_better() -> None:
    assert compare_losses([math.nan] * 3, [1.0] * 3).verdict is PlanVerdict.BETTER
    assert compare_losses([math.nan] * 3, [math.nan] * 3).verdict is PlanVerdict.NO_DIFFERENCE


def test_one_order_does_not_tell_a_difference_from_chance() -> None:
    assert compare_losses([1.0], [0.1]).verdict is PlanVerdict.NO_DIFFERENCE


def test_a_higher_accuracy_is_better() -> None:
    before, after = [0.5, 0.52, 0.51], [0.9, 0.93, 0.91]
    assert compare_losses(before, after, lower_is_better=False).verdict is PlanVerdict.BETTER
    assert compare_losses(after, before, lower_is_better=False).verdict is PlanVerdict.WORSE


def test_the_interval_of_the_difference_is_students() -> None:
    found = compare_losses([0.0] * 4, [1.0, 2.0, 3.0, 4.0])
    margin = 3.182 * np.std([1, 2, 3, 4], ddof=1) / 2  # three degrees of freedom
    assert (found.value, found.low, found.high) == pytest.approx((2.5, 2.5 - margin, 2.5 + margin))


def test_the_spread_of_few_values_is_all_of_them() -> None:
    assert spread([3.0, 1.0, 2.0]) == (1.0, 3.0)
    low, high = spread(list(range(100)))
    assert 30 < low < 49 < high < 70
