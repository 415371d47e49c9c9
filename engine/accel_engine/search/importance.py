"""How much each parameter of a search matters for an objective: Optuna's PED-ANOVA, which takes few trials.

Watanabe, Bansal and Hutter: PED-ANOVA, Efficiently Quantifying Hyperparameter Importance in Arbitrary Subspaces, 2023.
"""

import math
from collections.abc import Iterable, Sequence

from accel_engine.errors import AccelError
from accel_engine.search.definition import Objective, Parameter
from accel_engine.search.trial import Trial, TrialState

MIN_TRIALS = 10
"""Fewest trials: it compares the best tenth of them with all."""

_COMPARED = (TrialState.FINISHED, TrialState.STOPPED, TrialState.PRUNED)


def importance(parameters: Sequence[Parameter], objective: Objective, trials: Iterable[Trial]) -> dict[str, float]:
    """The share of each parameter in what makes trials good, the most important first; together 1.

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
    compared = [each for each in trials if _is_compared(each, objective)]
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


def _is_compared(trial: Trial, objective: Objective) -> bool:
    is_known = math.isfinite(trial.objectives.get(objective.name, math.nan))
    return trial.state in _COMPARED and is_known and trial.duplicate_of is None
