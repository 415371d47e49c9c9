"""A trial that may break a live run is refused."""

import pytest

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.errors import RunError
from accel_engine.events import DevicesFound, TensorFlowDevice
from accel_engine.launch import trial_room
from accel_engine.launch.trial_room import check_room

GB = 10**9


def on(kind: str) -> list[DevicesFound]:
    return [
        DevicesFound(time=0.0, devices=(TensorFlowDevice(f"{kind.upper()}:0", kind, "", f"{kind}:0"),), strategy="")
    ]


def sample(device: str, at: float = 0.0, **values: float) -> Sample:
    return Sample(at, device, {name: Reading(value * GB, "B") for name, value in values.items()})


def test_two_processes_like_the_run_must_fit_on_its_gpu() -> None:
    used = sample("gpu:0", allocated_peak=10, memory_used=11, memory_total=80)
    check_room(on("gpu"), [used], 2, "k3fp")
    later = sample("gpu:0", 1.0, allocated_peak=40, memory_used=41, memory_total=80)
    with pytest.raises(RunError, match=r"does not fit beside run k3fp: it takes about 89.3 GB .* 39.0 GB are free"):
        check_room(on("gpu"), [later, used], 2, "k3fp")


def test_a_gpu_whose_memory_is_unknown_is_left_alone() -> None:
    with pytest.raises(RunError, match="whose free memory is unknown"):
        check_room(on("gpu"), [sample("gpu:0", memory_used=1, memory_total=80)], 2, "k3fp")


def test_a_tpu_belongs_to_the_run() -> None:
    with pytest.raises(RunError, match="holds the TPU"):
        check_room(on("tpu"), [], 2, "k3fp")


def test_host_memory_must_suffice_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_room, "available_memory", lambda: 5 * GB)
    check_room(on("cpu"), [sample("cpu:0", engine_memory=2)], 2, "k3fp")
    check_room(on("cpu"), [], 2, "k3fp")
    with pytest.raises(RunError, match="of this machine"):
        check_room(on("cpu"), [sample("cpu:0", engine_memory=3)], 2, "k3fp")
