"""Reads the transfer rates of the host's disks and networks."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from accel_engine.devices.device_types import FIRST_READING, Reading

_LOOPBACKS = ("lo", "lo0")


class HostTraffic:
    """Average rates of disks and networks since the previous read.

    Args:
        sysfs: Path of ``/sys``.
        clock: Returns the time in seconds.
    """

    def __init__(self, sysfs: Path = Path("/sys"), clock: Callable[[], float] = time.monotonic) -> None:
        self._sysfs = sysfs
        self._clock = clock
        self._before: dict[str, tuple[float, float]] = {}

    def read(self) -> dict[str, Reading]:
        """Read ``disk_read``, ``disk_written``, ``network_received`` and ``network_sent`` (B/s)."""
        return {
            **self._rates("disk", self._disks, ("disk_read", "disk_written")),
            **self._rates("network", self._networks, ("network_received", "network_sent")),
        }

    def _rates(
        self, source: str, count: Callable[[], tuple[int, int] | None], names: tuple[str, str]
    ) -> Mapping[str, Reading]:
        try:
            totals = count()
        except (OSError, psutil.Error, ValueError) as error:
            return Reading.all_missing(names, f"cannot read {source} traffic: {error}", "B/s")
        if totals is None:
            return Reading.all_missing(names, f"the system reports no {source}", "B/s")
        now = self._clock()
        return {name: self._rate(name, now, total) for name, total in zip(names, totals, strict=True)}

    def _rate(self, name: str, now: float, total: int) -> Reading:
        then, before = self._before.get(name, (now, total))
        self._before[name] = now, total
        if now <= then:
            return Reading.missing(FIRST_READING, "B/s")
        return Reading(max(total - before, 0) / (now - then), "B/s")  # the total shrinks when a disk is removed

    def _disks(self) -> tuple[int, int] | None:
        counted = psutil.disk_io_counters(nowrap=False)
        return None if counted is None else (counted.read_bytes, counted.write_bytes)

    def _networks(self) -> tuple[int, int] | None:
        """Bytes of the physical network cards; if there are none, as in a container, of all but the loopback."""
        cards = psutil.net_io_counters(pernic=True, nowrap=False)
        # Cards count the traffic of bridges and tunnels, too.
        physical = [
            counted for name, counted in cards.items() if (self._sysfs / "class/net" / name / "device").exists()
        ]
        chosen = physical or [counted for name, counted in cards.items() if name not in _LOOPBACKS]
        if not chosen:
            return None
        return sum(card.bytes_recv for card in chosen), sum(card.bytes_sent for card in chosen)
