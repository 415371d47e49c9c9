"""The events of a search, as objects for JSON lines."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from accel_engine.search.definition import Confirmation, StudyDefinition
from accel_engine.search.results import best_trial, front, trial_command
from accel_engine.search.trial import Trial, TrialReport, TrialState

_ENDED = {
    TrialState.FINISHED: "trial_finished",
    TrialState.PRUNED: "trial_pruned",
    TrialState.STOPPED: "trial_stopped",
    TrialState.FAILED: "trial_failed",
    TrialState.OUT_OF_MEMORY: "trial_out_of_memory",
    TrialState.LOST: "trial_lost",
}


def events_between(before: Trial | None, after: Trial) -> Iterator[dict[str, Any]]:
    """The events of a trial between two looks at it.

    Args:
        before: The trial as it was; ``None`` if it is new.
        after: The trial now.
    """
    was_live = before is not None and before.state.live
    had_begun = before is not None and _has_begun(before)
    if after.duplicate_of is None and _has_begun(after) and (not had_begun or (not was_live and after.state.live)):
        kind, time = ("trial_continued", after.continued) if had_begun else ("trial_started", after.started)
        yield _event(kind, after, {"values": dict(after.values)}, time or after.started)
    if not after.state.live and (before is None or was_live or before.state is not after.state):
        details: dict[str, Any] = {"values": dict(after.values), "objectives": dict(after.objectives)}
        details |= {"reason": after.reason} if after.reason else {}
        details |= {} if after.duplicate_of is None else {"duplicate_of": after.duplicate_of}
        yield _event(_ENDED[after.state], after, details, after.ended or after.started)


def _has_begun(trial: Trial) -> bool:
    """Whether a trial has a run, here or on another machine."""
    return bool(trial.run or trial.machine)


def report_event(report: TrialReport, name: str) -> dict[str, Any]:
    """A report as an object.

    Args:
        report: The report.
        name: The monitor.
    """
    values = {"epoch": report.epoch, "step": report.step, name: report.value}
    return {"event": "trial_reported", "time": report.time, "trial": report.trial, **values}


def _event(kind: str, trial: Trial, details: dict[str, Any], time: float) -> dict[str, Any]:
    machine = {"machine": trial.machine} if trial.machine else {}
    return {"event": kind, "time": time, "trial": trial.number, "run": trial.run, **machine, **details}


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
        "best": _trial_object(definition, best) if best else None,
    }
    if len(definition.objectives) > 1:
        found["front"] = [_trial_object(definition, each) for each in front(definition, trials)]
    if confirmation is not None and confirmation.mean is not None:
        found["confirmation"] = {
            "runs": list(confirmation.runs),
            "values": list(confirmation.values),
            "mean": confirmation.mean,
            "spread": confirmation.spread,
        }
    return found


def _trial_object(definition: StudyDefinition, trial: Trial) -> dict[str, Any]:
    """A trial as an object of JSON."""
    return {
        "trial": trial.number,
        "run": trial.run,
        **({"machine": trial.machine} if trial.machine else {}),
        "values": dict(trial.values),
        "objectives": dict(trial.objectives),
        "command": trial_command(definition, trial),
    }
