"""Tries and applies cures by the engine's modules, which are imported when they are used, in a thread."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_engine.advice import Finding
from accel_tui.run_state.cure_trials import CureActions

if TYPE_CHECKING:  # its imports are slow
    from accel_engine.advice.cures.cure_trial import CureProgress, CureResult


def _try_cure(
    directory: Path,
    finding: Finding,
    changes: Mapping[str, Any],
    on_progress: "Callable[[CureProgress], None]",
    *,
    should_stop: Callable[[], bool],
) -> "CureResult":
    from accel_engine.advice.cures.advice_actions import PURPOSES
    from accel_engine.advice.cures.cure_trial import try_cure

    return try_cure(directory, changes, on_progress, should_stop=should_stop, quantity=PURPOSES[finding.trouble])


def _apply_cure(
    directory: Path,
    finding: Finding,
    changes: Mapping[str, Any],
    on_progress: Callable[[str], object],
    *,
    should_stop: Callable[[], bool],
) -> str:
    from accel_engine.advice.cures.advice_actions import PURPOSES
    from accel_engine.advice.cures.settle_cure import apply_and_settle

    purpose = PURPOSES[finding.trouble]
    return apply_and_settle(
        directory, changes, on_progress, finding=finding.id, purpose=purpose, should_stop=should_stop
    ).text


CURE_ACTIONS = CureActions(_try_cure, _apply_cure)
"""What the engine can do with a cure."""
