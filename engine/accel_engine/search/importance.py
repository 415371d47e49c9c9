"""How much each parameter of a search matters for an objective: Optuna's PED-ANOVA, which takes few trials.

Watanabe, Bansal and Hutter: PED-ANOVA, Efficiently Quantifying Hyperparameter Importance in Arbitrary Subspaces, 2023.

The dashboard has a process of its own compute it: importing Optuna in a thread would hold its event loop for up to
60 ms, and stay in its memory.
"""

import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accel_engine.errors import AccelError
from accel_engine.json_values import Number, decode, encode
from accel_engine.search.definition import Objective, Parameter, StudyDefinition
from accel_engine.search.launch import INSTALL
from accel_engine.search.trial import Trial, TrialState

if TYPE_CHECKING:
    import optuna

MIN_TRIALS = 10
"""Fewest trials: it compares the best tenth of them with all."""

SECONDS = 60.0
"""Seconds that the process may take."""

_COMPARED = (TrialState.FINISHED, TrialState.STOPPED, TrialState.PRUNED)


@dataclass(frozen=True, slots=True)
class _Request:
    definition: StudyDefinition
    objective: Objective
    trials: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class _Answer:
    importance: dict[str, Number] = field(default_factory=dict)
    problem: str = ""


def compute(definition: StudyDefinition, objective: Objective, trials: Sequence[Trial]) -> dict[str, float]:
    """The importance of each parameter, computed in another process; see :func:`importance`."""
    request = _Request(definition, objective, tuple(trials))
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__], input=encode(request), capture_output=True, text=True, timeout=SECONDS
        )
        answer = decode(done.stdout, _Answer)
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise AccelError(f"importance cannot be computed: {error}") from error
    if answer.problem:
        raise AccelError(answer.problem)
    return answer.importance


def importance(parameters: Sequence[Parameter], objective: Objective, trials: Sequence[Trial]) -> dict[str, float]:
    """The share of each parameter in what makes trials good, the most important first; together 1.

    Args:
        parameters: The parameters.
        objective: What is judged.
        trials: The trials; those without the objective, or with values outside of the ranges, do not count.

    Raises:
        AccelError: Optuna is missing, or too few trials can be compared.
    """
    try:
        import optuna
        from optuna.importance import PedAnovaImportanceEvaluator
    except ImportError:
        raise AccelError(f"importance needs Optuna: {INSTALL}") from None
    from accel_engine.search.parameter_names import distributions

    ranges = distributions(parameters)
    rebuilt = [found for trial in trials if (found := _rebuilt(trial, objective, ranges))]
    if len(rebuilt) < MIN_TRIALS:
        raise AccelError(f"importance needs {MIN_TRIALS} ended trials that can be compared; so far {len(rebuilt)}")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize" if objective.maximize else "minimize")
    study.add_trials(rebuilt)
    variances = PedAnovaImportanceEvaluator().evaluate(study)
    total = sum(variances.values())
    shares = {name: value / total if total else 0.0 for name, value in variances.items()}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _rebuilt(trial: Trial, objective: Objective, ranges: Mapping[str, Any]) -> "optuna.trial.FrozenTrial | None":
    """A trial as Optuna knows it; ``None`` if it cannot be compared."""
    import optuna

    from accel_engine.search.parameter_names import as_categorical

    value = trial.objectives.get(objective.name, math.nan)
    is_compared = trial.state in _COMPARED and math.isfinite(value) and trial.duplicate_of is None
    if not is_compared or not ranges.keys() <= trial.values.keys():
        return None
    values = {name: as_categorical(trial.values[name]) for name in ranges}
    try:
        return optuna.trial.create_trial(params=values, distributions=dict(ranges), value=value)
    except ValueError:  # a range was changed since
        return None


def main() -> None:
    """Answer a request on standard input with a line of JSON on standard output."""
    request = decode(sys.stdin.read(), _Request)
    try:
        answer = _Answer(importance(request.definition.parameters, request.objective, request.trials))
    except AccelError as error:
        answer = _Answer(problem=str(error))
    sys.stdout.write(encode(answer))


if __name__ == "__main__":
    main()
