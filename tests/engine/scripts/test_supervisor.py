"""How a run ends, told from its script's exit status."""

import signal

import pytest

from accel_engine.events import Outcome
from accel_engine.scripts.supervisor import ending_of


@pytest.mark.parametrize(
    ("status", "interrupted", "stopped", "outcome", "reason"),
    [
        (0, "", "", Outcome.FINISHED, ""),
        (0, "", "stop by ann", Outcome.STOPPED, "stop by ann"),
        (1, "", "stop by ann", Outcome.FAILED, "the script exited with status 1: ValueError: oh no"),
        (-signal.SIGKILL, "", "stop by ann", Outcome.FAILED, "the script was killed by SIGKILL"),
        (-signal.SIGTERM, "interrupt by ann", "", Outcome.STOPPED, "interrupt by ann"),
        (130, "interrupt by ann", "", Outcome.STOPPED, "interrupt by ann"),
        (1, "interrupt by ann", "", Outcome.FAILED, "the script exited with status 1: ValueError: oh no"),
        (-signal.SIGINT, "", "", Outcome.STOPPED, "interrupted from the keyboard"),
        (1, "", "", Outcome.FAILED, "the script exited with status 1: ValueError: oh no"),
        (3, "", "", Outcome.FAILED, "the script exited with status 3"),
        (-signal.SIGSEGV, "", "", Outcome.FAILED, "the script was killed by SIGSEGV"),
        (-(signal.SIGRTMIN + 1), "", "", Outcome.FAILED, f"the script was killed by signal {signal.SIGRTMIN + 1}"),
    ],
)
def test_the_outcome_says_what_ended_the_script(
    status: int, interrupted: str, stopped: str, outcome: Outcome, reason: str
) -> None:
    assert ending_of(status, interrupted, stopped, ": ValueError: oh no")[:2] == (outcome, reason)


def test_a_script_that_was_killed_has_a_hint_about_memory() -> None:
    assert "lack of memory" in ending_of(-signal.SIGKILL, "", "", "")[2]
