"""Reading all devices again and again, in threads of their own."""

import math
import threading
import time
from collections.abc import Callable, Sequence

from accel_engine.devices.probe_thread import ProbeThread
from accel_engine.devices.reading import Inventory, Probe, Sample

INVENTORY_PATIENCE = 15.0
"""Seconds that a probe may take to find its devices; a driver that has to wake eight GPUs takes several."""

HEAD_START = 2.0
"""Seconds that sampling waits for all probes, so that the first samples are of all devices."""

STOP_PATIENCE = 2.0
"""Seconds that :meth:`Sampler.stop` waits for a callback under way."""


class Sampler:
    """Finds the devices of this machine and reads them at a steady beat.

    A batch holds a sample of every device. A device whose driver has not answered within half an
    interval has readings that say so; the others do not wait for it again until it answers.

    Args:
        on_samples: Called with every batch, in the sampler's own thread. An error that it raises
            ends the sampling.
        interval: Seconds from one batch to the next.
        probes: Ways to find and read devices, in the inventory's order; all there are when left out.
        engine: Process id of an engine, whose own use is read with the host's; not where ``probes`` are given.
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
        self._news = threading.Condition()
        self._stopping = False
        self._opening = threading.Lock()
        self._opened = 0.0
        self._threads: tuple[ProbeThread, ...] = ()
        self._beat = threading.Thread(target=self._run, name="sampler", daemon=True)

    @property
    def inventory(self) -> Inventory:
        """The devices; the first time this waits until they are found, some 100 ms most often.

        A kind whose driver does not answer within :data:`INVENTORY_PATIENCE` is absent; it is there
        as soon as the driver does answer.
        """
        self._open()
        self._wait(self._all_found, self._opened + INVENTORY_PATIENCE)
        found = [thread.inventory or thread.overdue() for thread in self._threads]
        return Inventory(
            tuple(device for inventory in found for device in inventory.devices),
            tuple(absence for inventory in found for absence in inventory.absences),
        )

    def start(self) -> None:
        """Begin to sample; a sampler is started once."""
        self._open()
        self._beat.start()

    def stop(self) -> None:
        """End sampling; after this has returned no batch is begun."""
        with self._news:
            self._stopping = True
            self._news.notify_all()
        for thread in self._threads:
            thread.end()
        if self._beat.is_alive() and self._beat is not threading.current_thread():
            self._beat.join(STOP_PATIENCE)

    def _open(self) -> None:
        with self._opening:
            if not self._threads:
                self._opened = time.monotonic()
                self._threads = tuple(ProbeThread(probe, self._news) for probe in self._probes)

    def _run(self) -> None:
        self._wait(self._all_found, self._opened + HEAD_START)
        due = time.monotonic()
        while self._wait(lambda: False, due):
            if samples := self._batch(due + self._interval / 2):
                self._on_samples(samples)
            due = next_beat(due, time.monotonic(), self._interval)

    def _batch(self, until: float) -> tuple[Sample, ...]:
        asked = [thread for thread in self._threads if thread.ask()]
        if not self._wait(lambda: not any(thread.busy for thread in asked), until):
            return ()
        return tuple(sample for thread in self._threads for sample in thread.take())

    def _all_found(self) -> bool:
        return all(thread.inventory is not None for thread in self._threads)

    def _wait(self, condition: Callable[[], bool], until: float) -> bool:
        """Wait for a condition until a time of the monotonic clock; tell whether the sampler goes on."""
        with self._news:
            self._news.wait_for(lambda: self._stopping or condition(), max(0.0, until - time.monotonic()))
            return not self._stopping


def _all_probes(engine: int | None) -> tuple[Probe, ...]:
    # With the libraries that they read by they are slow to import, and only who samples needs them.
    from accel_engine.devices.host_probe import HostProbe
    from accel_engine.devices.nvidia_probe import NvidiaProbe
    from accel_engine.devices.tpu_probe import TpuProbe

    return HostProbe(engine=engine), NvidiaProbe(), TpuProbe()


def next_beat(last: float, now: float, interval: float) -> float:
    """When the next beat is due: a whole number of intervals after the last, leaving out those that are past.

    Args:
        last: When the last beat was due, in seconds.
        now: The time, in seconds.
        interval: Seconds from beat to beat.
    """
    return last + interval * max(1, math.ceil((now - last) / interval))
