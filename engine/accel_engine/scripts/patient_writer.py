"""Writes a script's run in a thread, which waits for a full disk."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from accel_engine.errors import DatabaseError, RunError, format_error

RETRY_SECONDS = 1.0
"""How long to wait before another try while the disk is full, or the database is locked."""

GIVE_UP_SECONDS = 600.0
"""How long to try after the script has ended."""

MAX_BYTES = 64 << 20
"""Maximum size of the data that waits; later data is dropped, and counted."""


@dataclass(frozen=True, slots=True)
class _Write:
    """A write that waits."""

    write: Callable[[], None]
    size: int
    """Bytes of its data."""
    refused: Callable[[str], None] | None
    """Called if this write alone cannot be done."""


class PatientWriter:
    """Executes writes in order, each as soon as the disk has room and the database is free.

    If the run can never be written again, all later writes do nothing.

    Args:
        report: Called with each problem, for the log.
        show: Called with an error when it begins to wait, and with ``None`` when it no longer waits.
        may_pass: Whether a write with this error may succeed later; others are refused.

    Attributes:
        failure: Why nothing is written any more; empty if it is.
    """

    def __init__(
        self,
        report: Callable[[str], None],
        show: Callable[[DatabaseError | None], None],
        may_pass: Callable[[RunError], bool],
    ) -> None:
        self._report = report
        self._show = show
        self._may_pass = may_pass
        self._writes: deque[_Write] = deque()
        self._waiting_bytes = 0
        self._dropped = 0
        self._changed = threading.Condition()
        self._is_finishing = False
        self.failure = ""
        self._give_up_at = 0.0
        self._thread = threading.Thread(target=self._execute, name="writer", daemon=True)
        self._thread.start()

    def put(self, write: Callable[[], None], size: int = 0, refused: Callable[[str], None] | None = None) -> None:
        """Add a write; returns at once.

        Args:
            write: Writes; raises a :exc:`RunError` if it cannot.
            size: Bytes of its data. Writes without data are never dropped.
            refused: Called if this write cannot be executed although others can, e.g. of an image that is too large.
        """
        with self._changed:
            if self.failure:
                return
            if size and self._waiting_bytes + size > MAX_BYTES:
                self._dropped += 1
                return
            self._waiting_bytes += size
            self._writes.append(_Write(write, size, refused))
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until all that was added is written, or cannot be."""
        with self._changed:
            self._changed.wait_for(lambda: not self._writes or self.failure)

    def finish(self) -> None:
        """Write what was added, for at most :data:`GIVE_UP_SECONDS`, and end."""
        with self._changed:
            self._is_finishing, self._give_up_at = True, time.monotonic() + GIVE_UP_SECONDS
            self._changed.notify_all()
        self._thread.join()

    def fail(self, error: RunError) -> None:
        """Write nothing any more."""
        with self._changed:
            if not self.failure:
                self.failure = str(error)
                self._report(f"{error}: nothing more is recorded; the script continues")
            self._changed.notify_all()

    def _execute(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._writes or self._is_finishing or self.failure)
                if self.failure or not self._writes:
                    return
                next_write = self._writes[0]
            self._persist(next_write)
            with self._changed:
                self._writes.popleft()
                self._waiting_bytes -= next_write.size
                self._changed.notify_all()

    def _persist(self, write: _Write) -> None:
        waits = False
        while not self.failure:
            try:
                write.write()
            except RunError as error:
                if not (isinstance(error, DatabaseError) and self._may_pass(error)):
                    if not write.refused:
                        self.fail(error)
                        return
                    write.refused(str(error))
                    break
                if not waits:
                    self._report(f"{error}: waiting to write the run; the script continues")
                    self._show(error)
                waits = True
                if self._is_finishing and time.monotonic() > self._give_up_at:
                    self.fail(error)
                time.sleep(RETRY_SECONDS)
            except Exception as error:  # noqa: BLE001 (whatever it is, the others are written)
                self._report(f"one record is missing, as it cannot be written: {format_error(error)}")
                break
            else:
                break
        if waits and not self.failure:
            self._show(None)
            dropped, self._dropped = self._dropped, 0
            missing = f"; {dropped:,} records that did not fit in memory are missing" if dropped else ""
            self._report(f"the run can be written again{missing}")
