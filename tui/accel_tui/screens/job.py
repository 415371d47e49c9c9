"""The job of a screen, for its threads: its parts, its end, and why it has failed."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from accel_engine.errors import AccelError
from accel_engine.process.engine_call import EngineCall
from accel_engine.requests.protocol.request import Doing, EngineRequest
from accel_engine.run_queue.request_device import placed


@contextmanager
def reported(report: Callable[[str], object]) -> Iterator[None]:
    """Report errors in the block; those that are bugs are also raised, to the log.

    Args:
        report: Called in the worker's thread with the reason.
    """
    try:
        yield
    except AccelError as error:
        report(str(error))
    except Exception as error:
        report(f"{type(error).__name__}: {error}")
        raise


class Job:
    """One run of a job, as its thread and its screen share it. It ends with its thread.

    Attributes:
        is_cancelled: Whether the user has ended it, or left the screen; its thread may still be ending.
    """

    def __init__(self, on_part: Callable[[], object]) -> None:
        self.is_cancelled = False
        self._on_part = on_part
        self._lock = threading.Lock()
        self._cancel: Callable[[], object] | None = None
        self._parts = deque[Any]()

    def send(self, part: Any) -> None:
        """Send a part of the answer to the screen, from the job's thread."""
        self._parts.append(part)
        if len(self._parts) == 1:
            self._on_part()

    def take_parts(self) -> Iterator[Any]:
        """The parts since the last call."""
        while self._parts:
            yield self._parts.popleft()

    def cancel(self) -> None:
        """End it, from any thread."""
        with self._lock:
            self.is_cancelled = True
        if self._cancel:
            self._cancel()

    @contextmanager
    def ended_by(self, cancel: Callable[[], object]) -> Iterator[None]:
        """Call a function when the job is cancelled in the block, or was before."""
        with self._lock:
            self._cancel = cancel
        if self.is_cancelled:
            cancel()
        try:
            yield
        finally:
            self._cancel = None

    def ask(self, request: EngineRequest[Any]) -> Any:
        """Ask an engine process, send the parts of its answer to the screen, and return the result.

        Raises:
            UsageError: The request's device cannot be used.
            AccelError: There is no result, or the job was cancelled.
        """
        if self.is_cancelled:
            raise AccelError("ended before an engine was started")
        with placed(request) as on_device, EngineCall(on_device) as call, self.ended_by(call.cancel):
            return call.result(self.send, lambda what: self.send(Doing(what)))
