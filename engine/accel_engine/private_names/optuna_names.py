"""Private names of Optuna."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, Trial

_RUNG = "completed_rung_"
"""Begins the names of attributes in which successive halving notes the value of a trial at each rung."""


def completed_rungs(trial: FrozenTrial) -> Mapping[str, Any]:
    """The values that successive halving has noted at a trial's rungs.

    No public name gives them. Without the private ones, a continued trial is compared at its rungs again.
    """
    return {name: value for name, value in trial.system_attrs.items() if name.startswith(_RUNG)}


def last_rung(trial: FrozenTrial) -> str:
    """The name of the rung that a trial has completed by its last report; empty if it has completed none by that."""
    rungs = completed_rungs(trial)
    last, step = f"{_RUNG}{len(rungs) - 1}", trial.last_step
    return last if step is not None and rungs.get(last) == trial.intermediate_values[step] else ""


def set_constraint(study: Study, trial_id: int, name: str, value: float) -> None:
    """Set a constraint of a trial that another process may have asked for.

    Only a study's ``ask`` gives a trial whose constraints can be set. Without the private way, samplers take the last
    report of a failed trial as its value.

    Args:
        study: The study.
        trial_id: Its id in the storage.
        name: Name of the constraint.
        value: More than 0 if it is violated.
    """
    with suppress(TypeError, AttributeError):
        Trial(study, trial_id).set_constraint(name, value)
