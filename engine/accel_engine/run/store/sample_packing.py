"""Packs device samples as rows of a run: full rows at intervals, and changes in between.

A row's text is JSON. An object has every reading: ``{"power": [412.5, "W"], "fan": ["this GPU does not
report it", "%"]}``, with the items of a count third. A list holds one object with the changes since the
device's previous row: a bare number is a value with an unchanged unit. The utilization of all CPU cores
is one string with a hexadecimal digit per core, in fifteenths, and a dash if unknown.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import Annotated, Any, TypeAlias

import msgspec

from accel_engine.devices.device_types import CountedItem, Reading, Sample
from accel_engine.errors import DatabaseError
from accel_engine.json_values import Count, decode, encode
from accel_engine.run.store.database import RunDatabase

FULL_SECONDS = 30.0
"""Interval between rows with every reading of a device."""

OTHERS_SECONDS = 5.0
"""Interval of writing changes of nonessential readings; a reading that becomes available or missing is written at
once."""

ESSENTIAL = frozenset(
    {"utilization", "memory_used", "temperature", "power", "throttling", "engine_memory", "allocated_peak"}
)
"""Readings whose changes are written with every sample."""

MAX_READINGS = 1 << 10
"""More readings than any device has."""

MAX_CORES = 1 << 14
"""More cores than any machine has."""

_CORES = "cores"
_RESOLUTION = {"": 0.01, "%": 0.1, "W": 0.1, "B": 2.0**20, "B/s": 1000.0}
"""Resolution of stored readings, by unit: finer than is shown, coarse enough not to store noise."""

Fields = dict[str, Any]

_Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class _Field(msgspec.Struct, frozen=True, array_like=True):
    """A reading as a list; its value is the reason if there is none, and null if it was not finite."""

    value: _Whole | float | str | None
    unit: str
    items: tuple[tuple[str, str, Count | None, Count | None], ...] = ()


_FULL = (_Field, str)
"""The types of what is more than the value of a known reading."""

_ROW: Any = dict[str, _Whole | float | str | _Field | None] | tuple[dict[str, _Whole | float | str | _Field | None]]


MAX_UNWRITTEN = 1 << 15
"""Maximum number of samples: an hour of nine devices."""


class SamplePacker:
    """Packs samples as rows; each row depends on those packed before."""

    def __init__(self) -> None:
        self._written: dict[str, Fields] = {}
        self._full_due: dict[str, float] = {}
        self._others_due: dict[str, float] = {}

    def pack(self, sample: Sample) -> str:
        """Return the text of a sample's row."""
        device, now = sample.device, sample.time
        fields = _fields(sample.readings)
        before = self._written.get(device, {})
        if now >= self._full_due.get(device, now) or fields.keys() != before.keys():
            self._full_due[device], self._others_due[device] = now + FULL_SECONDS, now + OTHERS_SECONDS
            self._written[device] = fields
            return encode(fields)
        others_due = now >= self._others_due[device]
        if others_due:
            self._others_due[device] = now + OTHERS_SECONDS
        changed = {
            name: field
            for name, field in fields.items()
            if field != before[name] and (others_due or _is_essential(name, field, before[name]))
        }
        self._written[device] = before | changed
        return encode([{name: _delta(field, before[name]) for name, field in changed.items()}])


class SampleUnpacker:
    """Unpacks rows in the order in which they were written.

    If it does not start with the first row, readings are incomplete for up to :data:`FULL_SECONDS`.

    Args:
        names: The readings to unpack; all by default.
    """

    def __init__(self, names: frozenset[str] | None = None) -> None:
        self._names = names
        self._known: dict[str, dict[str, _Field | str]] = {}

    def unpack(self, time: float, device: str, text: str) -> Sample:
        """Return the sample of a row.

        Raises:
            ValueError: The text is not a packed sample.
        """
        packed = decode(text, _ROW)
        is_full = isinstance(packed, dict)
        known = {} if is_full else dict(self._known.get(device, {}))
        for name, field in (packed if is_full else packed[0]).items():
            if self._names is not None and name not in self._names:
                continue
            if isinstance(field, _FULL):
                known[name] = field
            else:
                before = known.get(name)
                known[name] = _Field(field, before.unit if isinstance(before, _Field) else "")
        if len(known) > MAX_READINGS:
            raise ValueError("it has too many readings")
        sample = Sample(time, device, _readings(known))
        self._known[device] = known  # only now, so that a damaged row changes nothing
        return sample


