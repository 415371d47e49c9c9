"""Google's TPU chips: what the kernel shows of them, and what the runtime that uses them tells.

Of each chip there is ``utilization``, which is its duty cycle: the share of time in which its
TensorCores were at work; ``memory_used`` and ``memory_total``; and ``processes``, the programs that
hold it. Where the runtime counts the cores of a chip apart, there are also ``core_0`` and ``core_1`` (%).
"""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from accel_engine import clock
from accel_engine.devices.reading import Inventory, Reading, Sample, UnavailableKind
from accel_engine.devices.tpu_chips import Chip, Holders, find_chips, find_holders
from accel_engine.devices.tpu_metrics import (
    DUTY_CYCLE,
    MEMORY_TOTAL,
    MEMORY_USED,
    PORTS_VARIABLE,
    MetricValues,
    RuntimeMetrics,
)

HOLDERS_EVERY = 10.0
"""Seconds between looks at who holds the chips, for which every process is looked at."""

_Shares = Mapping[str, tuple[float, ...]]
"""The values that belong to each chip, by its device's id."""


class TpuProbe:
    """Finds TPU chips on the PCI bus and asks the runtime that uses them how busy they are.

    Args:
        root: Of the file system that holds ``sys``, ``dev`` and ``proc``.
        ports: Of the runtime's metric services, as in :data:`PORTS_VARIABLE`; what that says when left out.
        clock: Tells the time in seconds; it says when what is asked seldom is asked again.
    """

    kind = "tpu"

    def __init__(
        self, root: Path = Path("/"), ports: str | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._root = root
        self._clock = clock
        self._metrics = RuntimeMetrics(os.environ.get(PORTS_VARIABLE, "") if ports is None else ports, clock)
        self._chips: tuple[Chip, ...] = ()
        self._holders = Holders({}, complete=False)
        self._holders_due = 0.0

    def inventory(self) -> Inventory:
        """Find the chips, or say that there are none."""
        self._chips = find_chips(self._root)
        if not self._chips:
            return Inventory((), (UnavailableKind("tpu", "no TPU chip on the PCI bus"),))
        self._metrics.open()
        return Inventory(tuple(chip.device for chip in self._chips))

    def sample(self) -> tuple[Sample, ...]:
        """Read every chip, with why nothing is known of what could not be read."""
        if not self._chips:
            return ()
        if self._clock() >= self._holders_due:
            self._holders, self._holders_due = find_holders(self._root), self._clock() + HOLDERS_EVERY
        answers = self._metrics.read()
        held = tuple(chip for chip in self._chips if self._holders.of(chip))
        shares = {name: _shares(answer.values, held, self._chips) for name, answer in answers.items()}
        now = clock.now()
        return tuple(Sample(now, chip.device.id, self._read(chip, answers, shares)) for chip in self._chips)

    def close(self) -> None:
        """Let go of the connections to the runtime."""
        self._metrics.close()

    def _read(
        self, chip: Chip, answers: Mapping[str, MetricValues], shares: Mapping[str, _Shares | None]
    ) -> dict[str, Reading]:
        def reading(name: str, unit: str, combined: Callable[[tuple[float, ...]], float]) -> Reading:
            share = shares[name]
            if share and chip.device.id in share:
                return Reading(combined(share[chip.device.id]), unit)
            return Reading.missing(self._reason(chip, answers[name], mapped=share is not None), unit)

        readings = {
            "utilization": reading(DUTY_CYCLE, "%", lambda values: sum(values) / len(values)),
            "memory_used": reading(MEMORY_USED, "B", sum),
            "memory_total": reading(MEMORY_TOTAL, "B", sum),
        }
        if readings["memory_total"].value is None:
            readings["memory_total"] = Reading(chip.device.memory, "B")
        cores = (shares[DUTY_CYCLE] or {}).get(chip.device.id, ())
        if len(cores) > 1:
            readings |= {f"core_{index}": Reading(value, "%") for index, value in enumerate(cores)}
        if (holders := self._holders.of(chip)) or self._holders.complete:
            readings["processes"] = Reading.counted(holders)
        return readings

    def _reason(self, chip: Chip, answer: MetricValues, *, mapped: bool) -> str:
        """Why there is no value of a chip."""
        holders = self._holders.of(chip)
        if answer.values and not mapped:
            return f"the TPU runtime tells of {len(answer.values)} devices; which chips they are is not known"
        if not answer.values and answer.served:
            return answer.reason
        if not chip.nodes:
            return "the kernel gives programs no way to the chip (it is in no IOMMU group)"
        if missing := [node for node in chip.nodes if not node.exists()]:
            return f"{missing[0]} is not there: the chip has no driver, or was not handed to this container"
        if holders:
            where = self._metrics.addresses
            return f"{holders[0].name} ({holders[0].id}) serves no readings at {where}, though it holds the chip"
        return "no program uses the chip" if self._holders.complete else answer.reason


def _shares(values: tuple[float, ...], held: tuple[Chip, ...], chips: tuple[Chip, ...]) -> _Shares | None:
    """Give each chip its values, of the chips that are held if their number fits, else of all.

    The runtime's ids tell devices apart, but which chip they are only their order says: a program that
    has some of the chips, and one host of many, may count them from 0 or not.

    Returns:
        One value a chip, or one a device; ``None`` when the number fits no chips.
    """
    for candidates in (held, chips):
        devices = sum(chip.devices for chip in candidates)
        if values and len(values) in {len(candidates), devices}:
            each = len(values) // len(candidates)
            return {chip.device.id: values[index * each : (index + 1) * each] for index, chip in enumerate(candidates)}
    return None
