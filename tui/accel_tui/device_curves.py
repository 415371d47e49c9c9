"""What a run recorded of its devices, as curves over its steps, while somebody looks at them."""

from collections.abc import Mapping

from accel_engine.run import RunReader
from accel_engine.run.samples import SampleUnpacker
from accel_tui.curve import Curve
from accel_tui.held import Trace

READINGS = ("utilization", "memory_used", "temperature", "power")
"""The readings that there can be curves of: in %, in GiB, in degrees Celsius, in W."""

_GIB = 2.0**30

MOST_ROWS = 2000
"""How many samples are read at a look: a long run's are read in many, so that nothing else waits."""

DeviceCurves = Mapping[str, Mapping[str, Curve]]
"""Curves by reading, and by device in each."""


class DeviceCurvesReader:
    """Keeps the traces of all readings that there can be curves of, from the run's first sample on."""

    def __init__(self) -> None:
        self._unpacker = SampleUnpacker(frozenset(READINGS))
        self._traces: dict[tuple[str, str], Trace] = {}
        self._last = 0

    def look(self, reader: RunReader) -> bool:
        """Read some samples; whether there were any.

        Raises:
            RunError: The run can no longer be read.
        """
        rows = reader.samples(self._last, MOST_ROWS)
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for number, time, device, text in rows:
            for name, reading in self._unpacker.unpack(time, device, text).readings.items():
                if reading.value is not None:
                    found.setdefault((name, device), []).append(
                        (time, reading.value / (_GIB if reading.unit == "B" else 1))
                    )
            self._last = number
        for key, values in found.items():
            self._traces.setdefault(key, Trace()).extend(*zip(*values, strict=True))
        return bool(rows)

    def curves(self, names: frozenset[str], ended: Curve) -> DeviceCurves:
        """The curves of some readings over the steps.

        Args:
            names: Some of :data:`READINGS`.
            ended: When each step ended, in seconds since the Unix epoch.
        """
        curves: dict[str, dict[str, Curve]] = {}
        for (name, device), trace in self._traces.items():
            if name in names and (curve := trace.over(ended)).count:
                curves.setdefault(name, {})[device] = curve
        return curves
