"""What a search has found: the best trial, the front of several objectives, and its last line of JSON."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from accel_engine.errors import PlanError
from accel_engine.search.definition import Confirmation, Objective, StudyDefinition
from accel_engine.search.objectives import better, dominates
from accel_engine.search.trial import Trial, TrialState
from accel_engine.search.trial_plan import TRIAL_DEFAULTS, trial_plan
from accel_engine.search.trial_runs import Measurement

COUNTED = (TrialState.FINISHED, TrialState.PRUNED, TrialState.STOPPED)
"""States of trials whose objectives count."""


def best_value(objective: Objective, values: Iterable[float]) -> float | None:
    """The best finite value; ``None`` if there is none."""
    finite = [value for value in values if math.isfinite(value)]
    return (max if objective.maximize else min)(finite, default=None)


def objectives_at_best(
    objectives: Sequence[Objective], measurements: Sequence[Measurement], figures: Mapping[str, float]
) -> dict[str, float]:
    """The objectives of a trial: the monitor's best value, other metrics at the same step, and figures.

    Args:
        objectives: The first one is the monitor.
        measurements: Of the trial's run.
        figures: Of the trial's run, by name.
    """
    monitor = objectives[0]
    among = [each for each in measurements if math.isfinite(each.metrics.get(monitor.name, math.nan))]
    if not among:
        return {}
    best = (max if monitor.maximize else min)(among, key=lambda each: each.metrics[monitor.name])
    known = {**best.metrics, **figures}
    return {each.name: known[each.name] for each in objectives if math.isfinite(known.get(each.name, math.nan))}


def best_trial(definition: StudyDefinition, trials: Iterable[Trial]) -> Trial | None:
    """The trial with the best value of the monitor; of equal ones the first."""
    monitor, best = definition.objectives[0], None
    for trial in trials:
        if trial.state not in COUNTED or monitor.name not in trial.objectives or trial.duplicate_of is not None:
            continue
        if best is None or better(monitor, trial.objectives[monitor.name], best.objectives[monitor.name]):
            best = trial
    return best


def front(definition: StudyDefinition, trials: Iterable[Trial]) -> list[Trial]:
    """The trials than which no other is better in one objective and as good in all."""
    names = {each.name for each in definition.objectives}
    among = [
        each
        for each in trials
        if each.state in COUNTED and names <= each.objectives.keys() and each.duplicate_of is None
    ]
    return [
        each
        for each in among
        if not any(dominates(definition.objectives, other.objectives, each.objectives) for other in among)
    ]


def train_command(definition: StudyDefinition, trial: Trial) -> str:
    """The command that trains the plan of a trial anew; empty if this machine cannot make the plan."""
    values = {name: value for name, value in trial.values.items() if name not in TRIAL_DEFAULTS}
    try:
        plan = trial_plan(definition, values, number=trial.number, seed=trial.seed, epochs=trial.epochs)
    except PlanError:
        return ""
    defaults = {name: field.default for name, field in type(plan).__dataclass_fields__.items()}
    ours = {name: defaults[name] for name in TRIAL_DEFAULTS if name not in definition.plan}
    return plan.replace(name="", **ours).command()


def search_ended(
    definition: StudyDefinition,
    trials: Sequence[Trial],
    outcome: str,
    reason: str,
    confirmation: Confirmation | None = None,
) -> dict[str, Any]:
    """The object of the last line of JSON.

    Args:
        definition: The search.
        trials: All its trials.
        outcome: ``finished``, ``stopped`` or ``failed``.
        reason: Why it ended.
        confirmation: Of the best plan.
    """
    best = best_trial(definition, trials)
    own = [each for each in trials if each.duplicate_of is None]
    counts = Counter(str(each.state) for each in own)
    found: dict[str, Any] = {
        "event": "search_ended",
        "search": definition.name,
        "outcome": outcome,
        "reason": reason,
        "trials": len(own),
        "states": dict(sorted(counts.items())),
        "best": describe(definition, best) if best else None,
    }
    if len(definition.objectives) > 1:
        found["front"] = [describe(definition, each) for each in front(definition, trials)]
    if confirmation is not None and confirmation.mean is not None:
        found["confirmation"] = {
            "runs": list(confirmation.runs),
            "values": list(confirmation.values),
            "mean": confirmation.mean,
            "spread": confirmation.spread,
        }
    return found


def describe(definition: StudyDefinition, trial: Trial) -> dict[str, Any]:
    """A trial as an object of JSON."""
    return {
        "trial": trial.number,
        "run": trial.run,
        **({"machine": trial.machine} if trial.machine else {}),
        "values": dict(trial.values),
        "objectives": dict(trial.objectives),
        "command": train_command(definition, trial),
    }
