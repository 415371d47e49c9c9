"""The shape of what is known about devices: a device, and readings with a unit or a reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CountedItem:
    """One of the things that a reading counts: a process on a GPU, an instance that it is split into.

    Attributes:
        name: What it is called.
        id: A process id, or an instance's UUID; empty where the name says it all.
        memory: Bytes of the device's memory that it has; ``None`` where unknown.
        total: Bytes that it may have; ``None`` where nothing but the device limits it.
    """

    name: str
    id: str = ""
    memory: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One measured value, or why there is none.

    Attributes:
        value: What was measured; ``None`` when it could not be.
        unit: ``%``, ``B``, ``B/s``, ``W``, ``C`` (degrees Celsius), ``MHz``, or nothing for plain numbers.
        reason: Why there is no value.
        parts: What was counted, where the value is a count.
    """

    value: float | None
    unit: str = ""
    reason: str = ""
    parts: tuple[CountedItem, ...] = ()

    @classmethod
    def missing(cls, reason: str, unit: str = "") -> "Reading":
        """A reading that could not be taken."""
        return cls(None, unit, reason)

    @classmethod
    def counted(cls, parts: tuple[CountedItem, ...]) -> "Reading":
        """How many there are of something, and which."""
        return cls(float(len(parts)), parts=parts)


@dataclass(frozen=True, slots=True)
class Device:
    """A piece of hardware that can train, or the host itself.

    Attributes:
        id: ``cpu:0``, ``gpu:1``, ``tpu:0``: how plans, samples and TensorFlow's names refer to it.
        kind: ``cpu``, ``gpu`` or ``tpu``.
        name: What its maker calls it.
        memory: Its memory in bytes, or ``None`` where unknown.
        cores: Logical cores of a CPU, TensorCores of a TPU chip; 0 where unknown.
        address: PCI bus id in the form ``0000:3b:00.0``, in lower case; empty for a CPU.
        uuids: What else CUDA calls a GPU: its UUID, and those of the instances that it is split into.
    """

    id: str
    kind: str
    name: str
    memory: int | None = None
    cores: int = 0
    address: str = ""
    uuids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnavailableKind:
    """Why there is no device of a kind.

    Attributes:
        kind: ``gpu`` or ``tpu``.
        reason: In words for the user, for example ``no NVIDIA driver``.
    """

    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """The devices of this machine, CPU first, and why other kinds are not there."""

    devices: tuple[Device, ...]
    absences: tuple[UnavailableKind, ...] = ()

    def of_kind(self, kind: str) -> tuple[Device, ...]:
        """The devices of one kind."""
        return tuple(device for device in self.devices if device.kind == kind)


@dataclass(frozen=True, slots=True)
class Sample:
    """What was read of one device at one time.

    Attributes:
        time: Seconds since the Unix epoch.
        device: The device's id.
        readings: By name. Of every device: ``utilization`` (%), ``memory_used`` and ``memory_total``
            (B). The probes' modules name what else there is of each kind.
    """

    time: float
    device: str
    readings: Mapping[str, Reading] = field(default_factory=dict)


class Probe(Protocol):
    """One way to find and read devices of a kind. It never raises: what fails becomes a reason.

    Attributes:
        kind: Of its devices: ``cpu``, ``gpu`` or ``tpu``.
    """

    kind: str

    def inventory(self) -> Inventory:
        """Find the devices, or say why there are none."""

    def sample(self) -> tuple[Sample, ...]:
        """Read every device once."""

    def close(self) -> None:
        """Let go of libraries and handles."""
