"""What a run says: events, steps and samples as they come out of its file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accel_engine.devices.reading import Sample
from accel_engine.events import Event
from accel_engine.run.schema import is_series

if TYPE_CHECKING:  # NumPy takes long to import, and to list runs or to ask something of one takes none
    import numpy as np
    import numpy.typing as npt

    from accel_engine.run.downsampled_steps import StepRange


@dataclass(frozen=True, slots=True)
class Chunk:
    """The steps of one dispatch.

    Attributes:
        first_step: Steps taken in the run before it.
        count: Number of steps.
        started: Seconds since the Unix epoch.
        ended: Likewise.
        series: float32 arrays of shape ``[count]`` by name, such as ``loss`` and ``accuracy``.
    """

    first_step: int
    count: int
    started: float
    ended: float
    series: "Mapping[str, npt.NDArray[np.float32]]"


@dataclass(frozen=True, slots=True)
class Update:
    """What a run says since it was last asked; each in its own order of time.

    Attributes:
        events: What happened.
        chunks: Steps.
        samples: Readings of devices.
        stretch: All steps from the first to before those of ``chunks``, in place of many chunks.
        more: Whether these are only a part of the events, and all else comes after the rest of them.
    """

    events: tuple[Event, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    samples: tuple[Sample, ...] = ()
    stretch: "StepRange | None" = None
    more: bool = False

    def __bool__(self) -> bool:
        return bool(self.events or self.chunks or self.samples)


def chunk_of(row: tuple[Any, ...], names: tuple[str, ...]) -> Chunk:
    """Make a chunk of a row: id, first step, count, start, end, and a packed column for each name."""
    import numpy as np  # see above

    _, first_step, count, started, ended, *columns = row
    return Chunk(
        first_step,
        count,
        started,
        ended,
        {
            name: np.frombuffer(blob, dtype="<f4")
            for name, blob in zip(names, columns, strict=True)
            if blob is not None and is_series(name)
        },
    )
