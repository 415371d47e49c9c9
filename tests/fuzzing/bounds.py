"""Bounds of an example's time and memory: what hangs, or takes too much, fails its test."""

import faulthandler
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import psutil

CPU_SECONDS = 5
"""Time of the processor that an example may take: of this process, so that a busy machine fails no test."""

SECONDS = 60
"""Time that an example may take in all, which ends one that waits for something that never comes."""

LAST_SECONDS = 180
"""Time after which the process ends with a traceback: no handler of Python can end a hang in C code."""

MEMORY = 1 << 30
"""Bytes that an example may take on top of what the process has; what needs more gets a ``MemoryError``."""


class _OutOfTimeError(BaseException):
    """Raised in an example that is out of time: no ``except Exception`` of the tested code may stop it."""


@contextmanager
def bounded() -> Iterator[None]:
    """Bound the block's time and memory, in the main thread.

    Raises:
        AssertionError: The block took more than :data:`CPU_SECONDS` or :data:`SECONDS`.
        MemoryError: It took more than :data:`MEMORY`. The tested code may show it as its own error.
    """

    def stop(signum: int, frame: FrameType | None) -> None:
        del frame
        raise _OutOfTimeError(f"{CPU_SECONDS} s of the processor" if signum == signal.SIGPROF else f"{SECONDS} s")

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    handlers = {each: signal.signal(each, stop) for each in (signal.SIGPROF, signal.SIGALRM)}
    faulthandler.dump_traceback_later(LAST_SECONDS, exit=True)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + MEMORY, hard))
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    except _OutOfTimeError as error:
        raise AssertionError(f"the example hangs: it took more than {error}") from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        faulthandler.cancel_dump_traceback_later()
        for each, handler in handlers.items():
            signal.signal(each, handler)
