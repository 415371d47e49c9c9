"""The question before a run that waits in the queue is cancelled."""

from accel_tui.screens.question_screen import Answer, QuestionScreen

CANCEL_RUN = "cancel_run"
"""The answer that cancels it."""

_KEEP = Answer("keep", "Keep it in the queue", "escape")
_DETAIL = "It is stopped, and keeps its plan. A run that has trained before is again as it had ended."


def cancel_question(run: str, key: str) -> QuestionScreen:
    """Ask whether to cancel a run that waits.

    Args:
        run: Its id.
        key: The key that cancels it: the one that asks.
    """
    cancel = Answer(CANCEL_RUN, "Cancel the run", key, is_destructive=True)
    return QuestionScreen(f"Cancel run {run}?", _DETAIL, (_KEEP, cancel))
