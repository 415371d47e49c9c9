"""Pauses a live run while something else is measured, and resumes it in any case."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from accel_engine.errors import RunError
from accel_engine.run import RunInfo, RunReader, Status, request
from accel_engine.run.engine.commands import read_answer, withdraw

PATIENCE = 30.0
"""Seconds to wait until a run has paused: it does between two chunks, or two batches of a validation."""

INTERVAL = 0.05


class PauseNote(NamedTuple):
    """What happens to a run while something else is measured; both are empty for a run that is not live.

    Attributes:
        now: In words, meanwhile.
        after: In words, after that.
    """

    now: str = ""
    after: str = ""


BESIDE = PauseNote(
    "the run trains beside it, as it could not be paused", "the run trained beside it, as it could not be paused"
)


@contextmanager
def paused(directory: Path, longest: float, should_stop: Callable[[], bool] = lambda: False) -> Iterator[PauseNote]:
    """Pause a run for a block.

    One that somebody else has paused, before or meanwhile, stays paused. If this program is killed, the engine
    resumes the run by itself after ``longest`` seconds.

    Args:
        directory: The run's directory.
        longest: Seconds that the block takes at most.
        should_stop: Whether to give up waiting.
    """
    info = read_run(directory)
    if info.status is Status.PAUSED:
        yield PauseNote("the run is paused", "the run was paused")
        return
    if not info.status.live:
        yield PauseNote()
        return
    number = _pause(directory, longest, should_stop)
    try:
        yield PauseNote("the run is paused meanwhile", "the run was paused meanwhile") if number else BESIDE
    finally:
        if number:
            with suppress(RunError):  # it has ended meanwhile, or its time is over
                request(directory, "resume", float(number))


def read_run(directory: Path) -> RunInfo:
    """Read a run's plan and status.

    Raises:
        RunError: It cannot be read.
    """
    with closing(RunReader(directory)) as reader:
        return reader.info()


def _pause(directory: Path, longest: float, should_stop: Callable[[], bool]) -> int:
    """Ask the engine to pause; returns the command's id, 0 if it has not."""
    try:
        number = request(directory, "pause", longest)
    except RunError:
        return 0
    deadline = time.monotonic() + PATIENCE
    while (answer := read_answer(directory, number)) is None:
        if should_stop() or time.monotonic() > deadline or not read_run(directory).status.live:
            if withdraw(directory, number):
                return 0
            break
        time.sleep(INTERVAL)
    answer = answer or read_answer(directory, number)
    return number if answer is not None and answer[0] else 0
