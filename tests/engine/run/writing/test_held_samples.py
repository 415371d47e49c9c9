"""Samples that cannot be written yet."""

from accel_engine.devices.device_types import Sample
from accel_engine.run.writing.held_samples import MAX_HELD, HeldSamples


def samples(first: int, count: int) -> list[Sample]:
    return [Sample(float(time), "cpu:0") for time in range(first, first + count)]


def test_the_latest_samples_are_held_and_the_others_counted() -> None:
    held = HeldSamples()
    held.add(samples(0, MAX_HELD))
    assert held.take_dropped() == 0
    held.add(samples(MAX_HELD, 3))
    assert list(held) == samples(3, MAX_HELD)
    held.clear()
    assert not list(held)
    assert [held.take_dropped(), held.take_dropped()] == [3, 0]


def test_nine_devices_are_held_for_an_hour() -> None:
    assert MAX_HELD >= 9 * 3600
