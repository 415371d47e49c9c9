"""Compares the results of a race: the rates of all groups, which are dominated, and which are the best."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

from accel_engine.measure.trial_statistics import LEAST_ROUNDS, LESS, compare_apart, compare_rates, spread
from accel_engine.race.configuration import Best, ConfigurationResult, ConfigurationState

_USABLE = (ConfigurationState.FINISHED, ConfigurationState.MEASURING, ConfigurationState.ENDED_EARLY)

AMOUNTS = {"memory": Best.LEAST_MEMORY, "energy": Best.LEAST_ENERGY}
"""What a configuration takes, and the mark of the one that takes the least."""


def with_rates(result: ConfigurationResult, reference_rates: Sequence[float]) -> ConfigurationResult:
    """A result with its median and interval, as if it had been measured beside all rounds of the reference.

    Other programs slow some groups down. A configuration is therefore compared with the reference in the rounds of
    both, and its rate is that ratio of the reference's median over all groups. One that was measured without the
    reference, on a device for one process, is compared by the medians and their intervals.

    Args:
        result: A result; one without rates is returned unchanged.
        reference_rates: The reference's rates in all its rounds; empty if it was not measured.
    """
    if not result.rates:
        return result
    if result.configuration.is_reference or not result.ratios:
        rate, between = statistics.median(result.rates), spread(result.rates)
        compared = None if result.configuration.is_reference else compare_apart(reference_rates, result.rates)
        return replace(result, examples_per_second=rate, between=between, against_reference=compared)
    median = statistics.median(reference_rates)
    found = compare_rates([1.0] * len(result.ratios), result.ratios)
    low, high = spread(result.ratios)
    return replace(
        result, examples_per_second=found.value * median, between=(low * median, high * median), against_reference=found
    )


def dominating(result: ConfigurationResult, others: Iterable[ConfigurationResult]) -> ConfigurationResult | None:
    """The fastest configuration that is clearly faster than one, and takes no more memory or energy; else ``None``.

    A configuration that changes training does not dominate one that does not.

    Args:
        result: The configuration.
        others: All configurations.
    """
    found = [other for other in others if other.configuration != result.configuration and _dominates(other, result)]
    return max(found, key=_rate, default=None)


def _dominates(other: ConfigurationResult, result: ConfigurationResult) -> bool:
    if not other.is_measured or _is_broken(other):
        return False
    if other.configuration.changes_training and not result.configuration.changes_training:
        return False
    return _is_clearly_faster(other, result) and not any(_takes_less(result, other, name) for name in AMOUNTS)


def _is_clearly_faster(other: ConfigurationResult, result: ConfigurationResult) -> bool:
    """Whether the intervals of the two do not overlap."""
    in_turns = bool(other.ratios or result.ratios)
    (low, _), (_, high) = _interval(other, in_turns=in_turns), _interval(result, in_turns=in_turns)
    return low > high


def _interval(result: ConfigurationResult, *, in_turns: bool) -> tuple[float, float]:
    """The interval of the rate, without limits after too few rounds; in turns the reference is the unit of others."""
    if in_turns and result.configuration.is_reference and result.examples_per_second is not None:
        return result.examples_per_second, result.examples_per_second
    if len(result.rates) < LEAST_ROUNDS or result.between is None:
        return -math.inf, math.inf
    return result.between


def _amount(result: ConfigurationResult, name: str) -> tuple[float, str] | None:
    """How much memory or energy it takes, and whose that is, such as ``gpu``; ``None`` if unknown."""
    found, kind = (result.memory, result.memory_of) if name == "memory" else (result.joules, result.energy_of)
    return None if found is None else (found, kind)


def _takes_less(result: ConfigurationResult, other: ConfigurationResult, name: str) -> bool:
    """Whether it takes less memory or energy, of the same kind."""
    mine, its = _amount(result, name), _amount(other, name)
    return mine is not None and its is not None and mine[1] == its[1] and mine[0] < LESS * its[0]


def has_same_energy(result: ConfigurationResult, other: ConfigurationResult) -> bool:
    """Whether the energy of both is known, and of the same kind."""
    mine, its = _amount(result, "energy"), _amount(other, "energy")
    return mine is not None and its is not None and mine[1] == its[1]


def find_best(results: Iterable[ConfigurationResult]) -> dict[Best, ConfigurationResult]:
    """The best configurations, of those that train as the reference does.

    Where no configuration is clearly better than the reference, that is the best one. Too few turns of a race that has
    not ended tell nothing.

    Args:
        results: All configurations.
    """
    usable = [each for each in results if _is_candidate(each) and has_enough_turns(each)]
    reference = next((each for each in usable if each.configuration.is_reference), None)
    if not usable:
        return {}
    faster = [each for each in usable if each.is_faster or reference is None]
    marks = {Best.FASTEST: max(faster, key=_rate, default=reference or usable[0])}
    for name, best in AMOUNTS.items():
        if least := _least(usable, reference, name):
            marks[best] = least
    return marks


def _least(
    usable: Sequence[ConfigurationResult], reference: ConfigurationResult | None, name: str
) -> ConfigurationResult | None:
    """The one that takes the least memory or energy, of the reference's kind; the reference if none takes less."""
    first = _amount(reference or usable[0], name)
    known = [(found, each) for each in usable if (found := _amount(each, name)) and first and found[1] == first[1]]
    least = min(known, key=lambda each: each[0], default=(None, None))[1]
    keeps = least and reference and not _takes_less(least, reference, name)
    return reference if keeps else least


def has_enough_turns(result: ConfigurationResult) -> bool:
    """Whether its turns tell an interval, or no more will follow."""
    return len(result.rates) >= LEAST_ROUNDS or result.state is ConfigurationState.FINISHED


def _is_candidate(result: ConfigurationResult) -> bool:
    usable = result.state in _USABLE and result.is_measured
    return usable and not result.configuration.changes_training and not _is_broken(result)


def _is_broken(result: ConfigurationResult) -> bool:
    return result.losses is not None and result.losses.is_broken


def winners(results: Iterable[ConfigurationResult]) -> list[ConfigurationResult]:
    """The configurations that are clearly faster than the reference and train as it does, the fastest first."""
    return sorted((each for each in results if _is_candidate(each) and each.is_faster), key=_rate, reverse=True)


def _rate(result: ConfigurationResult) -> float:
    return result.examples_per_second or 0.0
