"""Detects the machine's devices and samples their metrics."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from textual.app import App
from textual.message import Message

from accel_engine.devices import Sampler
from accel_engine.devices.device_types import Inventory, Sample

MakeSampler = Callable[[Callable[[tuple[Sample, ...]], None]], Sampler]
"""Makes a device sampler; called in a thread, with a callback for samples."""


class DeviceSampling:
    """Runs a sampler in a thread.

    Args:
        app: Runs the thread, and gets the messages.
        make_sampler: Makes the sampler.
    """

    @dataclass
    class Detected(Message):
        """The devices are detected; again if a slow driver finds more."""

        inventory: Inventory

    @dataclass
    class Sampled(Message):
        """There are samples."""

        samples: tuple[Sample, ...]

    def __init__(self, app: App[None], make_sampler: MakeSampler) -> None:
        self._app = app
        self._make_sampler = make_sampler
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
        self._app.post_message(self.Detected(inventory))

    def _post_samples(self, samples: tuple[Sample, ...]) -> None:
        self._app.post_message(self.Sampled(samples))
        if self._sampler and self._known and any(sample.device not in self._known for sample in samples):
            self._post_inventory(self._sampler)  # a slow driver has answered only now