def _fields(readings: Mapping[str, Reading]) -> Fields:
    fields: Fields = {}
    for name, reading in readings.items():
        if not name.startswith("core_"):
            fields[name] = _field(reading)
    cores = "".join(_digit(reading.value) for name, reading in readings.items() if name.startswith("core_"))
    return fields | ({_CORES: cores} if cores else {})


def _field(reading: Reading) -> list[Any]:
    if reading.value is None:
        return [reading.reason, reading.unit]
    field: list[Any] = [_rounded(reading.value, reading.unit), reading.unit]
    return [*field, [list(astuple(item)[:4]) for item in reading.items]] if reading.items else field


def _rounded(value: float, unit: str) -> float:
    step = _RESOLUTION.get(unit)
    rounded = round(round(value / step) * step, 2) if step and math.isfinite(value) else value
    return int(rounded) if rounded.is_integer() else rounded


def _is_essential(name: str, field: Any, before: Any) -> bool:
    """Whether to write a change at once."""
    return name in ESSENTIAL or name == _CORES or isinstance(field[0], str) is not isinstance(before[0], str)


def _delta(field: Any, before: Any) -> Any:
    """The bare value if the unit has not changed, or the whole field."""
    is_plain = isinstance(field, list) and len(field) == 2 and not isinstance(field[0], str)
    return field[0] if is_plain and field[1] == before[1] else field


def _digit(percent: float | None) -> str:
    return "-" if percent is None else f"{round(percent * 15 / 100):x}"


def _readings(fields: Mapping[str, _Field | str]) -> dict[str, Reading]:
    readings: dict[str, Reading] = {}
    for name, field in fields.items():
        if isinstance(field, str):
            if name != _CORES or len(field) > MAX_CORES:
                raise ValueError(f"{name} has no digit per core")
            readings |= {f"core_{index}": _core(digit) for index, digit in enumerate(field)}
        elif isinstance(field.value, str):
            readings[name] = Reading.missing(field.value, field.unit)
        elif field.value is None or not math.isfinite(field.value):
            readings[name] = Reading.missing("the device reported no finite value", field.unit)
        else:
            readings[name] = Reading(field.value, field.unit, items=tuple(CountedItem(*item) for item in field.items))
    return readings


def _core(digit: str) -> Reading:
    return Reading.missing("was not read", "%") if digit == "-" else Reading(int(digit, 16) * 100 / 15, "%")


class UnwrittenSamples:
    """The latest samples that are not written yet.

    Attributes:
        dropped: Number of samples that did not fit in memory.
    """

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=MAX_UNWRITTEN)
        self._packer = SamplePacker()
        self.dropped = 0

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._samples)

    def add(self, samples: Sequence[Sample]) -> None:
        """Add samples; they take the place of the oldest ones if there are too many."""
        self.dropped += max(0, len(self._samples) + len(samples) - MAX_UNWRITTEN)
        self._samples.extend(samples)

    def insert(self, database: RunDatabase) -> None:
        """Write the samples; they are kept only if the database fails."""
        if not self._samples:
            return
        try:
            packer, self._packer = self._packer, SamplePacker()  # a new one in case the insert fails
            rows = [(sample.time, sample.device, packer.pack(sample)) for sample in self._samples]
            with database.transaction():
                database.add_samples(rows)
            self._packer = packer
        except DatabaseError:
            raise
        except BaseException:
            self.clear()  # these can never be written
            raise
        self.clear()

    def clear(self) -> None:
        """Forget all samples, which are written."""
        self._samples.clear()

    def __len__(self) -> int:
        return len(self._samples)

    def take_dropped(self) -> int:
        """The number of samples that were dropped since the last call."""
        dropped, self.dropped = self.dropped, 0
        return dropped
