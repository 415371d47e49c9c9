"""Finds Google's TPU chips through the kernel, and reads them through the TPU runtime.

Each chip has ``utilization``, its duty cycle (the share of time in which its TensorCores were busy);
``memory_used`` and ``memory_total``; and ``processes``, the processes that hold it. If the runtime reports
cores separately, there are also ``core_0`` and ``core_1`` (%).
"""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from accel_engine import clock
from accel_engine.devices import tpu_metrics
from accel_engine.devices.device_types import Inventory, Reading, Sample, UnavailableKind
from accel_engine.devices.tpu_chips import Chip, Holders, find_chips, find_holders

HOLDERS_INTERVAL = 10.0
"""Seconds between searches for the processes that hold chips, which scan all processes."""

_ChipValues = Mapping[str, tuple[float, ...]]
"""The values of each chip, by device id."""


class TpuProbe:
    """Finds TPU chips on the PCI bus, and reads their metrics from the TPU runtime.

    Args:
        root: Parent directory of ``sys``, ``dev`` and ``proc``.
        ports: Ports of the runtime's metric services; the value of :data:`PORTS_VARIABLE` by default.
        clock: Returns the time in seconds, for the intervals of queries.
    """

    kind = "tpu"

    def __init__(
        self, root: Path = Path("/"), ports: str | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._root = root
        self._clock = clock
        self._metrics = tpu_metrics.RuntimeMetrics(
            os.environ.get(tpu_metrics.PORTS_VARIABLE, "") if ports is None else ports, clock
        )
        self._chips: tuple[Chip, ...] = ()
        self._holders = Holders({}, complete=False)
        self._holders_due = 0.0

    def inventory(self) -> Inventory:
        """Find the chips, or the reason why there are none."""
        self._chips = find_chips(self._root)
        if not self._chips:
            return Inventory((), (UnavailableKind("tpu", "no TPU chip on the PCI bus"),))
        self._metrics.open()
        return Inventory(tuple(chip.device for chip in self._chips))

    def sample(self) -> tuple[Sample, ...]:
        """Read every chip."""
        if not self._chips:
            return ()
        if self._clock() >= self._holders_due:
            self._holders, self._holders_due = find_holders(self._root), self._clock() + HOLDERS_INTERVAL
        metrics = self._metrics.read()
        used = tuple(chip for chip in self._chips if self._holders.of(chip))
        values = {name: _by_chip(metric.values, used, self._chips) for name, metric in metrics.items()}
        now = clock.now()
        return tuple(Sample(now, chip.device.id, self._read(chip, metrics, values)) for chip in self._chips)

    def close(self) -> None:
        """Close the connections to the runtime."""
        self._metrics.close()

    def _read(
        self, chip: Chip, metrics: Mapping[str, tpu_metrics.MetricValues], values: Mapping[str, _ChipValues | None]
    ) -> dict[str, Reading]:
        def reading(name: str, unit: str, combine: Callable[[tuple[float, ...]], float]) -> Reading:
            by_chip = values[name]
            if by_chip and chip.device.id in by_chip:
                return Reading(combine(by_chip[chip.device.id]), unit)
            return Reading.missing(self._reason(chip, metrics[name], mapped=by_chip is not None), unit)

        readings = {
            "utilization": reading(tpu_metrics.DUTY_CYCLE, "%", lambda values: sum(values) / len(values)),
            "memory_used": reading(tpu_metrics.MEMORY_USED, "B", sum),
            "memory_total": reading(tpu_metrics.MEMORY_TOTAL, "B", sum),
        }
        if readings["memory_total"].value is None:
            readings["memory_total"] = Reading(chip.device.memory, "B")
        cores = (values[tpu_metrics.DUTY_CYCLE] or {}).get(chip.device.id, ())
        if len(cores) > 1:
            readings |= {f"core_{index}": Reading(value, "%") for index, value in enumerate(cores)}
        if (holders := self._holders.of(chip)) or self._holders.complete:
            readings["processes"] = Reading.counted(holders)
        return readings

    def _reason(self, chip: Chip, metric: tpu_metrics.MetricValues, *, mapped: bool) -> str:
        """Why a chip has no value."""
        holders = self._holders.of(chip)
        if metric.values and not mapped:
            return f"the TPU runtime reports {len(metric.values)} devices, which cannot be matched to chips"
        if not metric.values and metric.served:
            return metric.reason
        if not chip.nodes:
            return "the chip has no device file (it is in no IOMMU group)"
        if missing := [node for node in chip.nodes if not node.exists()]:
            return f"{missing[0]} does not exist: the chip has no driver, or was not passed to this container"
        if holders:
            where = self._metrics.addresses
            return f"{holders[0].name} ({holders[0].id}) holds the chip, but {tpu_metrics.NOT_SERVED} at {where}"
        return "no program uses the chip" if self._holders.complete else metric.reason


def _by_chip(values: tuple[float, ...], used: tuple[Chip, ...], chips: tuple[Chip, ...]) -> _ChipValues | None:
    """Assign values to the chips that are held if their number matches, or to all chips.

    Only the order of the runtime's device ids tells which chip they are: a program that uses some of the chips, or
    one host of many, may count them from 0 or not.

    Returns:
        One value per chip, or one per device; ``None`` if the number does not match.
    """
    for candidates in (used, chips):
        devices = sum(chip.runtime_device_count for chip in candidates)
        if values and len(values) in {len(candidates), devices}:
            each = len(values) // len(candidates)
            return {chip.device.id: values[index * each : (index + 1) * each] for index, chip in enumerate(candidates)}
    return None
