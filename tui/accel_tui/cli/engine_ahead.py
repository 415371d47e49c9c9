"""An engine that imports TensorFlow while a command still checks its plan."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from accel_engine.errors import EngineMissingError
from accel_engine.process.warm_engine import WarmEngine


@contextmanager
def engine_ahead() -> Iterator[WarmEngine | None]:
    """Start an engine, and yield it; it is killed at the end of the block unless it has a run.

    ``None`` if no usable TensorFlow is installed, which preparing a run reports after the errors of its plan.
    """
    try:
        engine = WarmEngine()
    except EngineMissingError:
        yield None
        return
    with closing(engine):
        yield engine
