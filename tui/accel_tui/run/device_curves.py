"""What a run recorded of its devices, as curves over its steps, while somebody looks at them."""

import time
from collections.abc import Mapping

from accel_engine.run import RunReader, Update
from accel_engine.run.sample_packing import SampleUnpacker
from accel_engine.text import printable
from accel_tui.run.curve import Curve
from accel_tui.run.forward_fill import HeldCurve

READINGS = ("utilization", "memory_used", "temperature", "power")
"""The readings that there can be curves of: in %, in GiB, in degrees Celsius, in W."""

_GIB = 2.0**30

MOST_ROWS = 1000
"""How many samples are read at a look: a long run's are read in many, so that nothing else waits."""

DeviceCurves = Mapping[str, Mapping[str, Curve]]
"""Curves by reading, and by device in each."""


class DeviceCurvesReader:
    """Keeps the traces of all readings that there can be curves of, once somebody has looked at any.

    Args:
        seconds: How often curves are made at most: devices are read once a second.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._unpacker = SampleUnpacker(frozenset(READINGS))
        self._traces: dict[tuple[str, str], HeldCurve] = {}
        self._last = 0
        self._behind = True
        self._names: frozenset[str] = frozenset()
        self._stale = False
        self._made = 0.0

    def look(self, reader: RunReader, names: frozenset[str], ended: Curve, update: Update) -> DeviceCurves | None:
        """Read some samples, and give curves that are newer than the last ones.

        Args:
            reader: Of the run.
            names: Some of :data:`READINGS`. While they are none, nothing is read.
            ended: When each step ended, in seconds since the Unix epoch.
            update: What the run has said since the last look.

        Returns:
            ``None`` where they would be as before, or were made just now.

        Raises:
            RunError: The run can no longer be read.
        """
        self._behind = self._behind or bool(update.samples)
        self._stale = self._stale or bool(update)
        if names and self._behind:
            self._behind = self._read(reader)
            self._stale = self._stale or self._behind
        due = names and self._stale and time.monotonic() - self._made >= self._seconds
        if names == self._names and not due:
            return None
        self._names, self._stale, self._made = names, False, time.monotonic()
        return self._curves(names, ended)

    def _read(self, reader: RunReader) -> bool:
        """Read some samples; whether there may be more."""
        rows = reader.samples(self._last, MOST_ROWS)
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for number, at, device, text in rows:
            for name, reading in self._unpacker.unpack(at, device, text).readings.items():
                if reading.value is not None:
                    value = reading.value / (_GIB if reading.unit == "B" else 1)
                    found.setdefault((name, printable(device)), []).append((at, value))
            self._last = number
        for key, values in found.items():
            self._traces.setdefault(key, HeldCurve()).extend(*zip(*values, strict=True))
        return len(rows) == MOST_ROWS

    def _curves(self, names: frozenset[str], ended: Curve) -> DeviceCurves:
        curves: dict[str, dict[str, Curve]] = {}
        for (name, device), trace in self._traces.items():
            if name in names and (curve := trace.over(ended)).count:
                curves.setdefault(name, {})[device] = curve
        return curves
