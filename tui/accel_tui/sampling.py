"""An app that knows what devices there are, and what was last read of them."""

import threading
from collections.abc import Callable, Mapping

from textual import on, work
from textual.reactive import reactive
from textual.types import CSSPathType

from accel_engine.devices import Sampler
from accel_engine.devices.reading import Inventory, Sample
from accel_engine.text import printable_fields
from accel_tui import messages
from accel_tui.run.device_meter import Meter, record
from accel_tui.terminal.incremental_app import IncrementalApp

MakeSampler = Callable[[Callable[[tuple[Sample, ...]], None]], Sampler]


class SamplingApp(IncrementalApp):
    """Has the machine's devices found and read in threads of their own.

    Args:
        css_path: The sheets, as Textual takes them.
        make_sampler: Makes a sampler of devices; called in a thread with what to call with samples.
    """

    inventory: reactive[Inventory | None] = reactive(None, repaint=False)
    """The machine's devices, once they were found."""

    meters: reactive[Mapping[str, Meter]] = reactive(dict, repaint=False)
    """What was last read of each device, by its id."""

    def __init__(self, css_path: CSSPathType | None = None, *, make_sampler: MakeSampler = Sampler) -> None:
        super().__init__(css_path)
        self._make_sampler = make_sampler
        self._sampler: Sampler | None = None
        self._leaving = threading.Event()
        """Set before anything is let go of: what a thread brings later lets go by itself."""

    def on_unmount(self) -> None:
        """Let go of the sampler."""
        self._leaving.set()
        if self._sampler:
            self._sampler.stop()

    @work(thread=True, exclusive=True, exit_on_error=False, group="sample")
    def sample_devices(self) -> None:
        """Begin to read them, and find what there is."""
        self._sampler = self._make_sampler(self._tell)
        self._sampler.start()
        if self._leaving.is_set():
            self._sampler.stop()
        self.post_message(messages.DevicesDetected(self._sampler.inventory))

    def _tell(self, samples: tuple[Sample, ...]) -> None:
        self.post_message(messages.DevicesSampled(samples))

    @work(thread=True, exclusive=True, exit_on_error=False, group="devices")
    def _find_devices(self, sampler: Sampler) -> None:
        self.post_message(messages.DevicesDetected(sampler.inventory))

    @on(messages.DevicesDetected)
    def _take_inventory(self, event: messages.DevicesDetected) -> None:
        self.inventory = printable_fields(event.inventory)

    @on(messages.DevicesSampled)
    def _take_samples(self, event: messages.DevicesSampled) -> None:
        self.meters = record(self.meters, event.samples)
        known = {device.id for device in self.inventory.devices} if self.inventory else set()
        if self._sampler and known and any(sample.device not in known for sample in event.samples):
            # A driver that was slow to answer has done so.
            self._find_devices(self._sampler)
