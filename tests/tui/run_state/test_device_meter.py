from accel_engine.devices.device_types import Reading, Sample
from accel_tui.run_state.device_meter import MAX_UTILIZATIONS, Meter, record_device


def at(time: float, utilization: float | None, device: str = "cpu:0") -> Sample:
    reading = Reading.missing("asleep", "%") if utilization is None else Reading(utilization, "%")
    return Sample(time, device, {"utilization": reading})


def test_a_meter_keeps_the_latest_sample_and_the_past() -> None:
    before: dict[str, Meter] = {}
    meters = record_device(record_device(before, [at(1, 10.0), at(1, 5.0, "gpu:0")]), [at(2, None)])
    assert before == {}
    assert meters["cpu:0"].utilizations == (10.0, None)
    assert meters["cpu:0"].reading("utilization").reason == "asleep"
    assert meters["gpu:0"].utilizations == (5.0,)
    assert meters["gpu:0"].reading("power").value is None


def test_the_past_is_bounded() -> None:
    meters: dict[str, Meter] = {}
    for second in range(MAX_UTILIZATIONS + 5):
        meters = record_device(meters, [at(second, float(second))])
    assert len(meters["cpu:0"].utilizations) == MAX_UTILIZATIONS
    assert meters["cpu:0"].utilizations[-1] == MAX_UTILIZATIONS + 4
