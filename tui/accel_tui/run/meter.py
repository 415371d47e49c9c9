"""What is shown of a device: its latest sample, and how busy it was of late."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from accel_engine.devices.reading import Reading, Sample

HISTORY = 120
"""How many of its last utilizations a meter keeps."""

UNREAD = Reading.missing("was not read")


@dataclass(frozen=True, slots=True)
class Meter:
    """A device's latest sample and its past.

    Attributes:
        sample: The latest sample.
        history: Its last :data:`HISTORY` utilizations in %, oldest first; ``None`` where there was none.
    """

    sample: Sample
    history: tuple[float | None, ...]

    def reading(self, name: str) -> Reading:
        """The latest reading of a name, or one that says that there is none."""
        return self.sample.readings.get(name, UNREAD)


def record(meters: Mapping[str, Meter], samples: Iterable[Sample]) -> dict[str, Meter]:
    """Give the meters, by device id, as they stand after these samples."""
    after = dict(meters)
    for sample in samples:
        past = after[sample.device].history if sample.device in after else ()
        utilization = sample.readings.get("utilization", UNREAD).value
        after[sample.device] = Meter(sample, (*past[1 - HISTORY :], utilization))
    return after
