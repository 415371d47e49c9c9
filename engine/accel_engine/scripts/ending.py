"""Tells from a script's exit status how its run ended."""

import signal

from accel_engine.errors import MAX_REASON_LENGTH
from accel_engine.events import Outcome

_MEMORY = "the system may have ended it for lack of memory: see the kernel's log (dmesg)"


_INTERRUPTED = (0, 128 + signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGINT, -signal.SIGTERM, -signal.SIGKILL)
"""How a script ends that was asked to by a signal."""


def ending_of(status: int, interrupted: str, stopped: str, last_words: str) -> tuple[Outcome, str, str]:
    """The outcome of a script's run, its reason, and a hint.

    Args:
        status: The exit status, or the negative number of the signal that killed the script.
        interrupted: Who interrupted the script by a command; empty if nobody did.
        stopped: Who stopped the last part by a command; empty if nobody did.
        last_words: Why it failed, by its output.
    """
    if interrupted and status in _INTERRUPTED:
        return Outcome.STOPPED, interrupted, ""
    if status == 0:
        return (Outcome.STOPPED if stopped else Outcome.FINISHED), stopped, ""
    if -status == signal.SIGINT:
        return Outcome.STOPPED, "interrupted from the keyboard", ""
    if status < 0:
        name = (
            signal.Signals(-status).name
            if -status in signal.valid_signals() and -status < signal.SIGRTMIN
            else f"signal {-status}"
        )
        return Outcome.FAILED, f"the script was killed by {name}", _MEMORY if -status == signal.SIGKILL else ""
    said = last_words[:MAX_REASON_LENGTH] if status == 1 else ""
    return Outcome.FAILED, f"the script exited with status {status}{said}", ""
