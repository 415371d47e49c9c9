import math
from dataclasses import replace

import pytest

from accel_engine.plan import Plan
from accel_engine.race.comparison import dominating, find_best, winners, with_rates
from accel_engine.race.configuration import (
    Best,
    Configuration,
    ConfigurationKind,
    ConfigurationResult,
    ConfigurationState,
    LossCheck,
    check_losses,
)

PLAN = Plan()
REFERENCE = Configuration("this plan", PLAN)
XLA = Configuration("XLA", PLAN.replace(xla="on"), {"xla": "on"}, (ConfigurationKind.XLA,))
REMAT = Configuration("rematerialization", PLAN.replace(remat="on"), {"remat": "on"}, (ConfigurationKind.REMAT,))
LARGER = Configuration(
    "batch size 128", PLAN.replace(batch_size=128), {"batch_size": 128}, (ConfigurationKind.BATCH_SIZE,)
)


def result(configuration, rate, *, rounds=8, memory=1e8, **more):
    """A configuration whose rate varies by a few percent around a value; the reference's is 100."""
    noise = [1 + 0.02 * ((3 * number) % 5 - 2) for number in range(rounds)]
    reference = [100.0 * each for each in noise]
    rates = tuple(rate * each * (1.01 if index % 2 else 1.0) for index, each in enumerate(noise))
    ratios = (
        () if configuration.is_reference else tuple(one / other for one, other in zip(rates, reference, strict=True))
    )
    found = ConfigurationResult(
        configuration, ConfigurationState.MEASURING, memory=memory, memory_of="host", rates=rates, ratios=ratios
    )
    return replace(with_rates(found, reference), **more)


def test_rates_of_another_group_are_those_beside_the_reference() -> None:
    """A group in which all configurations are half as fast tells the same as another one."""
    slow = ConfigurationResult(XLA, ConfigurationState.MEASURING, rates=(100.0,) * 8, ratios=(2.0,) * 8)
    found = with_rates(slow, [100.0] * 20)
    assert (found.examples_per_second, found.between) == (200.0, (200.0, 200.0))
    assert found.is_faster


def test_a_slower_configuration_that_takes_as_much_is_dominated() -> None:
    reference, faster, slower = result(REFERENCE, 100), result(XLA, 200), result(REMAT, 50)
    assert dominating(slower, (reference, faster, slower)).configuration == XLA  # the fastest of those that dominate
    assert dominating(faster, (reference, faster, slower)) is None
    assert dominating(reference, (reference, slower)) is None


@pytest.mark.parametrize(
    ("more", "is_dominated"),
    [
        ({"memory": 1e8}, True),
        ({"memory": 0.97e8}, True),  # about the same
        ({"memory": 0.8e8}, False),
        ({"memory": 0.8e8, "memory_of": "gpu"}, True),  # memory of another kind
        ({"memory": None}, True),
        ({"joules": 0.5}, False),
        ({"joules": 1.0}, True),
        ({"joules": 0.5, "energy_of": "cpu"}, True),  # energy of another kind
    ],
)
def test_a_configuration_that_takes_less_memory_or_energy_is_not_dominated(more, is_dominated) -> None:
    reference = result(REFERENCE, 100, joules=1.0, energy_of="gpu")
    assert (dominating(result(REMAT, 50, **{"energy_of": "gpu", **more}), (reference,)) is not None) is is_dominated


def test_few_rounds_and_close_rates_dominate_nothing() -> None:
    reference = result(REFERENCE, 100)
    assert dominating(result(REMAT, 50, rounds=4), (reference,)) is None
    assert dominating(result(REMAT, 99.6), (reference,)) is None


def test_other_batches_do_not_dominate_a_configuration_that_trains_as_the_plan_does() -> None:
    reference, larger = result(REFERENCE, 100), result(LARGER, 300)
    slower = result(XLA, 150)
    assert dominating(slower, (reference, larger)) is None
    assert dominating(result(LARGER, 50), (reference,)) is not None


def test_marks_go_to_the_best_that_train_as_the_plan_does() -> None:
    reference = result(REFERENCE, 100, joules=1.0)
    faster = result(XLA, 200, memory=2e8, joules=0.4)
    smaller = result(REMAT, 60, memory=0.5e8, joules=1.2)
    larger = result(LARGER, 400, memory=0.1e8, joules=0.1)
    found = {mark: each.configuration for mark, each in find_best((reference, faster, smaller, larger)).items()}
    assert found == {Best.FASTEST: XLA, Best.LEAST_MEMORY: REMAT, Best.LEAST_ENERGY: XLA}


