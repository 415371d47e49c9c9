"""Reads a run's device metrics as curves over its steps."""

import time
from collections.abc import Mapping

from accel_engine.run import RunReader, Update
from accel_engine.run.store.sample_packing import SampleUnpacker
from accel_engine.text import printable
from accel_tui.run_state.curve import Curve
from accel_tui.run_state.forward_fill import ForwardFilledCurve

READINGS = ("utilization", "memory_used", "temperature", "power")
"""The metrics that can be charted: in %, GiB, degrees Celsius, W."""

_GIB = 2.0**30

MAX_ROWS = 1000
"""Maximum number of samples per read, so that nothing else waits for those of a long run."""

DeviceCurves = Mapping[str, Mapping[str, Curve]]
"""Curves by metric and device."""


class DeviceCurvesReader:
    """Reads device metrics once a chart of any of them is shown.

    Args:
        seconds: Minimum interval between updates; devices are sampled once a second.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._unpacker = SampleUnpacker(frozenset(READINGS))
        self._traces: dict[tuple[str, str], ForwardFilledCurve] = {}
        self._last = 0
        self._behind = True
        self._names: frozenset[str] = frozenset()
        self._stale = False
        self._made = 0.0

    def read(
        self, reader: RunReader, names: frozenset[str], step_end_times: Curve, update: Update
    ) -> DeviceCurves | None:
        """Read some samples, and return updated curves.

        Args:
            reader: Reads the run.
            names: Some of :data:`READINGS`; nothing is read if empty.
            step_end_times: End time of each step, in seconds since the Unix epoch.
            update: What is new in the run since the last call.

        Returns:
            The curves; ``None`` if unchanged, or updated less than ``seconds`` ago.

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
        return self._curves(names, step_end_times)

    def _read(self, reader: RunReader) -> bool:
        """Read some samples; returns whether there may be more."""
        batch = next(reader.sample_batches(self._unpacker, self._last, MAX_ROWS), None)
        if batch is None:
            return False
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        self._last, samples = batch
        for sample in samples:
            for name, reading in sample.readings.items():
                if reading.value is not None:
                    value = reading.value / (_GIB if reading.unit == "B" else 1)
                    found.setdefault((name, printable(sample.device)), []).append((sample.time, value))
        for key, values in found.items():
            self._traces.setdefault(key, ForwardFilledCurve()).extend(*zip(*values, strict=True))
        return True

    def _curves(self, names: frozenset[str], step_end_times: Curve) -> DeviceCurves:
        curves: dict[str, dict[str, Curve]] = {}
        for (name, device), trace in self._traces.items():
            if name in names and (curve := trace.over(step_end_times)).end_step:
                curves.setdefault(name, {})[device] = curve
        return curves
