"""Optuna's samplers, pruners and distributions of a search, and which pruned trials it continues."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, GridSampler, RandomSampler, TPESampler

from accel_engine.search.definition import AUTO, Parameter, StudyDefinition
from accel_engine.search.ranges import LIST, count_points, parameter_points
from accel_engine.search.trial_plan import most_reports

MIN_REPORTS = 4
"""With fewer reports of a trial than this, Hyperband has one bracket only."""

MIN_TRIALS = 20
"""With fewer trials than this, Hyperband's brackets have too few to compare."""

STARTUP_TRIALS = 4
"""Trials that have a result before the median, or the automatic choice of a pruner, ends another one early."""


def sampler_name(definition: StudyDefinition) -> str:
    """The sampler of a search; ``auto`` is a grid if all of it fits into the trials, else TPE."""
    if definition.sampler != AUTO:
        return definition.sampler
    points = count_points(definition.parameters)
    return "grid" if points is not None and points <= definition.trials else "tpe"


def pruner_name(definition: StudyDefinition) -> str:
    """The pruner of a search: none with several objectives, of which Optuna prunes none.

    ``auto`` is Hyperband for TPE, ASHA where Hyperband's brackets would have too few trials or reports, and the median
    for the other samplers. It prunes no trial before :data:`STARTUP_TRIALS` have a result.
    """
    if len(definition.objectives) > 1:
        return "off"
    if definition.pruner != AUTO:
        return definition.pruner
    if sampler_name(definition) != "tpe":
        return "median"
    reports = most_reports(definition)
    return "hyperband" if definition.trials >= MIN_TRIALS and (reports or 0) >= MIN_REPORTS else "asha"


def proposes_ahead(definition: StudyDefinition) -> bool:
    """Whether trials can be proposed before others have ended: no result decides about their values, or the end."""
    is_open_ended = definition.within is None and not definition.patience
    return is_open_ended and sampler_name(definition) != "tpe" and pruner_name(definition) in ("off", "median")


def sampler_of(definition: StudyDefinition, index: int) -> BaseSampler:
    """The sampler for one proposal.

    Each proposal has its own random state, which follows from the search's seed and the proposal's index: so it is
    the same in a process that has continued the search.

    Args:
        definition: The search.
        index: How many proposals there were before.
    """
    name = sampler_name(definition)
    if name == "grid":  # the seed orders its points
        points = {
            each.name: [as_categorical(value) for value in parameter_points(each)] for each in definition.parameters
        }
        return GridSampler(points, seed=definition.seed)
    seed = int(np.random.SeedSequence([definition.seed, index]).generate_state(1)[0])
    return RandomSampler(seed=seed) if name == "random" else TPESampler(seed=seed)


def pruner_of(definition: StudyDefinition) -> BasePruner:
    """The pruner of a search; its resource is the number of a trial's reports."""
    match pruner_name(definition):
        case "hyperband":
            return HyperbandPruner(1, most_reports(definition) or AUTO, FACTOR)
        case "asha":
            return SuccessiveHalvingPruner(min_resource=1, reduction_factor=FACTOR)
        case "median":
            return MedianPruner(n_startup_trials=STARTUP_TRIALS, n_warmup_steps=1)
        case _:
            return NopPruner()


FACTOR = 3
"""One of this number of trials is promoted from a rung to the next."""


def promotable(pruned: Collection[int], values: Mapping[int, Sequence[float]], *, maximize: bool) -> int | None:
    """The pruned trial to continue; ``None`` if no one was among the best where it was pruned.

    Args:
        pruned: Numbers of the pruned trials that may be continued.
        values: The reported values of all trials by number, in order.
        maximize: Whether larger values are better.

    Returns:
        Of those with the most reports, the best one.
    """
    found = [(len(values[number]), _rank(number, values, maximize), number) for number in pruned if values.get(number)]
    best = [(-reports, rank, number) for reports, (rank, count), number in found if rank < count // FACTOR]
    return min(best)[2] if best else None


def _rank(number: int, values: Mapping[int, Sequence[float]], maximize: bool) -> tuple[int, int]:
    """How many trials are better at a trial's last report, and how many have got there."""
    rung = len(values[number]) - 1
    there = [each[rung] for each in values.values() if len(each) > rung]
    mine = values[number][rung]
    return sum(value > mine if maximize else value < mine for value in there), len(there)


def distributions(parameters: Iterable[Parameter]) -> dict[str, BaseDistribution]:
    """The distribution of each parameter, by its name."""
    return {parameter.name: _distribution(parameter) for parameter in parameters}


def _distribution(parameter: Parameter) -> BaseDistribution:
    if parameter.choices:
        return CategoricalDistribution([as_categorical(choice) for choice in parameter.choices])
    if parameter.low is None or parameter.high is None:
        raise ValueError(f"{parameter.name} has neither a range nor choices")
    if parameter.whole:
        step = 1 if parameter.step is None else int(parameter.step)
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log, step=step)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)


def as_categorical(value: Any) -> Any:
    """A choice as Optuna stores it: a list is a text."""
    return LIST.join(value) if isinstance(value, list | tuple) else value


def field_values(parameters: Iterable[Parameter], params: Mapping[str, Any]) -> dict[str, Any]:
    """The values of fields, in types of JSON, that Optuna's values stand for."""
    return {each.name: _field_value(each, params[each.name]) for each in parameters}


def _field_value(parameter: Parameter, value: Any) -> Any:
    if parameter.choices:
        return next((choice for choice in parameter.choices if as_categorical(choice) == value), value)
    return int(value) if parameter.whole else float(value)
