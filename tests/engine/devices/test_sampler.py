"""The sampler, with probes that answer, raise and stall."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from accel_engine import devices
from accel_engine.devices import Device, Inventory, Reading, Sample, Sampler, UnavailableKind, sampler
from accel_engine.devices.sampler import next_due

OFTEN = 0.02
"""Seconds between batches where a test waits for several."""

ONCE = 3600.0
"""Seconds between batches where a test wants no second one."""

WaitUntil = Callable[..., None]


class FakeProbe:
    """A probe of one device that counts its samples."""

    def __init__(self, kind: str = "cpu", unit: str = "%") -> None:
        self.kind = kind
        self.unit = unit
        self.count = 0
        self.closed = threading.Event()

    def inventory(self) -> Inventory:
        return Inventory((Device(f"{self.kind}:0", self.kind, "a device"),))

    def sample(self) -> tuple[Sample, ...]:
        self.count += 1
        return (Sample(time.time(), f"{self.kind}:0", {"utilization": Reading(float(self.count), self.unit)}),)

    def close(self) -> None:
        self.closed.set()


class AbsentProbe(FakeProbe):
    def inventory(self) -> Inventory:
        return Inventory((), (UnavailableKind(self.kind, "none here"),))


class BreakingProbe(FakeProbe):
    """Answers once; then raises whatever it is asked."""

    def sample(self) -> tuple[Sample, ...]:
        if self.count:
            raise ValueError("out of order")
        return super().sample()


class BlindProbe(FakeProbe):
    def inventory(self) -> Inventory:
        raise RuntimeError("cannot look")


class StallingProbe(FakeProbe):
    """Answers nothing while it is held: neither what it is, if so made, nor its readings."""

    def __init__(self, kind: str, *, inventory_too: bool = False) -> None:
        super().__init__(kind)
        self.released = threading.Event()
        self.reached = threading.Event()
        self.inventory_too = inventory_too

    def inventory(self) -> Inventory:
        if self.inventory_too:
            self._hang()
        return super().inventory()

    def sample(self) -> tuple[Sample, ...]:
        self._hang()
        return super().sample()

    def _hang(self) -> None:
        self.reached.set()
        self.released.wait()


class Batches(list[tuple[Sample, ...]]):
    """What a sampler gave."""

    def latest(self, device: str) -> Reading | None:
        """The newest utilization of a device."""
        samples = [sample for batch in self[-1:] for sample in batch if sample.device == device]
        return samples[0].readings["utilization"] if samples else None


@pytest.fixture(autouse=True)
def _all_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the first samples be of all devices, and all end in time, however busy the machine is."""
    monkeypatch.setattr(sampler, "FIRST_SAMPLE_TIMEOUT", 120.0)
    monkeypatch.setattr(sampler, "STOP_TIMEOUT", 120.0)


@pytest.fixture
def batches() -> Batches:
    return Batches()


@pytest.fixture
def make(batches: Batches) -> Iterator[Callable[..., Sampler]]:
    """Make a sampler of these probes; it is stopped, and what it holds released, at the end."""
    made: list[tuple[Sampler, tuple[FakeProbe, ...]]] = []

    def make(*probes: FakeProbe, interval: float = OFTEN) -> Sampler:
        made.append((Sampler(batches.append, interval, probes), probes))
        return made[-1][0]

    yield make
    for one, probes in made:
        one.stop()
        for probe in probes:
            if isinstance(probe, StallingProbe):
                probe.released.set()
            assert probe.closed.wait(120), "the probe was left open"


Make = Callable[..., Sampler]


def test_the_inventory_has_all_kinds_in_the_probes_order(make: Make) -> None:
    inventory = make(FakeProbe("cpu"), FakeProbe("gpu"), AbsentProbe("tpu")).inventory
    assert [device.id for device in inventory.devices] == ["cpu:0", "gpu:0"]
    assert inventory.unavailable == (UnavailableKind("tpu", "none here"),)


def test_devices_are_looked_for_before_sampling_and_without_a_wait(make: Make, batches: Batches) -> None:
    probe = StallingProbe("gpu", inventory_too=True)
    one = make(probe)
    one.find_devices()
    assert probe.reached.wait(120)
    probe.released.set()
    assert [device.id for device in one.inventory.devices] == ["gpu:0"]
    assert not batches


def test_a_batch_has_a_sample_of_every_device(make: Make, batches: Batches, wait_until: WaitUntil) -> None:
    make(FakeProbe("cpu"), FakeProbe("gpu"), AbsentProbe("tpu"), interval=ONCE).start()
    wait_until(lambda: batches, "the first batch")
    assert [sample.device for sample in batches[0]] == ["cpu:0", "gpu:0"]
    assert [sample.readings["utilization"].value for sample in batches[0]] == [1, 1]


def test_batches_keep_coming(make: Make, batches: Batches, wait_until: WaitUntil) -> None:
    make(FakeProbe()).start()
    wait_until(lambda: len(batches) >= 5, "five batches")


def test_batches_come_in_one_thread_of_their_own(wait_until: WaitUntil) -> None:
    threads = set()
    one = Sampler(lambda _: threads.add(threading.current_thread()), OFTEN, [FakeProbe("cpu"), FakeProbe("gpu")])
    one.start()
    wait_until(lambda: threads)
    one.stop()
    (thread,) = threads
    assert thread is not threading.current_thread()
    assert thread.daemon


