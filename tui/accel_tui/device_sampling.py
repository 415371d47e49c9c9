"""Detects the machine's devices and samples their metrics."""

import threading
from collections.abc import Callable

from textual.app import App

from accel_engine.devices import Sampler
from accel_engine.devices.device_types import Inventory, Sample

MakeSampler = Callable[[Callable[[tuple[Sample, ...]], None]], Sampler]
"""Makes a device sampler; called in a thread, with a callback for samples."""


class DeviceSampling:
    """Runs a sampler in a thread.

    Args:
        app: Runs the thread; both callbacks are called in its message loop.
        make_sampler: Makes the sampler.
        on_inventory: Called with the devices once they are detected, and again if a slow driver finds more.
        on_samples: Called with each batch of samples.
    """

    def __init__(
        self,
        app: App[None],
        make_sampler: MakeSampler,
        on_inventory: Callable[[Inventory], None],
        on_samples: Callable[[tuple[Sample, ...]], None],
    ) -> None:
        self._app = app
        self._make_sampler = make_sampler
        self._on_inventory = on_inventory
        self._on_samples = on_samples
        self._sampler: Sampler | None = None
        self._known: frozenset[str] = frozenset()
        self._is_closing = threading.Event()  # a sampler that is made later is stopped by its own thread

    def start(self) -> None:
        """Start the sampler, and detect the devices."""
        self._app.run_worker(self._run, thread=True, exit_on_error=False, group="sample")

    def stop(self) -> None:
        """Stop the sampler."""
        self._is_closing.set()
        if self._sampler:
            self._sampler.stop()

    def _run(self) -> None:
        self._sampler = sampler = self._make_sampler(self._post_samples)
        sampler.start()
        if self._is_closing.is_set():
            sampler.stop()
        self._post_inventory(sampler)

    def _post_inventory(self, sampler: Sampler) -> None:
        inventory = sampler.inventory
        self._known = frozenset(device.id for device in inventory.devices)
        self._app.call_later(self._on_inventory, inventory)

    def _post_samples(self, samples: tuple[Sample, ...]) -> None:
        self._app.call_later(self._on_samples, samples)
        if self._sampler and self._known and any(sample.device not in self._known for sample in samples):
            self._post_inventory(self._sampler)  # a slow driver has answered only now
