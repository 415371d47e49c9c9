"""How samples are stored: what comes back, and how little of it is written."""

import json
import math

import pytest

from accel_engine.devices.device_types import CountedItem, Reading, Sample
from accel_engine.run.store.sample_packing import (
    FULL_SECONDS,
    MAX_UNWRITTEN,
    OTHERS_SECONDS,
    SamplePacker,
    SampleUnpacker,
    UnwrittenSamples,
)

GIB = 2**30


def gpu(time: float, use: float = 87.0, fan: float | None = 38.0, device: str = "gpu:0") -> Sample:
    fan_reading = Reading.missing("this GPU does not report it", "%") if fan is None else Reading(fan, "%")
    return Sample(time, device, {"utilization": Reading(use, "%"), "power": Reading(312.5, "W"), "fan": fan_reading})


def through(*samples: Sample) -> list[Sample]:
    """Write samples, and read them again."""
    packer, unpacker = SamplePacker(), SampleUnpacker()
    return [unpacker.unpack(sample.time, sample.device, packer.pack(sample)) for sample in samples]


def test_samples_come_back_as_they_were() -> None:
    first = Sample(
        0.0,
        "gpu:0",
        {
            "utilization": Reading(12.5, "%"),
            "memory_used": Reading(61.5 * GIB, "B"),
            "power": Reading.missing("not supported", "W"),
            "processes": Reading.counted((CountedItem("python", "4242", memory=61 * GIB), CountedItem("?", "7"))),
            "throttling": Reading.counted((CountedItem("thermal slowdown"),)),
            "instances": Reading.counted(()),
        },
    )
    assert through(first, Sample(1.0, "gpu:0", first.readings)) == [first, Sample(1.0, "gpu:0", first.readings)]


def test_what_is_as_it_was_is_not_written_again() -> None:
    packer = SamplePacker()
    assert json.loads(packer.pack(gpu(0.0))).keys() == {"utilization", "power", "fan"}
    assert packer.pack(gpu(1.0)) == "[{}]"
    assert packer.pack(gpu(2.0, use=90)) == '[{"utilization":90}]'


def test_what_is_not_essential_is_written_now_and_then() -> None:
    packer = SamplePacker()
    packer.pack(gpu(0.0))
    assert packer.pack(gpu(1.0, fan=40)) == "[{}]"
    assert packer.pack(gpu(OTHERS_SECONDS, fan=41)) == '[{"fan":41}]'


def test_reasons_come_and_go_at_once() -> None:
    samples = [gpu(0.0), gpu(1.0, fan=None), gpu(2.0, fan=40)]
    assert through(*samples) == samples


def test_everything_is_written_again_in_time_for_whoever_begins_to_read_later() -> None:
    packer, unpacker = SamplePacker(), SampleUnpacker()
    packer.pack(gpu(0.0))
    late = gpu(1.0, use=50)
    seen = unpacker.unpack(late.time, late.device, packer.pack(late))
    assert seen.readings == {"utilization": Reading(50, "")}
    whole = gpu(FULL_SECONDS, use=50)
    assert unpacker.unpack(whole.time, whole.device, packer.pack(whole)) == whole


def test_readings_that_appear_and_vanish_do_so() -> None:
    bare = Sample(1.0, "gpu:0", {"utilization": Reading.missing("asleep", "%")})
    samples = [gpu(0.0), bare, gpu(2.0)]
    assert through(*samples) == samples


def test_devices_are_apart() -> None:
    samples = [gpu(0.0), gpu(0.0, use=5, device="gpu:1"), gpu(1.0), gpu(1.0, use=5, device="gpu:1")]
    assert through(*samples) == samples


def test_cores_are_a_digit_each() -> None:
    readings = {f"core_{index}": Reading(100.0 * index / 3, "%") for index in range(4)}
    packer, unpacker = SamplePacker(), SampleUnpacker()
    text = packer.pack(Sample(0.0, "cpu:0", readings))
    assert text == '{"cores":"05af"}'
    seen = unpacker.unpack(0.0, "cpu:0", text).readings
    assert [reading.value for reading in seen.values()] == pytest.approx([0, 100 / 3, 200 / 3, 100])
    unknown = Sample(1.0, "cpu:0", {"core_0": Reading.missing("available from the second reading on", "%")})
    assert through(unknown)[0].readings["core_0"].value is None


def test_noise_is_rounded_away() -> None:
    noisy = {
        "utilization": Reading(43.123456789, "%"),
        "memory_used": Reading(3.0 * GIB + 4096, "B"),
        "disk_read": Reading(1234567.891, "B/s"),
        "load": Reading(8.8466796875),
    }
    (seen,) = through(Sample(0.0, "cpu:0", noisy))
    assert [reading.value for reading in seen.readings.values()] == [43.1, 3 * GIB, 1235000, 8.85]


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_readings_that_are_not_finite_are_missing(value: float) -> None:
    (seen,) = through(Sample(0.0, "gpu:0", {"power": Reading(value, "W"), "fan": Reading(38.0, "%")}))
    assert seen.readings["power"] == Reading.missing("the device reported no finite value", "W")
    assert seen.readings["fan"] == Reading(38.0, "%")


def test_rows_of_before_are_read() -> None:
    old = '{"utilization":[43.25,"%"],"load":[1.5,""],"core_0":[12.5,"%"],"power":["not supported","W"]}'
    readings = SampleUnpacker().unpack(1.0, "cpu:0", old).readings
    assert readings["core_0"] == Reading(12.5, "%")
    assert readings["power"].reason == "not supported"


def test_a_day_of_eight_busy_gpus_stays_small() -> None:
    packer = SamplePacker()
    size = 0
    for second in range(300):
        for index in range(8):
            readings = {
                "utilization": Reading(float(80 + (second * 7 + index) % 20), "%"),
                "memory_used": Reading(61.0 * GIB, "B"),
                "power": Reading(300 + (second * 13 + index) % 97 / 10, "W"),
                "temperature": Reading(60.0 + second // 20 % 3, "C"),
                **{f"slow_{number}": Reading(float(second // 10), "MHz") for number in range(12)},
            }
            size += len(packer.pack(Sample(float(second), f"gpu:{index}", readings)))
    assert size / 300 * 86400 < 60e6


def test_only_readings_that_are_wanted_are_read() -> None:
    packer, unpacker = SamplePacker(), SampleUnpacker(frozenset({"utilization"}))
    for sample in (gpu(0.0, 10.0), gpu(1.0, 20.0), gpu(1.0 + FULL_SECONDS, 30.0)):
        read = unpacker.unpack(sample.time, sample.device, packer.pack(sample))
        assert read.readings == {"utilization": sample.readings["utilization"]}


def samples(first: int, count: int) -> list[Sample]:
    return [Sample(float(time), "cpu:0") for time in range(first, first + count)]


def test_the_latest_samples_are_held_and_the_others_counted() -> None:
    held = UnwrittenSamples()
    held.add(samples(0, MAX_UNWRITTEN))
    assert held.take_dropped() == 0
    held.add(samples(MAX_UNWRITTEN, 3))
    assert list(held) == samples(3, MAX_UNWRITTEN)
    held.clear()
    assert not list(held)
    assert [held.take_dropped(), held.take_dropped()] == [3, 0]


def test_nine_devices_are_held_for_an_hour() -> None:
    assert MAX_UNWRITTEN >= 9 * 3600
