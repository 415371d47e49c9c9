"""Ends runs that wait for an engine, in the queue or at a place."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from accel_engine import clock
from accel_engine.errors import AccelError, RunError
from accel_engine.events import Outcome, RunEnded, RunStarted
from accel_engine.run.engine.status import Status, read_info
from accel_engine.run.runs.removal import remove
from accel_engine.run.store.database import DATABASE, reading, writing
from accel_engine.run.store.meta import REOPENED, read_meta
from accel_engine.run.store.stored_events import last_event
from accel_engine.run.writing.writer import RunWriter


def end_waiting(directory: Path, reason: str, outcome: Outcome = Outcome.STOPPED) -> None:
    """End a queued run: a new one becomes ``stopped``, a reopened one is again as it had ended, with its plan.

    A run that is no longer queued, or is deleted, does not change.

    Args:
        directory: The run's directory.
        reason: Why it ends.
        outcome: How a new one ends.

    Raises:
        RunError: The run cannot be written.
    """
    if not (directory / DATABASE).is_file():
        return
    with writing(directory) as database:
        if read_info(database, watched=False).status is not Status.QUEUED:
            return
        if (before := read_meta(database).get("before")) is not None:
            database.set_meta(**{key: before.get(key) for key in REOPENED}, before=None)
            return
        if last_event(database, RunStarted):  # an earlier version, which kept no ``before``, reopened it
            database.set_meta(queued=None)
            return
    writer = RunWriter(directory)
    try:
        writer.begin()
    except RunError:
        writer.close()
        with reading(directory) as database:
            if read_info(database).status is Status.QUEUED:
                raise
        return  # another process ends it
    writer.end(RunEnded(time=clock.now(), outcome=outcome, steps=0, epochs=0, seconds=0.0, reason=reason))


@contextmanager
def handing_over(directory: Path, reason: str, *, is_new: bool) -> Iterator[None]:
    """End a queued run if the block fails or is interrupted, which gives it to the queue or a place; remove a new one.

    Args:
        directory: The run's directory.
        reason: As for :func:`end_waiting`.
        is_new: Whether the run was created for this.
    """
    try:
        yield
    except BaseException:
        with suppress(AccelError):
            end_waiting(directory, reason)
            if is_new:
                remove(directory)
        raise
