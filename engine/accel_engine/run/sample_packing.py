"""Readings of devices as rows of a run: whole now and then, and what changed between.

A row's text is JSON. An object has every reading: ``{"power": [412.5, "W"], "fan": ["this GPU does not
report it", "%"]}``, with the parts of a count as a third item. A list holds one object with what has changed
since the device's row before: a number alone stands for a value whose unit is as it was. The use of all
cores is one text, a hexadecimal digit each for fifteenths of full use and a dash where it is unknown.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from typing import Any

from accel_engine.devices.reading import CountedItem, Reading, Sample

WHOLE_EVERY = 30.0
"""Seconds from one row with every reading of a device to the next."""

REST_EVERY = 5.0
"""Seconds after which changes of what is not essential are written; that a value is known now, or no more, at once."""

ESSENTIAL = frozenset({"utilization", "memory_used", "temperature", "power", "throttling", "engine_memory"})
"""Readings whose changes are written with every sample."""

_CORES = "cores"
_STEPS = {"": 0.01, "%": 0.1, "W": 0.1, "B": 2.0**20, "B/s": 1000.0}
"""To how much readings are rounded, by unit: finer than anybody looks, and noise would be stored else."""

Fields = dict[str, Any]


class SamplePacker:
    """Writes samples as rows, in the order in which they are packed."""

    def __init__(self) -> None:
        self._written: dict[str, Fields] = {}
        self._whole_due: dict[str, float] = {}
        self._rest_due: dict[str, float] = {}

    def pack(self, sample: Sample) -> str:
        """Give the text of a sample's row."""
        device, now = sample.device, sample.time
        fields = _fields(sample.readings)
        before = self._written.get(device, {})
        if now >= self._whole_due.get(device, now) or fields.keys() != before.keys():
            self._whole_due[device], self._rest_due[device] = now + WHOLE_EVERY, now + REST_EVERY
            self._written[device] = fields
            return _text(fields)
        rest_due = now >= self._rest_due[device]
        if rest_due:
            self._rest_due[device] = now + REST_EVERY
        changed = {
            name: field
            for name, field in fields.items()
            if field != before[name] and (rest_due or _is_essential(name, field, before[name]))
        }
        self._written[device] = before | changed
        return _text([{name: _brief(field, before[name]) for name, field in changed.items()}])


class SampleUnpacker:
    """Reads rows in the order in which they were written.

    A reader that begins in the middle knows of a device what changes; within :data:`WHOLE_EVERY`, all.

    Args:
        names: The readings that are wanted; all when left out.
    """

    def __init__(self, names: frozenset[str] | None = None) -> None:
        self._names = names
        self._known: dict[str, Fields] = {}

    def unpack(self, time: float, device: str, text: str) -> Sample:
        """Give the sample of a row.

        Raises:
            ValueError: The text is none of a sample.
        """
        found = json.loads(text)
        fields = found[0] if isinstance(found, list) else found
        if self._names is not None:
            fields = {name: field for name, field in fields.items() if name in self._names}
        known = dict(self._known.get(device, {})) if isinstance(found, list) else {}
        for name, field in fields.items():
            whole = isinstance(field, list | str)
            known[name] = field if whole else [field, known[name][1] if name in known else ""]
        self._known[device] = known
        return Sample(time, device, _readings(known))


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
    return [*field, [list(astuple(part)) for part in reading.parts]] if reading.parts else field


def _rounded(value: float, unit: str) -> float:
    step = _STEPS.get(unit)
    rounded = round(round(value / step) * step, 2) if step and math.isfinite(value) else value
    return int(rounded) if rounded.is_integer() else rounded


def _is_essential(name: str, field: Any, before: Any) -> bool:
    """Whether a change is written at once."""
    return name in ESSENTIAL or name == _CORES or isinstance(field[0], str) is not isinstance(before[0], str)


def _brief(field: Any, before: Any) -> Any:
    """A value alone, if everything else about it is as it was."""
    plain = isinstance(field, list) and len(field) == 2 and not isinstance(field[0], str)
    return field[0] if plain and field[1] == before[1] else field


def _digit(percent: float | None) -> str:
    return "-" if percent is None else f"{round(percent * 15 / 100):x}"


def _readings(fields: Fields) -> dict[str, Reading]:
    readings: dict[str, Reading] = {}
    for name, field in fields.items():
        if name == _CORES:
            readings |= {f"core_{index}": _core(digit) for index, digit in enumerate(field)}
            continue
        value, unit, *parts = field
        readings[name] = (
            Reading.missing(value, unit)
            if isinstance(value, str)
            else Reading(value, unit, parts=_parts(*parts) if parts else ())
        )
    return readings


def _parts(items: Iterable[list[Any]]) -> tuple[CountedItem, ...]:
    return tuple(CountedItem(*item) for item in items)


def _core(digit: str) -> Reading:
    return Reading.missing("was not read", "%") if digit == "-" else Reading(int(digit, 16) * 100 / 15, "%")


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
