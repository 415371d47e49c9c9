"""The latest sample of a device, and its latest utilizations."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.text import printable, printable_fields

MAX_UTILIZATIONS = 120
"""Number of past utilizations that a meter keeps."""

UNREAD = Reading.missing("was not read")


@dataclass(frozen=True, slots=True)
class Meter:
    """A device's latest sample, and its utilizations up to it."""

    sample: Sample
    """The latest sample."""
    utilizations: tuple[float | None, ...]
    """The last :data:`MAX_UTILIZATIONS` utilizations in %, oldest first; ``None`` where missing."""

    def reading(self, name: str) -> Reading:
        """The latest reading of that name, or one with the reason why it is missing."""
        return self.sample.readings.get(name, UNREAD)


def unread(device: str, reason: str) -> Meter:
    """The meter of a device that is never read, without utilizations."""
    return Meter(Sample(0.0, device, {"utilization": Reading.missing(reason, "%")}), ())


def record_device(meters: Mapping[str, Meter], samples: Iterable[Sample]) -> dict[str, Meter]:
    """Update meters by device id with samples; text from drivers is made printable."""
    after = dict(meters)
    latest: dict[str, Sample] = {}
    for sample in samples:
        device = printable(sample.device)
        past = after[device].utilizations if device in after else ()
        utilization = sample.readings.get("utilization", UNREAD).value
        after[device] = Meter(sample, (*past[1 - MAX_UTILIZATIONS :], utilization))
        latest[device] = sample
    for device, sample in latest.items():  # only the last samples are shown
        after[device] = replace(after[device], sample=printable_fields(sample))
    return after
