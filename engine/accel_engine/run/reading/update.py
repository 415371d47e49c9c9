"""Events, steps and samples read from a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accel_engine.devices.device_types import Sample
from accel_engine.events import Event
from accel_engine.run.store.schema import StoredChunk

if TYPE_CHECKING:  # NumPy is slow to import, and listing runs or sending a command does not need it
    import numpy as np
    import numpy.typing as npt

    from accel_engine.run.store.downsampled_steps import StepRange


@dataclass(frozen=True, slots=True)
class Chunk:
    """The steps of one dispatch."""

    first_step: int
    """Steps taken in the run before it."""
    count: int
    """Number of steps."""
    started: float
    """Seconds since the Unix epoch."""
    ended: float
    """Seconds since the Unix epoch."""
    series: "Mapping[str, npt.NDArray[np.float32]]"
    """float32 arrays of shape ``[count]`` by name, such as ``loss`` and ``accuracy``."""


@dataclass(frozen=True, slots=True)
class NewSteps:
    """The range of steps recorded since a chunk."""

    first: int
    """The first new step; it may replace one that was recorded and discarded before."""
    stop: int
    """The step after the last new one."""
    chunk: int
    """Id of the newest chunk, for the next call."""


@dataclass(frozen=True, slots=True)
class Update:
    """The rows that were written to a run since the last poll, each in order of time."""

    events: tuple[Event, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    """Chunks of steps."""
    samples: tuple[Sample, ...] = ()
    """Device samples."""
    step_range: "StepRange | None" = None
    """All steps before the ones of ``chunks``, in buckets, if there are many."""
    more: bool = False
    """Whether events remain; the next polls read them, and then everything else."""

    def __bool__(self) -> bool:
        return bool(self.events or self.chunks or self.samples)


def chunk_of(stored: StoredChunk, names: tuple[str, ...]) -> Chunk:
    """Unpack a chunk, which has packed values or ``None`` for each name."""
    import numpy as np  # see above

    series = zip(names, stored.series, strict=True)
    chunk = stored.chunk
    unpacked = {name: np.frombuffer(packed, dtype="<f4") for name, packed in series if packed is not None}
    return Chunk(chunk.first_step, chunk.count, chunk.started, chunk.ended, unpacked)
