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
    """An item that a reading counts: a process on a GPU, a MIG instance, a throttle reason.

    Attributes:
        name: Its name.
        id: A process id, or an instance's UUID; empty for others.
        memory: Bytes of device memory in use; ``None`` if unknown.
        total: Bytes of an instance's memory; ``None`` for others.
        computes: Whether it is a process that computes; not one that only draws, as a desktop does.
    """

    name: str
    id: str = ""
    memory: int | None = None
    total: int | None = None
    computes: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """One measured value, or the reason why there is none.

    Attributes:
        value: The value; ``None`` if missing.
        unit: ``%``, ``B``, ``B/s``, ``W``, ``C`` (degrees Celsius), ``MHz``, or empty for plain numbers.
        reason: Why the value is missing.
        items: The counted items, if the value is a count.
    """

    value: float | None
    unit: str = ""
    reason: str = ""
    items: tuple[CountedItem, ...] = ()

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
    """An accelerator or the CPU.

    Attributes:
        id: ``cpu:0``, ``gpu:1``, ``tpu:0``, as in plans and samples.
        kind: ``cpu``, ``gpu`` or ``tpu``.
        name: Vendor's name.
        memory: Memory in bytes; ``None`` if unknown.
        cores: Logical cores of a CPU, TensorCores of a TPU chip; 0 if unknown.
        address: PCI bus id such as ``0000:3b:00.0``, in lower case; empty for a CPU.
        uuids: UUIDs of a GPU and its MIG instances.
        unified: Whether its memory is the host's, as of a Jetson or a GB10.
        problem: Why the driver does not describe it; empty if it does.
        free: Bytes of a GPU's own memory that no program used when the GPU was found; ``None`` if unknown.
    """

    id: str
    kind: str
    name: str
    memory: int | None = None
    cores: int = 0
    address: str = ""
    uuids: tuple[str, ...] = ()
    unified: bool = False
    problem: str = ""
    free: int | None = None


@dataclass(frozen=True, slots=True)
class UnavailableKind:
    """A kind of device that is not available.

    Attributes:
        kind: ``gpu`` or ``tpu``.
        reason: Why, for the user, e.g. ``no NVIDIA driver``.
    """

    kind: str
    reason: str


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
    """The readings of one device at one time.

    Attributes:
        time: Seconds since the Unix epoch.
        device: The device's id.
        readings: By name. Every device has ``utilization`` (%), ``memory_used`` and ``memory_total``
            (B). The probes' modules list the others.
    """

    time: float
    device: str
    readings: Mapping[str, Reading] = field(default_factory=dict)


class Probe(Protocol):
    """Finds and reads the devices of a kind. It should not raise: errors become reasons.

    Attributes:
        kind: ``cpu``, ``gpu`` or ``tpu``.
    """

    kind: str

    def inventory(self) -> Inventory:
        """Find the devices, or the reason why there are none."""

    def sample(self) -> tuple[Sample, ...]:
        """Read every device once."""

    def close(self) -> None:
        """Close libraries and handles."""
