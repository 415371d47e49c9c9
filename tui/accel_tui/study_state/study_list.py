"""All studies, for the list of searches."""

import math
import threading
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from accel_engine.errors import AccelError
from accel_engine.run.runs.listing import thinned
from accel_engine.search.launch import open_study
from accel_engine.search.progress import trials_done
from accel_engine.search.results import is_counted
from accel_engine.search.study_paths import studies
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.formatting.bars import bar
from accel_tui.formatting.table_columns import ALL_ROOM, Column
from accel_tui.formatting.text import base_name, sparkline
from accel_tui.plan import field_labels
from accel_tui.study_state.state import StudyState
from accel_tui.study_state.study_follower import read_study
from accel_tui.study_state.study_texts import objective_name, objective_text, state_of_study

if TYPE_CHECKING:  # it imports Optuna
    from accel_engine.search.study_reader import StudyReader


@dataclass(frozen=True, slots=True)
class ListedStudy:
    """A study in the list."""

    directory: Path
    state: StudyState | None = None
    """Its state; ``None`` if it cannot be read."""
    problem: str = ""
    """Why it cannot be read."""

    @property
    def name(self) -> str:
        """The study's name."""
        return printable_line(self.directory.name)


class StudyList:
    """All studies, which stay open, so that only what is new is read; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[Path, StudyReader] = {}
        self._states: dict[Path, StudyState] = {}

    def read(self) -> tuple[ListedStudy, ...]:
        """Read all studies, newest first; blocks."""
        with self._lock:
            found = studies()
            for directory in self._open.keys() - {*found}:
                self._close(directory)
            return tuple(map(self._listed, found))

    def close(self) -> None:
        """Close all studies; blocks while they are read."""
        with self._lock:
            for directory in tuple(self._open):
                self._close(directory)

    def _listed(self, directory: Path) -> ListedStudy:
        try:
            if directory not in self._open:
                self._open[directory] = open_study(directory)
            before = self._states.get(directory, StudyState())
            self._states[directory] = state = read_study(self._open[directory], before)
        except AccelError as error:
            self._close(directory)
            return ListedStudy(directory, problem=printable_line(str(error)))
        return ListedStudy(directory, state)

    def _close(self, directory: Path) -> None:
        self._states.pop(directory, None)
        if study := self._open.pop(directory, None):
            study.close()


def _state(study: ListedStudy) -> tuple[str, str]:
    return state_of_study(study.state) if study.state else ("! unreadable", "warning")


def _model(study: ListedStudy) -> str:
    definition = study.state.definition if study.state else None
    if definition is None:
        return ""
    models = next((each.choices for each in definition.parameters if each.name == "model"), ())
    chosen = [str(definition.plan.get("model", "auto"))] if not models else [str(each) for each in models]
    return printable_line(",".join(base_name(each) for each in chosen))


def _trials(study: ListedStudy) -> str:
    state = study.state
    if state is None or state.definition is None:
        return ""
    return f"{trials_done(state.trials.values()):,} of {state.definition.trials:,}"


def _best(study: ListedStudy) -> float:
    """The best value of the monitor; NaN before there is one."""
    state = study.state
    return state.best.objectives[state.monitor.name] if state and state.best else math.nan


def _done(study: ListedStudy, width: int) -> str:
    """How many of the trials are done, as a bar."""
    state = study.state
    if state is None or state.definition is None or not state.definition.trials:
        return ""
    return bar(trials_done(state.trials.values()) / state.definition.trials, width, rest="─")


def _course(study: ListedStudy, width: int) -> str:
    """The best value so far over the trials, from the lowest to the highest."""
    state = study.state
    if state is None:
        return ""
    name, better = state.monitor.name, max if state.monitor.maximize else min
    values = [each.objectives[name] for each in state.trials.values() if is_counted(each, name)]
    best = list(accumulate(values, better))
    low, high = min(best, default=0.0), max(best, default=0.0)
    return sparkline(thinned(best, width), min(len(best), width), low, high) if low < high else ""


def _parameters(study: ListedStudy) -> str:
    return ", ".join(field_labels.label(each.name) for each in study.state.parameters) if study.state else study.problem


COLUMNS: tuple[Column[ListedStudy], ...] = (
    Column(
        "created",
        8,
        lambda study, now: numbers.ago(now - study.state.created) if study.state else "",
        lambda study: (study.state.created, "") if study.state else None,
        right=True,
        descending=True,
    ),
    Column(
        "state",
        13,
        lambda study, _: _state(study)[0],
        lambda study: (0.0, _state(study)[0]),
        colour=lambda study: _state(study)[1],
    ),
    Column("search", 20, lambda study, _: study.name, lambda study: (0.0, study.name.lower())),
    Column(
        "model",
        12,
        lambda study, _: _model(study),
        lambda study: (0.0, _model(study)) if _model(study) else None,
        drop_priority=3,
    ),
    Column(
        "trials",
        10,
        lambda study, _: _trials(study),
        lambda study: (float(len(study.state.trials)), "") if study.state else None,
        right=True,
        descending=True,
    ),
    Column("", 10, lambda _, __: "", draw=_done, colour=lambda _: "primary", drop_priority=5, widest=20),
    Column(
        "best",
        8,
        lambda study, _: objective_text(study.state.monitor.name if study.state else "", _best(study)),
        lambda study: (_best(study), "") if math.isfinite(_best(study)) else None,
        right=True,
        drop_priority=1,
    ),
    Column(
        "monitor",
        12,
        lambda study, _: objective_name(study.state.monitor.name) if study.state else "",
        lambda study: (0.0, study.state.monitor.name) if study.state else None,
        drop_priority=2,
    ),
    Column("best so far", 12, lambda _, __: "", draw=_course, colour=lambda _: "success", drop_priority=6, widest=24),
    Column(
        "parameters",
        12,
        lambda study, _: _parameters(study),
        lambda study: (0.0, _parameters(study)),
        drop_priority=4,
        widest=ALL_ROOM,
    ),
)
"""The columns of the list."""
