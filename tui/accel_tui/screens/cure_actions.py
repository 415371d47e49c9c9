"""Tries and applies cures by the engine's modules, which are imported when they are used, in a thread."""

import pkgutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from accel_tui.run_state.cure_trials import ApplyCure, CureActions, CureProgress, CureResult, TryCure


def _try_cure(
    directory: Path,
    changes: Mapping[str, Any],
    on_progress: Callable[[CureProgress], None],
    *,
    should_stop: Callable[[], bool],
) -> CureResult:
    try_cure: TryCure = pkgutil.resolve_name("accel_engine.launch.cure_trial:try_cure")
    return try_cure(directory, changes, on_progress, should_stop=should_stop)


def _apply_cure(directory: Path, changes: Mapping[str, Any]) -> str:
    apply_cure: ApplyCure = pkgutil.resolve_name("accel_engine.launch.apply_cure:apply_cure")
    return apply_cure(directory, changes)


CURE_ACTIONS = CureActions(_try_cure, _apply_cure)
"""What the engine can do with a cure."""
