"""What is shown of a device: its latest sample, and how busy it was of late."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from accel_engine.devices.reading import Reading, Sample
from accel_engine.text import printable, printable_fields

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
    """Give the meters, by device id, as they stand after these samples; what drivers say is made printable."""
    after = dict(meters)
    latest: dict[str, Sample] = {}
    for sample in samples:
        device = printable(sample.device)
        past = after[device].history if device in after else ()
        utilization = sample.readings.get("utilization", UNREAD).value
        after[device] = Meter(sample, (*past[1 - HISTORY :], utilization))
        latest[device] = sample
    for device, sample in latest.items():  # of very many samples, only what will be shown
        after[device] = replace(after[device], sample=printable_fields(sample))
    return after
