"""Tells from a script's exit status how its run ended."""

import signal

from accel_engine.errors import MAX_REASON_LENGTH
from accel_engine.events import Outcome

_MEMORY = "the system may have ended it for lack of memory: see the kernel's log (dmesg)"


def ending_of(status: int, stopped: str, last_words: str) -> tuple[Outcome, str, str]:
    """The outcome of a script's run, its reason, and a hint.

    Args:
        status: The exit status, or the negative number of the signal that killed the script.
        stopped: Who stopped the training by a command; empty if nobody did.
        last_words: The exception in the output, or its last line.
    """
    if status == 0:
        return (Outcome.STOPPED if stopped else Outcome.FINISHED), stopped, ""
    if stopped:
        return Outcome.STOPPED, stopped, ""
    if -status == signal.SIGINT:
        return Outcome.STOPPED, "interrupted from the keyboard", ""
    if status < 0:
        name = (
            signal.Signals(-status).name
            if -status in signal.valid_signals() and -status < signal.SIGRTMIN
            else f"signal {-status}"
        )
        return Outcome.FAILED, f"the script was killed by {name}", _MEMORY if -status == signal.SIGKILL else ""
    said = f": {last_words[:MAX_REASON_LENGTH]}" if last_words and status == 1 else ""
    return Outcome.FAILED, f"the script exited with status {status}{said}", ""
