"""The question before a cure is applied: what will happen to the run."""

from collections.abc import Mapping
from typing import Any

from accel_engine.process.start_run import CONTINUABLE
from accel_engine.run import RunInfo
from accel_tui.formatting.advice import can_continue_with, options_text
from accel_tui.screens.question_screen import CANCEL, Answer, QuestionScreen

APPLY = Answer("apply", "Apply", "a")

_LIVE = (
    "If the engine can change this while it trains, it does so now. Else the run saves a checkpoint, stops, and "
    "continues from there with the changed plan; its steps and curves are kept."
)
_LIVE_ANEW = (
    "This cannot change within a run. The run saves a checkpoint and stops, and a new run begins with the changed "
    "plan. The old one can be continued."
)
_ENDED = "The run continues from its last checkpoint with the changed plan; its steps and curves are kept."
_ENDED_ANEW = "A new run begins with the changed plan; this one stays as it is."
_THEN = "If the run is clearly worse with it than before, it is taken back."


def apply_question(info: RunInfo, changes: Mapping[str, Any]) -> QuestionScreen:
    """Ask whether to apply changes to a run, and say what that does; the answer is :data:`APPLY` or another one."""
    can_continue = can_continue_with(changes)
    if info.status.live:
        does = _LIVE if can_continue else _LIVE_ANEW
    else:
        does = _ENDED if can_continue and info.status in CONTINUABLE else _ENDED_ANEW
    return QuestionScreen(f"Apply {options_text(changes)} to the run?", f"{does} {_THEN}", (APPLY, CANCEL))
