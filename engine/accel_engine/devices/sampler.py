"""Samples all devices at an interval, each probe in a separate thread."""

import math
import threading
import time
from collections.abc import Callable, Sequence

from accel_engine.devices.device_types import Inventory, Probe, Sample
from accel_engine.devices.probe_thread import ProbeThread

INVENTORY_TIMEOUT = 15.0
"""Seconds to wait for the probes to find their devices; waking eight GPUs takes several."""

FIRST_SAMPLE_TIMEOUT = 2.0
"""Seconds to wait for all probes, so that the first batch has samples of all devices."""

STOP_TIMEOUT = 2.0
"""Seconds that :meth:`Sampler.stop` waits for a running callback."""


class Sampler:
    """Finds the devices of this machine and samples them at an interval.

    A batch has a sample of every device. If a driver does not respond within half an interval, the readings of its
    devices are missing, and later batches do not wait for it until it responds.

    Args:
        on_samples: Called with every batch, in the sampler's thread. If it raises, sampling stops.
        interval: Seconds between batches.
        probes: Probes in the inventory's order; all by default.
        engine: Process id of an engine, whose own usage is read with the host's; ignored if ``probes`` are given.
    """

    def __init__(
        self,
        on_samples: Callable[[tuple[Sample, ...]], None],
        interval: float = 1.0,
        probes: Sequence[Probe] | None = None,
        engine: int | None = None,
    ) -> None:
        self._on_samples = on_samples
        self._interval = interval
        self._probes = _all_probes(engine) if probes is None else tuple(probes)
        self._changed = threading.Condition()
        self._stopping = False
        self._opening = threading.Lock()
        self._opened = 0.0
        self._threads: tuple[ProbeThread, ...] = ()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    @property
    def inventory(self) -> Inventory:
        """The devices; the first access waits until they are found, usually about 100 ms.

        A kind whose driver does not respond within :data:`INVENTORY_TIMEOUT` is unavailable until it does.
        """
        self._open()
        self._wait(self._all_found, self._opened + INVENTORY_TIMEOUT)
        inventories = [thread.inventory or thread.timed_out_inventory() for thread in self._threads]
        return Inventory(
            tuple(device for inventory in inventories for device in inventory.devices),
            tuple(kind for inventory in inventories for kind in inventory.unavailable),
        )

    def find_devices(self) -> None:
        """Begin to find the devices, without waiting for them."""
        self._open()

    def start(self) -> None:
        """Start sampling; call it only once."""
        self._open()
        self._thread.start()

    def stop(self) -> None:
        """Stop sampling; no batch starts after this returns."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.stop()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(STOP_TIMEOUT)

    def _open(self) -> None:
        with self._opening:
            if not self._threads:
                self._opened = time.monotonic()
                self._threads = tuple(ProbeThread(probe, self._changed) for probe in self._probes)

    def _run(self) -> None:
        self._wait(self._all_found, self._opened + FIRST_SAMPLE_TIMEOUT)
        due = time.monotonic()
        while self._wait(lambda: False, due):
            if samples := self._batch(due + self._interval / 2):
                self._on_samples(samples)
            due = next_due(due, time.monotonic(), self._interval)

    def _batch(self, until: float) -> tuple[Sample, ...]:
        requested = [thread for thread in self._threads if thread.request()]
        if not self._wait(lambda: not any(thread.busy for thread in requested), until):
            return ()
        return tuple(sample for thread in self._threads for sample in thread.take())

    def _all_found(self) -> bool:
        return all(thread.inventory is not None for thread in self._threads)

    def _wait(self, condition: Callable[[], bool], until: float) -> bool:
        """Wait for a condition until a time of the monotonic clock; return whether sampling continues."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or condition(), max(0.0, until - time.monotonic()))
            return not self._stopping


def _all_probes(engine: int | None) -> tuple[Probe, ...]:
    # Not above: their libraries are slow to import.
    from accel_engine.devices.host_probe import HostProbe
    from accel_engine.devices.nvidia_gpu import NvidiaProbe
    from accel_engine.devices.tpu_probe import TpuProbe

    # Asking for errors keeps an idle GPU awake: only engines do.
    return HostProbe(engine=engine), NvidiaProbe(watches_errors=engine is not None), TpuProbe()


def next_due(last: float, now: float, interval: float) -> float:
    """The time of the next batch: a whole number of intervals after the last, skipping those in the past.

    Args:
        last: When the last batch was due, in seconds.
        now: The time, in seconds.
        interval: Seconds between batches.
    """
    return last + interval * max(1, math.ceil((now - last) / interval))
