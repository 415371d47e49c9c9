"""The columns of the table of trials."""

import math

from rich.cells import cell_len

from accel_engine.search.definition import Parameter
from accel_engine.search.trial import Trial
from accel_engine.words import numbers
from accel_tui.formatting.table_columns import ALL_ROOM, Column, SortKey
from accel_tui.plan import field_labels
from accel_tui.study_state.state import NO_CURVE, StudyState
from accel_tui.study_state.study_texts import SYMBOLS, objective_form, objective_name, parameter_text, trial_state

_WIDEST = 14
_FIRST = 5  # parameters that matter more than the time and the number of epochs


def trial_columns(state: StudyState) -> tuple[Column[Trial], ...]:
    """The columns of a study's trials: number, state, objectives, parameters, epochs, time, reason."""
    objectives = [
        _objective(state, objective.name, descending=objective.maximize, drop_priority=index)
        for index, objective in enumerate(state.objectives)
    ]
    parameters = [
        _parameter(each, (3 if index < _FIRST else 20) + index) for index, each in enumerate(state.parameters)
    ]
    elapsed = "elapsed" if any(each.name == "time" for each in state.objectives) else "time"
    return (
        Column("trial", 6, lambda trial, _: _number(trial, state), lambda trial: (float(trial.number), ""), right=True),
        Column(
            "state",
            10,
            lambda trial, _: trial_state(trial),
            lambda trial: (float(list(SYMBOLS).index(trial.state)), ""),
            colour=lambda trial: SYMBOLS[trial.state][1],
        ),
        *objectives,
        *parameters,
        _epochs(state),
        Column(elapsed, 8, _time, _time_key, right=True, drop_priority=9, descending=True),
        Column(
            "reason",
            16,
            lambda trial, _: reason_of(trial),
            lambda trial: (0.0, reason_of(trial).lower()) if reason_of(trial) else None,
            drop_priority=12,
            widest=ALL_ROOM,
        ),
    )


def _number(trial: Trial, state: StudyState) -> str:
    return f"{'★' if trial.number in state.front else ''} {trial.number}"


def _objective(state: StudyState, name: str, drop_priority: int, *, descending: bool) -> Column[Trial]:
    def key(trial: Trial) -> SortKey | None:
        value = state.value(trial, name)
        return (value, "") if math.isfinite(value) else None

    title = objective_name(name)[:_WIDEST]
    text = objective_form(name, (state.value(each, name) for each in state.trials.values()))
    return Column(
        title,
        max(8, len(title)),
        lambda trial, _: text(state.value(trial, name)),
        key,
        right=True,
        descending=descending,
        drop_priority=drop_priority,
    )


def _parameter(parameter: Parameter, drop_priority: int) -> Column[Trial]:
    name, title = parameter.name, field_labels.label(parameter.name)[:_WIDEST]
    widest = max((cell_len(parameter_text(choice)) for choice in parameter.choices), default=9)

    def key(trial: Trial) -> SortKey | None:
        value = trial.values.get(name)
        if isinstance(value, int | float):
            return (float(value), "")
        return (math.inf, parameter_text(value)) if name in trial.values else None

    return Column(
        title,
        min(max(cell_len(title), widest), _WIDEST),
        lambda trial, _: parameter_text(trial.values[name]) if name in trial.values else "",
        key,
        right=not parameter.choices or all(isinstance(each, int | float) for each in parameter.choices),
        drop_priority=drop_priority,
    )


def _epochs(state: StudyState) -> Column[Trial]:
    def epochs(trial: Trial) -> float:
        curve = state.curves.get(trial.number, NO_CURVE)
        return float(curve.epochs[-1]) if curve.epochs.size else 0.0

    return Column(
        "epochs",
        6,
        lambda trial, _: f"{epochs(trial):.0f}" if epochs(trial) else "—",
        lambda trial: (epochs(trial), "") if epochs(trial) else None,
        right=True,
        drop_priority=10,
        descending=True,
    )


def _time(trial: Trial, now: float) -> str:
    seconds = trial.seconds(now)
    return numbers.duration(seconds) if seconds is not None else "—"


def _time_key(trial: Trial) -> SortKey | None:
    seconds = trial.seconds(math.inf)
    return None if seconds is None else (seconds, "")


def reason_of(trial: Trial) -> str:
    """Why a trial ended early, or where it trains; empty for most."""
    if trial.duplicate_of is not None:
        return f"same as trial {trial.duplicate_of}"
    return trial.reason or (f"on {trial.machine}" if trial.machine else "")
