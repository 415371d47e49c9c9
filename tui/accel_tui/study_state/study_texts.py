"""A search and its trials as text."""

import math
from collections.abc import Callable, Iterable, Mapping

from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_engine.search.definition import Objective
from accel_engine.search.progress import seconds_left, trials_done
from accel_engine.search.ranges import format_value
from accel_engine.search.trial import Trial, TrialState
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.study_state.state import StudyState

SYMBOLS: Mapping[TrialState, tuple[str, str]] = {
    TrialState.WAITING: ("○", "accent"),
    TrialState.RUNNING: ("●", "accent"),
    TrialState.FINISHED: ("✓", "success"),
    TrialState.PRUNED: ("×", "note"),  # noqa: RUF001 - as a mark of charts
    TrialState.STOPPED: ("■", "warning"),
    TrialState.FAILED: ("✗", "error"),
    TrialState.OUT_OF_MEMORY: ("✗", "error"),
    TrialState.LOST: ("✗", "error"),
}
"""The symbol and the colour of each state."""

_SHORT_STATES = {TrialState.OUT_OF_MEMORY: "memory"}


_OUTCOMES = {
    "running": ("●", "accent"),
    "finished": ("✓", "success"),
    "stopped": ("■", "warning"),
    "interrupted": ("■", "warning"),
    "failed": ("✗", "error"),
}


def trial_state(trial: Trial) -> str:
    """The symbol and the state of a trial, in at most ten cells."""
    return f"{SYMBOLS[trial.state][0]} {_SHORT_STATES.get(trial.state, str(trial.state))}"


def objective_name(name: str) -> str:
    """The name of an objective: ``val accuracy``."""
    return printable_line(name).replace(VALIDATION_PREFIX, "val ", 1).replace("_", " ")


def objective_text(name: str, value: float) -> str:
    """The value of an objective with its unit; a dash if it is unknown."""
    return objective_form(name)(value)


def objective_form(name: str, column: Iterable[float] = ()) -> Callable[[float], str]:
    """How the values of an objective are written: as one, or all of a column in one form."""
    forms = {"time": _seconds, "memory": numbers.size, "latency": numbers.latency}
    text = numbers.in_one_form(forms.get(name, numbers.metric), column)
    return lambda value: text(value) if math.isfinite(value) else "—"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value < 9.995 else numbers.duration(value)


def parameter_text(value: object) -> str:
    """The value of a parameter, numbers in four digits."""
    if isinstance(value, float):
        return numbers.learning_rate(value)
    return printable_line(format_value(value))


def state_of_study(state: StudyState) -> tuple[str, str]:
    """The state of a search in a word with its symbol, and its colour."""
    symbol, colour = _OUTCOMES.get(state.outcome, _OUTCOMES["finished"])
    return f"{symbol} {printable_line(state.outcome)}", colour


def progress_text(state: StudyState) -> str:
    """How far a search is: trials, their states, and for how long it has run."""
    if state.definition is None:
        return ""
    reason = str(state.ended.get("reason") or "") if state.ended and not state.is_running else state.last_words
    done = trials_done(state.trials.values())
    parts = [f"{done:,} of {state.definition.trials:,} trials"]
    if state.spent:
        limit = f" of {numbers.duration(state.definition.within)}" if state.definition.within else ""
        parts.append(f"{numbers.duration(state.spent)}{limit}")
    left = seconds_left(state.definition, state.trials.values(), state.spent, state.spent_at_end)
    if state.is_running and left:
        parts.append(f"about {numbers.duration(left)} left")
    counts = [f"{state.counts[word]:,} {word}" for word in SYMBOLS if word in state.counts]
    if counts:
        parts.append(", ".join(counts))
    return " · ".join([*([printable_line(reason)] if reason else []), *parts])


def best_text(state: StudyState, objective: Objective) -> str:
    """The search's own best; empty before there is one."""
    best = state.best
    if best is None:
        return ""
    value = objective_text(objective.name, best.objectives[objective.name])
    return f"best {objective_name(objective.name)} {value}, trial {best.number}"


def confirmation_text(state: StudyState) -> str:
    """The best plan trained again: mean, spread and number of seeds; empty before."""
    found = state.confirmation
    if found is None:
        return ""
    seeds = numbers.counted(len(found.values), "seed")
    if found.mean is None:
        return f"trial {found.trial} trains again with {numbers.counted(len(found.runs), 'seed')}"
    spread = f" ± {numbers.metric(found.spread)}" if found.spread is not None else ""
    more = f", {len(found.runs) - len(found.values)} more" if len(found.runs) > len(found.values) else ""
    value = objective_text(state.monitor.name, found.mean)
    return f"trained again: {value}{spread} over {seeds}{more}"
