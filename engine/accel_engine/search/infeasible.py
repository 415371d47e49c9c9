"""Which proposals are known to fail: where a trial ran out of memory, one that needs as much or more does, too."""

from collections.abc import Iterable, Mapping
from typing import Any

from accel_engine.plan import affecting
from accel_engine.search.trial import Trial, TrialState

NEEDS_MORE = ("batch_size", "window")
"""Fields whose larger values need more memory, all others being equal."""

NEEDS_LESS = ("micro_batches",)
"""Fields whose larger values need less."""


def known_to_fail(values: Mapping[str, Any], trials: Iterable[Trial]) -> Trial | None:
    """The trial that ran out of memory with values that need no more than these; ``None`` if there is none."""
    return next((each for each in trials if _needs_no_more(each, values)), None)


def _needs_no_more(trial: Trial, values: Mapping[str, Any]) -> bool:
    if trial.state is not TrialState.OUT_OF_MEMORY or trial.machine or trial.duplicate_of is not None:
        return False
    return trial.values.keys() == values.keys() and all(
        _as_much(name, trial.values[name], value) for name, value in values.items()
    )


def _as_much(name: str, failed: Any, value: Any) -> bool:
    if name not in affecting("memory") or failed == value:
        return True
    if failed is None or value is None:
        return False
    return (name in NEEDS_MORE and value >= failed) or (name in NEEDS_LESS and value <= failed)
