"""How a recording ended, in words."""

import pytest

from accel_engine.events import Outcome
from accel_engine.recording.destination import outcome_of


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (None, Outcome.FAILED, "fit was ended by an exception or an exit of the script"),
        (KeyboardInterrupt(), Outcome.STOPPED, "interrupted from the keyboard"),
        (SystemExit(), Outcome.STOPPED, "the script exited"),
        (SystemExit(0), Outcome.STOPPED, "the script exited"),
        (SystemExit(1), Outcome.FAILED, "the script exited with status 1"),
        (SystemExit(-1), Outcome.FAILED, "the script exited with status -1"),
        (SystemExit("no data"), Outcome.FAILED, "SystemExit: no data"),
        (ValueError("oh no"), Outcome.FAILED, "ValueError: oh no"),
    ],
)
def test_each_kind_of_exception_has_its_words(error: BaseException | None, outcome: Outcome, reason: str) -> None:
    assert outcome_of(error) == (outcome, reason)