def test_the_reference_is_the_best_where_none_is_clearly_better() -> None:
    reference, other = result(REFERENCE, 100), result(REMAT, 100.5, memory=0.98e8)
    found = find_best((reference, other))
    assert found == {Best.FASTEST: reference, Best.LEAST_MEMORY: reference}


def test_a_configuration_that_failed_or_whose_losses_are_broken_gets_no_mark() -> None:
    reference = result(REFERENCE, 100)
    failed = result(XLA, 200, state=ConfigurationState.FAILED)
    broken = result(REMAT, 200, losses=check_losses((1.0, 0.5), (1.0, math.nan)))
    assert find_best((reference, failed, broken))[Best.FASTEST] == reference
    assert winners((reference, failed, broken)) == []


def test_without_a_reference_rates_are_compared_as_they_are() -> None:
    configurations = [
        ConfigurationResult(configuration, ConfigurationState.MEASURING, rates=(rate,) * 8)
        for configuration, rate in ((XLA, 200.0), (REMAT, 100.0))
    ]
    faster, slower = (with_rates(each, ()) for each in configurations)
    assert dominating(slower, (faster, slower)) == faster
    assert find_best((faster, slower))[Best.FASTEST] == faster


def separate(configuration, rate, *, rounds=8):
    """A configuration that was measured alone, as on a device for one process."""
    noise = [1 + 0.02 * ((3 * number) % 5 - 2) for number in range(rounds)]
    alone = ConfigurationResult(
        configuration,
        ConfigurationState.FINISHED,
        memory=1e8,
        memory_of="gpu",
        rates=tuple(rate * each for each in noise),
    )
    return with_rates(alone, [100.0 * each for each in noise])


def test_configurations_that_were_measured_one_after_the_other_are_compared_by_their_intervals() -> None:
    reference, faster, close = separate(REFERENCE, 100), separate(XLA, 900), separate(REMAT, 103)
    assert faster.against_reference.value == pytest.approx(9.0)
    assert winners((reference, faster, close)) == [faster]  # the intervals of the other one overlap
    assert find_best((reference, faster, close))[Best.FASTEST] == faster
    assert dominating(reference, (reference, faster)) == faster
    assert dominating(close, (reference, close)) is None
    assert not separate(XLA, 900, rounds=5).is_faster


def test_energy_of_another_kind_gets_no_mark() -> None:
    reference = result(REFERENCE, 100, joules=1.0, energy_of="gpu")
    on_cpu = result(REMAT, 50, joules=0.01, energy_of="cpu")
    assert find_best((reference, on_cpu))[Best.LEAST_ENERGY] == reference


@pytest.mark.parametrize(
    ("losses", "text"),
    [
        ((2.0, 1.0), "equal to the bit"),
        ((2.0, 1.0, 7.0), "equal to the bit"),  # only common steps count
        ((2.0, 1.000001), "within 1e-5"),
        ((2.0, 1.24), "differs by 16%"),  # of the mean, 1.5
        ((20.0, 1.0), "differs by 1200%"),
        ((2.0, 1.000075), "differs by 0.005%"),
        ((2.0, math.nan), "finite in only one of the two"),
        ((), "no losses to compare"),
    ],
)
def test_losses(losses, text) -> None:
    assert check_losses((2.0, 1.0), losses).text == text


def test_the_tiny_loss_of_a_last_batch_counts_as_any_other() -> None:
    assert check_losses((10.0, 9.83, 0.17), (10.0, 9.83, 8.47)).text == "differs by 120%"
    assert check_losses((0.0, 0.0), (0.0, 1.0)).difference == 1e12


def test_losses_that_are_both_not_a_number_are_equal() -> None:
    assert check_losses((math.nan,), (math.nan,)) == LossCheck(0.0, 1, is_equal=True)


def test_too_few_turns_mark_nothing_unless_the_race_of_it_is_over() -> None:
    few = result(REFERENCE, 100, rounds=5), result(REMAT, 90, rounds=5, memory=1e7)
    assert find_best(few) == {}
    ended = [replace(each, state=ConfigurationState.FINISHED) for each in few]
    assert find_best(ended) == {Best.FASTEST: ended[0], Best.LEAST_MEMORY: ended[1]}
