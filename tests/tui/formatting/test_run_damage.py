"""Why a run was lost, in words."""

from pathlib import Path

import pytest

from accel_engine.run import RunInfo, Status
from accel_engine.run.engine.memory_loss import MemoryLoss
from accel_tui.formatting.run_damage import how_lost


@pytest.mark.parametrize(
    ("loss", "script", "words"),
    [
        (None, "", "the training process exited unexpectedly"),
        (MemoryLoss.KILLED, "", "the system probably killed the training process, as memory ran out"),
        (MemoryLoss.KILLED, "loop.py", "the system probably killed the script, as memory ran out"),
        (MemoryLoss.CRASHED, "", "the training process crashed, as memory ran out"),
    ],
)
def test_a_run_that_was_lost_as_memory_ran_out_says_so(loss: MemoryLoss | None, script: str, words: str) -> None:
    info = RunInfo("r", Path("r"), None, {}, 0.0, "h", 1, Status.LOST, script=script, memory_loss=loss)
    assert how_lost(info) == words
