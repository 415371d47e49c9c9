"""The plan of a trial: the search's, with the values of the trial, and what all trials need."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from accel_engine.plan import DEFAULTS, USES, Plan
from accel_engine.plan.field_rules import Need
from accel_engine.plan.interval import parse_interval
from accel_engine.plan.monitor import is_better_lower
from accel_engine.plan.plan_checks import NEEDS, valid_fields, without_ignored
from accel_engine.search.definition import Parameter, StudyDefinition
from accel_engine.search.trial import Trial

TRIAL_DEFAULTS = {name: use.in_trials for name, use in USES.items() if use.in_trials is not None}
"""Fields of trials unless the search's plan has them."""

MOST_COMBINED = 1000
"""The most combinations of values in which is looked for what a parameter needs."""


def trial_plan(
    definition: StudyDefinition,
    values: Mapping[str, Any],
    *,
    number: int | None = None,
    seed: int | None = None,
    epochs: int | None = None,
) -> Plan:
    """Make the plan of a trial.

    Args:
        definition: The search.
        values: The trial's values; those without an effect beside the others are left out.
        number: The trial's number; ``None`` for a run that confirms the best one.
        seed: Seed, if it is not the search's; the splits follow from the search's.
        epochs: Epochs, if they are not the plan's.

    Raises:
        PlanError: The values contradict each other.
    """
    title = f"{definition.name} {'confirmation' if number is None else number}"
    fields = {
        **TRIAL_DEFAULTS,
        "seed": definition.seed,
        **definition.plan,
        **values,
        **_monitor(definition),
        "name": title,
    }
    if seed not in (None, fields["seed"]):  # with the validation examples of the others, so that it is comparable
        fields |= {"split_seed": fields.get("split_seed", fields["seed"]), "seed": seed}
    if epochs is not None:
        fields["epochs"] = epochs
    return Plan.from_mapping(without_ignored(fields))


def plan_to_train(definition: StudyDefinition, trial: Trial) -> Plan:
    """Make the plan that trains a trial anew outside the search: without a name, and without :data:`TRIAL_DEFAULTS`.

    A trial counts by its best validation, so the plan saves those weights, unless the search's plan says otherwise.

    Raises:
        PlanError: The values contradict each other, or another version allowed them.
    """
    plan = trial_plan(definition, trial.values, number=trial.number, epochs=trial.epochs)
    chosen = {**definition.plan, **trial.values}
    defaults = {name: DEFAULTS[name] for name in TRIAL_DEFAULTS if name not in chosen}
    best = {} if "restore_best" in chosen else {"restore_best": "on"}
    return Plan.from_mapping(without_ignored({**plan.to_mapping(), **defaults, **best, "name": ""}))


def _monitor(definition: StudyDefinition) -> dict[str, str]:
    """The monitor of trials, so that early stopping and the best checkpoint follow the same metric."""
    monitor = definition.objectives[0]
    lower = is_better_lower(monitor.name)
    if lower is not None and lower is not monitor.maximize:  # the mode follows from the name
        return {"monitor": monitor.name}
    return {"monitor": monitor.name, "monitor_mode": "max" if monitor.maximize else "min"}


def identity(definition: StudyDefinition, values: Mapping[str, Any]) -> str:
    """A text that is equal for two trials that would train the same plan, also where a value has no effect."""
    return json.dumps(trial_plan(definition, values).to_mapping(), sort_keys=True)


def plans_to_check(definition: StudyDefinition) -> Iterator[Plan]:
    """Yield a plan for every choice and both ends of every range, with the first values of the others.

    Raises:
        PlanError: The values contradict each other.
    """
    for values in _corners(definition.parameters):
        yield trial_plan(definition, values)


def _corners(parameters: Sequence[Parameter]) -> Iterator[dict[str, Any]]:
    ends = {each.name: _ends(each) for each in parameters}
    first = {name: values[0] for name, values in ends.items()}
    yield first
    for name, values in ends.items():
        for value in values[1:]:
            yield {**first, name: value}


def without_effect(definition: StudyDefinition) -> Iterator[str]:
    """Yield a sentence for each parameter that has no effect on any trial, with what it needs.

    What a parameter needs is looked for in the choices and the ends of the ranges of the others.
    """
    for parameter in definition.parameters:
        if (need := NEEDS.get(parameter.name)) and not _may_be_met(need, parameter, definition):
            yield f"{parameter.name} has no effect on any trial: it needs {need.what}"


def _may_be_met(need: Need, parameter: Parameter, definition: StudyDefinition) -> bool:
    """Whether a trial may have what a parameter needs; assumed if there are too many combinations to look at."""
    ends = [[(each.name, end) for end in _ends(each)] for each in definition.parameters if each is not parameter]
    shared = {**definition.plan, **_monitor(definition)}
    if math.prod(map(len, ends)) > MOST_COMBINED:
        return True
    return any(need.is_met(valid_fields({**shared, **dict(values)})) for values in product(*ends))


def _ends(parameter: Parameter) -> tuple[Any, ...]:
    """The choices of a parameter, or both ends of its range."""
    return parameter.choices or (parameter.low, parameter.high)


def most_reports(definition: StudyDefinition) -> int | None:
    """The largest number of reports that a trial can have; ``None`` if it is unknown before one has ended."""
    ends = {each.name: _ends(each) for each in definition.parameters}
    epochs = max(ends.get("epochs") or (definition.plan.get("epochs", DEFAULTS["epochs"]),))
    if not definition.objectives[0].name.startswith("validation_"):
        return int(epochs)
    if definition.plan.get("validation", "epoch") != "epoch":
        return 1
    interval = parse_interval("validation_every", definition.plan.get("validation_every", "1 epoch"))
    return -(-int(epochs) // interval.count) if interval.unit == "epochs" else None
