"""A trial that may break a live run is refused."""

from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.devices.device_types import Device, Reading, Sample
from accel_engine.errors import RunError
from accel_engine.events import DevicesFound, TensorFlowDevice
from accel_engine.launch import trial_room
from accel_engine.launch.trial_room import check_room, check_room_on, devices_of
from accel_engine.plan import Plan
from accel_engine.plan.placement import process_count
from accel_engine.run import RunWriter, create
from accel_engine.run.devices_in_use import DevicesInUse

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


def test_a_trial_beside_live_runs_leaves_them_their_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ACCEL_TUI_HOME", str(tmp_path))
    directory = create(Plan())
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        writer.write_event(on("gpu")[0])
        with pytest.raises(RunError, match="whose free memory is unknown"):
            check_room_on(("gpu:0", "cpu:0"), 1)
        with pytest.raises(RunError, match="trains on gpu:0, whose memory would be filled"):
            check_room_on(("gpu:0",), 1, grows=True)
        assert check_room_on(("cpu:0",), 1, grows=True) == []
        writer.write_samples([sample("gpu:0", allocated_peak=10, memory_used=11, memory_total=80)])
        assert check_room_on(("gpu:0",), 2) == [DevicesInUse(directory.name, ("gpu:0",))]
    assert check_room_on(("gpu:0",), 2) == []


def test_the_devices_of_local_workers_are_those_of_all_of_them() -> None:
    gpus = tuple(Device(f"gpu:{index}", "gpu", "A GPU") for index in range(4))
    plan = Plan(strategy="multi-worker", local_workers=2)
    assert devices_of(plan, (Device("cpu:0", "cpu", "A CPU"), *gpus)) == ("gpu:0", "gpu:1", "gpu:2", "gpu:3")
    assert devices_of(plan.replace(strategy="mirrored"), gpus) == ()  # which takes no workers
    assert process_count(plan) == 2
    assert process_count(plan.replace(strategy="parameter-server")) == 4
    assert process_count(Plan()) == 1


def test_a_tpu_belongs_to_the_run() -> None:
    with pytest.raises(RunError, match="holds the TPU"):
        check_room(on("tpu"), [], 2, "k3fp")


def test_host_memory_must_suffice_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_room, "available_memory", lambda: 5 * GB)
    check_room(on("cpu"), [sample("cpu:0", engine_memory=2)], 2, "k3fp")
    check_room(on("cpu"), [], 2, "k3fp")
    with pytest.raises(RunError, match="of this machine"):
        check_room(on("cpu"), [sample("cpu:0", engine_memory=3)], 2, "k3fp")
