"""Folds what was read of a study into its state."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accel_engine.search.definition import Confirmation, StudyDefinition
from accel_engine.search.trial import Trial, TrialReport
from accel_engine.text import printable_fields
from accel_tui.study_state.state import NO_CURVE, StudyState, TrialCurve


@dataclass(frozen=True, slots=True)
class StudyUpdate:
    """What was read of a study since the last time.

    Attributes:
        definition: What is searched.
        created: When it was created.
        trials: The trials that have changed.
        reports: The later reports, in the order in which they came.
        ended: How it ended.
        confirmation: The best plan, trained again.
        spent: Seconds for which it has run.
        spent_at_end: The same when the last trial ended; 0 if unknown.
        is_running: Whether a process runs the study.
        last_words: Last line of the log of a process that has exited before the end; empty otherwise.
        changes: Its number of changes before the trials were read.
        last_report: The last report.
    """

    definition: StudyDefinition
    created: float
    trials: Sequence[Trial]
    reports: Sequence[TrialReport]
    ended: Mapping[str, Any] | None
    confirmation: Confirmation | None
    spent: float
    spent_at_end: float
    is_running: bool
    last_words: str
    changes: int
    last_report: int


def apply_study_update(state: StudyState, update: StudyUpdate) -> StudyState:
    """The state after an update; the same object if nothing has changed.

    Texts of the study, which another user or program may have written, are made printable.
    """
    trials, curves = state.trials, state.curves
    if update.trials:
        changed = {trial.number: _shown(trial) for trial in update.trials}
        trials = dict(sorted({**trials, **changed}.items()))
    if update.reports:
        curves = {**curves, **_longer(curves, update.reports)}
    if trials is state.trials and curves is state.curves and _rest(state) == _rest(update):
        return state
    return replace(
        state,
        definition=update.definition,
        created=update.created,
        trials=trials,
        curves=curves,
        ended=update.ended,
        confirmation=update.confirmation,
        spent=update.spent,
        spent_at_end=update.spent_at_end,
        is_running=update.is_running,
        last_words=update.last_words,
        changes=update.changes,
        last_report=update.last_report,
    )


def _shown(trial: Trial) -> Trial:
    """A trial whose texts can be shown; its values stay, as they are trained."""
    return replace(printable_fields(trial), values=trial.values)


def _rest(part: StudyState | StudyUpdate) -> tuple[object, ...]:
    return part.definition, part.ended, part.confirmation, part.spent, part.is_running, part.last_words


def _longer(curves: Mapping[int, TrialCurve], reports: Iterable[TrialReport]) -> dict[int, TrialCurve]:
    """The curves that have new reports; a continued trial trains some epochs again, which replace the earlier ones."""
    by_trial: dict[int, dict[int, TrialReport]] = {}
    for report in reports:
        by_trial.setdefault(report.trial, {})[report.epoch] = report
    return {number: _with(curves.get(number, NO_CURVE), found) for number, found in by_trial.items()}


def _with(curve: TrialCurve, reports: Mapping[int, TrialReport]) -> TrialCurve:
    kept = ~np.isin(curve.epochs, list(reports))
    added = np.array([[each.epoch, each.step, each.time, each.value] for each in reports.values()], np.float64).T
    before = np.array([curve.epochs[kept], curve.steps[kept], curve.times[kept], curve.values[kept]])
    joined = np.concatenate([before, added], axis=1)
    return TrialCurve(*joined[:, np.argsort(joined[0], kind="stable")])
