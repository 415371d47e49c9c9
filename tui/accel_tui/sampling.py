"""The part of the app that detects devices and samples their metrics."""

import threading
from collections.abc import Callable, Mapping

from textual import on, work
from textual.reactive import reactive
from textual.types import CSSPathType

from accel_engine.devices import Sampler
from accel_engine.devices.device_types import Inventory, Sample
from accel_engine.text import printable_fields
from accel_tui import messages
from accel_tui.run_state.device_meter import Meter, record
from accel_tui.terminal.incremental_app import IncrementalApp

MakeSampler = Callable[[Callable[[tuple[Sample, ...]], None]], Sampler]


class SamplingApp(IncrementalApp):
    """Detects and samples the machine's devices in threads.

    Args:
        css_path: CSS files, as Textual takes them.
        make_sampler: Makes a device sampler; called in a thread, with a callback for samples.
    """

    inventory: reactive[Inventory | None] = reactive(None, repaint=False)
    """The machine's devices, once detected."""

    meters: reactive[Mapping[str, Meter]] = reactive(dict, repaint=False)
    """The latest metrics of each device, by its id."""

    def __init__(self, css_path: CSSPathType | None = None, *, make_sampler: MakeSampler = Sampler) -> None:
        super().__init__(css_path)
        self._make_sampler = make_sampler
        self._sampler: Sampler | None = None
        self._is_closing = threading.Event()
        """Set before resources are closed: a thread that finishes later closes its own."""

    def on_unmount(self) -> None:
        """Stop the sampler."""
        self._is_closing.set()
        if self._sampler:
            self._sampler.stop()

    @work(thread=True, exclusive=True, exit_on_error=False, group="sample")
    def sample_devices(self) -> None:
        """Start the sampler and detect the devices."""
        self._sampler = self._make_sampler(self._post_samples)
        self._sampler.start()
        if self._is_closing.is_set():
            self._sampler.stop()
        self.post_message(messages.DevicesDetected(self._sampler.inventory))

    def _post_samples(self, samples: tuple[Sample, ...]) -> None:
        self.post_message(messages.DevicesSampled(samples))

    @work(thread=True, exclusive=True, exit_on_error=False, group="devices")
    def _find_devices(self, sampler: Sampler) -> None:
        self.post_message(messages.DevicesDetected(sampler.inventory))

    @on(messages.DevicesDetected)
    def _update_inventory(self, event: messages.DevicesDetected) -> None:
        self.inventory = printable_fields(event.inventory)

    @on(messages.DevicesSampled)
    def _update_samples(self, event: messages.DevicesSampled) -> None:
        self.meters = record(self.meters, event.samples)
        known = {device.id for device in self.inventory.devices} if self.inventory else set()
        if self._sampler and known and any(sample.device not in known for sample in event.samples):
            # A slow driver has answered only now.
            self._find_devices(self._sampler)
