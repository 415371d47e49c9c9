"""The results of a search: the best trial, the Pareto front of several objectives, and the importance of parameters."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from accel_engine.errors import AccelError, PlanError
from accel_engine.search.definition import Objective, Parameter, StudyDefinition
from accel_engine.search.trial import Trial, TrialState
from accel_engine.search.trial_plan import plan_to_train
from accel_engine.search.trial_runs import RunMetrics

COUNTED = (TrialState.FINISHED, TrialState.PRUNED, TrialState.STOPPED)
"""States of trials whose objectives count."""

MIN_TRIALS = 10
"""Fewest trials for the importance of parameters: it compares the best tenth of them with all."""


def best_value(objective: Objective, values: Iterable[float]) -> float | None:
    """The best finite value; ``None`` if there is none."""
    finite = [value for value in values if math.isfinite(value)]
    return (max if objective.maximize else min)(finite, default=None)


def objectives_at_best(
    objectives: Sequence[Objective], measurements: Sequence[RunMetrics], figures: Mapping[str, float]
) -> dict[str, float]:
    """The objectives of a trial: the monitor's best value, other metrics at the same step, and figures.

    Args:
        objectives: The first one is the monitor.
        measurements: Of the trial's run.
        figures: Of the trial's run, by name.
    """
    monitor = objectives[0]
    measured = [each for each in measurements if math.isfinite(each.metrics.get(monitor.name, math.nan))]
    if not measured:
        return {}
    best = (max if monitor.maximize else min)(measured, key=lambda each: each.metrics[monitor.name])
    known = {**best.metrics, **figures}
    return {each.name: known[each.name] for each in objectives if math.isfinite(known.get(each.name, math.nan))}


def is_counted(trial: Trial, *names: str) -> bool:
    """Whether a trial has its own result in these objectives."""
    values = [trial.objectives.get(name, math.nan) for name in names]
    return trial.state in COUNTED and trial.duplicate_of is None and all(map(math.isfinite, values))


def best_trial(definition: StudyDefinition, trials: Iterable[Trial]) -> Trial | None:
    """The trial with the best value of the first objective, the monitor; of equal ones the first on the front."""
    monitor = definition.objectives[0]
    counted = [each for each in trials if is_counted(each, monitor.name)]
    best = best_value(monitor, (each.objectives[monitor.name] for each in counted))
    equal = [each for each in counted if each.objectives[monitor.name] == best]
    return min(front(definition, equal) or equal, key=lambda each: each.number, default=None)


def front(definition: StudyDefinition, trials: Iterable[Trial]) -> list[Trial]:
    """The trials that no other is superior to: better in one objective, and as good in all others."""
    names = [each.name for each in definition.objectives]
    counted = [each for each in trials if is_counted(each, *names)]
    signs = np.array([1.0 if each.maximize else -1.0 for each in definition.objectives])
    values = signs * np.array([[each.objectives[name] for name in names] for each in counted]).reshape(-1, len(names))
    return [each for each, row in zip(counted, values, strict=True) if not _is_dominated(row, values)]


def _is_dominated(row: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> bool:
    """Whether a row of values, shape ``[trials, objectives]``, is as large in all columns and larger in one."""
    as_large = (values >= row).all(axis=1)
    return bool((as_large & (values > row).any(axis=1)).any())


def trial_command(definition: StudyDefinition, trial: Trial) -> str:
    """The command that trains the plan of a trial anew; empty if this machine cannot make the plan."""
    try:
        return plan_to_train(definition, trial).command()
    except PlanError:
        return ""


def importance(parameters: Sequence[Parameter], objective: Objective, trials: Iterable[Trial]) -> dict[str, float]:
    """The share of each parameter in what makes trials good, the most important first; together 1.

    By Optuna's PED-ANOVA, which takes few trials: Watanabe, Bansal and Hutter, "PED-ANOVA: Efficiently Quantifying
    Hyperparameter Importance in Arbitrary Subspaces", 2023.

    Pruned trials count, too, by what they have reached. Imports Optuna, which takes 0.2 s.

    Args:
        parameters: The parameters.
        objective: What is judged.
        trials: The trials; those without the objective do not count.

    Raises:
        AccelError: Too few trials can be compared.
    """
    import optuna

    from accel_engine.search.samplers import as_categorical, distributions

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    compared = [each for each in trials if is_counted(each, objective.name)]
    if len(compared) < MIN_TRIALS:
        raise AccelError(f"importance needs {MIN_TRIALS} ended trials that can be compared; so far {len(compared)}")
    ranges = distributions(parameters)
    study = optuna.create_study(direction="maximize" if objective.maximize else "minimize")
    for each in compared:
        params = {name: as_categorical(each.values[name]) for name in ranges}
        value = each.objectives[objective.name]
        study.add_trial(optuna.trial.create_trial(params=params, distributions=ranges, value=value))
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    return optuna.importance.get_param_importances(study, evaluator=evaluator)
