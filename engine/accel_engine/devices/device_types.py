"""The types of device metrics: devices, samples, and readings with a value or a reason."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

ASLEEP = "suspended to save power; reading it would wake it"
"""Why nothing is read of an idle GPU of a laptop."""

FIRST_READING = "available from the second reading on"
"""Why a rate is missing at first."""


@dataclass(frozen=True, slots=True)
class CountedItem:
    """An item that a reading counts: a process on a GPU, a MIG instance, a throttle reason."""

    name: str
    id: str = ""
    """A process id, or an instance's UUID; empty for others."""
    memory: int | None = None
    """Bytes of device memory in use; ``None`` if unknown."""
    total: int | None = None
    """Bytes of an instance's memory; ``None`` for others."""
    computes: bool = False
    """Whether it is a process that computes; not one that only draws, as a desktop does."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One measured value, or the reason why it is missing."""

    value: float | None
    """The value; ``None`` if missing."""
    unit: str = ""
    """``%``, ``B``, ``B/s``, ``W``, ``C`` (degrees Celsius), ``MHz``, or empty for plain numbers."""
    reason: str = ""
    """Why the value is missing."""
    items: tuple[CountedItem, ...] = ()
    """The counted items, if the value is a count."""

    @classmethod
    def missing(cls, reason: str, unit: str = "") -> "Reading":
        """Make a reading without a value."""
        return cls(None, unit, reason)

    @classmethod
    def all_missing(cls, names: Iterable[str], reason: str, unit: str = "") -> "dict[str, Reading]":
        """Make readings without a value, by name."""
        return dict.fromkeys(names, cls.missing(reason, unit))

    @classmethod
    def counted(cls, items: tuple[CountedItem, ...]) -> "Reading":
        """Make a reading whose value is the number of ``items``."""
        return cls(float(len(items)), items=items)


@dataclass(frozen=True, slots=True)
class Device:
    """An accelerator or the CPU."""

    id: str
    """``cpu:0``, ``gpu:1``, ``tpu:0``, as in plans and samples."""
    kind: str
    """``cpu``, ``gpu`` or ``tpu``."""
    name: str
    """Vendor's name."""
    memory: int | None = None
    """Memory in bytes; ``None`` if unknown."""
    cores: int = 0
    """Logical cores of a CPU, TensorCores of a TPU chip; 0 if unknown."""
    address: str = ""
    """PCI bus id such as ``0000:3b:00.0``, in lower case; empty for a CPU."""
    uuids: tuple[str, ...] = ()
    """UUIDs of a GPU and its MIG instances."""
    unified: bool = False
    """Whether it uses the host's memory, as a Jetson or a GB10 does."""
    problem: str = ""
    """Why the driver does not describe it; empty if it does."""
    free: int | None = None
    """Bytes of a GPU's own memory that no program used when the GPU was found; ``None`` if unknown."""


@dataclass(frozen=True, slots=True)
class UnavailableKind:
    """A kind of device that is not available."""

    kind: str
    """``gpu`` or ``tpu``."""
    reason: str
    """Why, for the user, e.g. ``no NVIDIA driver``."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The devices of this machine, CPU first, and the unavailable kinds."""

    devices: tuple[Device, ...]
    unavailable: tuple[UnavailableKind, ...] = ()

    def of_kind(self, kind: str) -> tuple[Device, ...]:
        """Return the devices of one kind."""
        return tuple(device for device in self.devices if device.kind == kind)

    def why_unavailable(self, kind: str) -> str:
        """Why devices of a kind are not available; empty if they are."""
        return next((each.reason for each in self.unavailable if each.kind == kind), "")


@dataclass(frozen=True, slots=True)
class Sample:
    """The readings of one device at one time."""

    time: float
    """Seconds since the Unix epoch."""
    device: str
    """The device's id."""
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """By name. Every device has ``utilization`` (%), ``memory_used`` and ``memory_total`` (B). The probes' modules
    list the others."""


class Probe(Protocol):
    """Finds and reads the devices of a kind. It should not raise: errors become reasons."""

    kind: str
    """``cpu``, ``gpu`` or ``tpu``."""

    def inventory(self) -> Inventory:
        """Find the devices, or the reason why there are none."""

    def sample(self) -> tuple[Sample, ...]:
        """Read every device once."""

    def close(self) -> None:
        """Close libraries and handles."""
