"""Runs a probe in a separate thread, so that a hanging driver or failing probe does not affect the others."""

import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from accel_engine import clock
from accel_engine.devices.device_types import Inventory, Probe, Reading, Sample, UnavailableKind

_Result = TypeVar("_Result")


class ProbeThread:
    """Finds a probe's devices, then reads them on request. All methods return immediately.

    Args:
        probe: Used, and finally closed, in this thread only.
        changed: Notified when the inventory or samples are available.
    """

    def __init__(self, probe: Probe, changed: threading.Condition) -> None:
        self._probe = probe
        self._changed = changed
        self._inventory: Inventory | None = None
        self._requested: float | None = None
        self._samples: tuple[Sample, ...] | None = None
        self._last: tuple[Sample, ...] = ()
        self._stopping = False
        # Not the condition: it would wake all other threads that share it, too.
        self._requests: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"probe-{probe.kind}", daemon=True)
        self._thread.start()

    @property
    def inventory(self) -> Inventory | None:
        """The probe's inventory; ``None`` until it is available."""
        return self._inventory

    @property
    def busy(self) -> bool:
        """Whether a request is pending."""
        return self._requested is not None

    def timed_out_inventory(self) -> Inventory:
        """The inventory to use if the probe takes too long: its kind is unavailable."""
        return self._unavailable("its driver does not respond")

    def request(self) -> bool:
        """Request a sample of each device.

        Returns:
            Whether samples are on their way; false if there are no devices, or a request is pending.
        """
        with self._changed:
            if self.busy or not self._last:
                return False
            self._requested = time.monotonic()
        self._requests.put(None)
        return True

    def take(self) -> tuple[Sample, ...]:
        """Return the newest samples once; samples with missing readings if there are none."""
        with self._changed:
            samples, self._samples = self._samples, None
            if samples is not None:
                return samples
            waited = 0.0 if self._requested is None else time.monotonic() - self._requested
            return self._missing(f"no response for {waited:.1f} s")

    def stop(self) -> None:
        """Stop the thread after the probe's current call."""
        self._stopping = True
        self._requests.put(None)

    def _run(self) -> None:
        inventory = _try(self._probe.inventory, self._unavailable)
        with self._changed:
            self._last = tuple(_unread(device.id) for device in inventory.devices)
            self._inventory = inventory
            self._changed.notify_all()
        while self._last and self._wait_for_request():
            samples = _try(self._probe.sample, self._missing)
            with self._changed:
                self._samples = samples
                self._last = samples or self._last
                self._requested = None
                self._changed.notify_all()
        self._probe.close()

    def _wait_for_request(self) -> bool:
        self._requests.get()
        return not self._stopping

    def _unavailable(self, reason: str) -> Inventory:
        return Inventory((), (UnavailableKind(self._probe.kind, reason),))

    def _missing(self, reason: str) -> tuple[Sample, ...]:
        """The last samples, with all readings missing for ``reason``."""
        now = clock.now()
        return tuple(
            Sample(now, last.device, {name: Reading.missing(reason, old.unit) for name, old in last.readings.items()})
            for last in self._last
        )


def _unread(device: str) -> Sample:
    return Sample(clock.now(), device, {"utilization": Reading.missing("not read yet", "%")})


def _try(call: Callable[[], _Result], on_error: Callable[[str], _Result]) -> _Result:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 (any error of a probe must become a reason)
        return on_error(f"reading failed: {type(error).__name__}: {error}")