def test_a_probe_that_raises_costs_only_itself(make: Make, batches: Batches, wait_until: WaitUntil) -> None:
    broken, fine = BreakingProbe("gpu", unit="W"), FakeProbe("cpu")
    make(fine, broken).start()
    wait_until(lambda: (reading := batches.latest("gpu:0")) and "out of order" in reading.reason, "the reason")
    reading = batches.latest("gpu:0")
    assert reading is not None
    assert (reading.value, reading.unit) == (None, "W")
    seen = fine.count
    wait_until(lambda: fine.count > seen + 3, "the other probe to go on")


def test_a_probe_that_cannot_look_is_an_absence(make: Make) -> None:
    inventory = make(FakeProbe("cpu"), BlindProbe("gpu")).inventory
    assert [device.id for device in inventory.devices] == ["cpu:0"]
    (absence,) = inventory.unavailable
    assert absence.kind == "gpu"
    assert "cannot look" in absence.reason


def test_a_probe_that_stalls_costs_only_itself(make: Make, batches: Batches, wait_until: WaitUntil) -> None:
    stalled, fine = StallingProbe("gpu"), FakeProbe("cpu")
    make(fine, stalled).start()
    wait_until(lambda: (reading := batches.latest("gpu:0")) and "no response" in reading.reason, "the reason")
    seen = fine.count
    wait_until(lambda: fine.count > seen + 3, "the other probe to go on")
    assert stalled.count == 0
    stalled.released.set()
    wait_until(lambda: (reading := batches.latest("gpu:0")) and reading.value, "the stalled probe to be back")


def test_a_driver_that_hangs_while_looked_for_is_absent_until_it_answers(
    make: Make, batches: Batches, wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "INVENTORY_TIMEOUT", 0.0)
    monkeypatch.setattr(sampler, "FIRST_SAMPLE_TIMEOUT", 0.0)
    stalled = StallingProbe("gpu", inventory_too=True)
    one = make(FakeProbe("cpu"), stalled)
    one.start()
    wait_until(lambda: batches.latest("cpu:0"), "the other probe's samples")
    assert batches.latest("gpu:0") is None
    assert one.inventory == Inventory(
        (Device("cpu:0", "cpu", "a device"),), (UnavailableKind("gpu", "its driver does not respond"),)
    )
    stalled.released.set()
    wait_until(lambda: batches.latest("gpu:0"), "the driver that woke up")
    assert [device.id for device in one.inventory.devices] == ["cpu:0", "gpu:0"]


def test_stop_does_not_wait_for_the_next_beat(batches: Batches, wait_until: WaitUntil) -> None:
    probe = FakeProbe()
    one = Sampler(batches.append, ONCE, [probe])
    one.start()
    wait_until(lambda: batches)
    one.stop()
    assert not one._thread.is_alive()
    assert probe.closed.wait(120)


def test_stop_does_not_wait_for_a_probe_that_stalls(batches: Batches) -> None:
    stalled = StallingProbe("gpu")
    one = Sampler(batches.append, ONCE, [stalled])
    one.start()
    assert stalled.reached.wait(120)
    one.stop()
    assert not one._thread.is_alive()
    assert batches == []
    stalled.released.set()
    assert stalled.closed.wait(120)


def test_no_batch_comes_after_stop(batches: Batches, wait_until: WaitUntil) -> None:
    one = Sampler(batches.append, OFTEN, [FakeProbe()])
    one.start()
    wait_until(lambda: batches)
    one.stop()
    assert not one._thread.is_alive()


def test_a_sampler_may_be_stopped_by_what_it_calls(wait_until: WaitUntil) -> None:
    stopped = threading.Event()

    def stop(_: tuple[Sample, ...]) -> None:
        one.stop()
        stopped.set()

    one = Sampler(stop, OFTEN, [FakeProbe()])
    one.start()
    assert stopped.wait(120)
    wait_until(lambda: not one._thread.is_alive(), "the sampler to end")


def test_a_sampler_that_was_never_started_may_be_stopped() -> None:
    probe = FakeProbe()
    one = Sampler(lambda _: None, OFTEN, [probe])
    assert one.inventory.devices
    one.stop()
    assert probe.closed.wait(120)


def test_beats_neither_drift_nor_pile_up() -> None:
    assert next_due(10.0, 10.4, 1.0) == 11.0
    assert next_due(10.0, 12.4, 1.0) == 13.0
    due = 0.0
    for beat in range(1000):
        due = next_due(due, due + 0.01 + beat % 7 / 100, 0.1)
    assert due == pytest.approx(100.0)


def test_this_machine_has_a_cpu_and_a_word_for_every_kind_that_it_lacks() -> None:
    inventory = devices.detect()
    assert inventory.devices[0].id == "cpu:0"
    kinds = {device.kind for device in inventory.devices} | {absence.kind for absence in inventory.unavailable}
    assert kinds == {"cpu", "gpu", "tpu"}
    assert all(absence.reason for absence in inventory.unavailable)


def test_this_machine_is_sampled(batches: Batches, wait_until: WaitUntil) -> None:
    one = Sampler(batches.append, interval=OFTEN)
    one.start()
    wait_until(lambda: (reading := batches.latest("cpu:0")) and reading.value is not None, "the CPU's use")
    one.stop()
