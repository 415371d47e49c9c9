"""Reports why a worker that asks an engine has failed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from accel_engine.errors import AccelError


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
