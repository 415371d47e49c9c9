"""The state of a search: an immutable value."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.search.definition import Confirmation, Objective, Parameter, StudyDefinition
from accel_engine.search.results import best_trial, front
from accel_engine.search.trial import Trial, TrialState

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TrialCurve:
    """The monitor of a trial by epoch."""

    epochs: Floats
    """The epochs, rising, shape ``[n]``."""
    values: Floats
    """The monitor at the end of each."""

    @property
    def last(self) -> float:
        """The latest value; NaN if there is none."""
        return float(self.values[-1]) if self.values.size else math.nan


NO_CURVE = TrialCurve(np.empty(0), np.empty(0))
"""The curve of a trial without a completed epoch."""


@dataclass(frozen=True, eq=False)
class StudyState:
    """The state of a search."""

    name: str = ""
    """The study's name."""
    definition: StudyDefinition | None = None
    """The definition of the search; ``None`` before it is read."""
    created: float = 0.0
    """When it was created, in seconds since the Unix epoch."""
    trials: Mapping[int, Trial] = field(default_factory=dict)
    """The trials by number, rising."""
    curves: Mapping[int, TrialCurve] = field(default_factory=dict)
    """The monitor of each trial that has completed an epoch."""
    ended: Mapping[str, Any] | None = None
    """How it ended; ``None`` while it is not at its end."""
    confirmation: Confirmation | None = None
    """The best plan, trained again; ``None`` before."""
    spent: float = 0.0
    """Seconds for which it has run."""
    spent_at_end: float = 0.0
    """The same when the last trial ended; 0 if unknown."""
    is_running: bool = False
    """Whether a process runs the study."""
    last_words: str = ""
    """Last line of the log of a process that has exited before the end; empty otherwise."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that vary."""
        return self.definition.parameters if self.definition else ()

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives, the monitor first."""
        return self.definition.objectives if self.definition else ()

    @property
    def monitor(self) -> Objective:
        """The first objective."""
        return self.objectives[0] if self.objectives else Objective("", maximize=True)

    @property
    def outcome(self) -> str:
        """``running``, how it ended, or ``interrupted``."""
        if self.is_running:
            return "running"
        return "interrupted" if self.ended is None else str(self.ended.get("outcome", "finished"))

    @cached_property
    def counts(self) -> Mapping[TrialState, int]:
        """The number of trials by state; a state without trials is missing."""
        found: dict[TrialState, int] = {}
        for trial in self.trials.values():
            found[trial.state] = found.get(trial.state, 0) + 1
        return found

    @cached_property
    def best(self) -> Trial | None:
        """The trial with the best monitor; ``None`` before one has a result."""
        return best_trial(self.definition, self.trials.values()) if self.definition else None

    @cached_property
    def front(self) -> frozenset[int]:
        """Numbers of the trials that no other one dominates; of one objective, of the best trial."""
        if self.definition is None or len(self.objectives) < 2:
            return frozenset({self.best.number} if self.best else ())
        return frozenset(each.number for each in front(self.definition, self.trials.values()))

    def value(self, trial: Trial, name: str = "") -> float:
        """An objective of a trial, by default the monitor; while it trains, the monitor so far; NaN if unknown."""
        name = name or self.monitor.name
        found = trial.objectives.get(name, math.nan)
        if math.isnan(found) and name == self.monitor.name:
            return self.curves.get(trial.number, NO_CURVE).last
        return found


def value_range(values: Floats, *, maximize: bool) -> tuple[float, float]:
    """The range of values that matter for their differences: without the worst tenth, such as the first epochs.

    Args:
        values: The values; what is not finite is ignored.
        maximize: Whether larger is better.

    Returns:
        Its ends; NaN if there is no value.
    """
    known = values[np.isfinite(values)]
    if not known.size:
        return math.nan, math.nan
    low, high = (0.1, 1.0) if maximize else (0.0, 0.9)
    return float(np.quantile(known, low)), float(np.quantile(known, high))
