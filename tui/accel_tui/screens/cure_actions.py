"""Tries and applies cures by the engine's modules, which are imported when they are used, in a thread."""

import pkgutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from accel_tui.run_state.cure_trials import CureActions, CureProgress, CureResult, TryCure


def _try_cure(
    directory: Path,
    changes: Mapping[str, Any],
    on_progress: Callable[[CureProgress], None],
    *,
    should_stop: Callable[[], bool],
) -> CureResult:
    try_cure: TryCure = pkgutil.resolve_name("accel_engine.launch.cure_trial:try_cure")
    return try_cure(directory, changes, on_progress, should_stop=should_stop)


def _apply_cure(
    directory: Path,
    changes: Mapping[str, Any],
    on_progress: Callable[[str], object],
    *,
    should_stop: Callable[[], bool],
) -> str:
    apply_and_settle: Callable[..., Any] = pkgutil.resolve_name("accel_engine.launch.settle_cure:apply_and_settle")
    return str(apply_and_settle(directory, changes, on_progress, should_stop=should_stop).text)


CURE_ACTIONS = CureActions(_try_cure, _apply_cure)
"""What the engine can do with a cure."""
