"""A trial that may break a live run is refused."""

from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.devices.device_types import Device, Reading, Sample
from accel_engine.errors import RunError
from accel_engine.events import DevicesFound, TensorFlowDevice
from accel_engine.measure import trial_memory
from accel_engine.measure.trial_memory import PlacedTrial, check_beside_run, check_trial_memory, devices_of, place_trial
from accel_engine.plan import Plan
from accel_engine.plan.placement import process_count
from accel_engine.run import RunWriter, create
from accel_engine.run.history.history import History, fold
from accel_engine.run.runs.devices_in_use import DevicesInUse

GIB = 1 << 30

ON_GPU = PlacedTrial(devices=("gpu:0",))
TWO = (ON_GPU, ON_GPU)


def on(kind: str) -> list[DevicesFound]:
    return [
        DevicesFound(time=0.0, devices=(TensorFlowDevice(f"{kind.upper()}:0", kind, "", f"{kind}:0"),), strategy="")
    ]


def sample(device: str, at: float = 0.0, **values: float) -> Sample:
    return Sample(at, device, {name: Reading(value * GIB, "B") for name, value in values.items()})


def test_two_processes_like_the_run_must_fit_on_its_gpu() -> None:
    used = sample("gpu:0", allocated_peak=10, memory_used=11, memory_total=80)
    check_beside_run(fold(History(), on("gpu")), [used], TWO, "k3fp")
    later = sample("gpu:0", 1.0, allocated_peak=40, memory_used=41, memory_total=80)
    with pytest.raises(RunError, match=r"does not fit beside run k3fp: it takes about 97.2 GiB .* 39.0 GiB are free"):
        check_beside_run(fold(History(), on("gpu")), [later, used], TWO, "k3fp")


def test_a_gpu_whose_memory_is_unknown_is_left_alone() -> None:
    with pytest.raises(RunError, match="whose free memory is unknown"):
        check_beside_run(fold(History(), on("gpu")), [sample("gpu:0", memory_used=1, memory_total=80)], TWO, "k3fp")


def test_a_trial_beside_live_runs_leaves_them_their_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ACCEL_TUI_HOME", str(tmp_path))
    directory = create(Plan())
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        writer.write_event(on("gpu")[0])
        with pytest.raises(RunError, match="whose free memory is unknown"):
            check_trial_memory((ON_GPU, PlacedTrial(devices=("cpu:0",))))
        with pytest.raises(RunError, match="trains on gpu:0, whose memory would be filled"):
            check_trial_memory((ON_GPU,), grows=True)
        assert check_trial_memory((PlacedTrial(devices=("cpu:0",)),), grows=True) == []
        writer.write_samples([sample("gpu:0", allocated_peak=10, memory_used=11, memory_total=80)])
        assert check_trial_memory(TWO) == [DevicesInUse(directory.name, ("gpu:0",))]
    assert check_trial_memory(TWO) == []


def test_the_devices_of_local_workers_are_those_of_all_of_them() -> None:
    gpus = tuple(Device(f"gpu:{index}", "gpu", "A GPU") for index in range(4))
    plan = Plan(strategy="multi-worker", local_workers=2)
    assert devices_of(plan, (Device("cpu:0", "cpu", "A CPU"), *gpus)) == ("gpu:0", "gpu:1", "gpu:2", "gpu:3")
    assert devices_of(plan.replace(strategy="mirrored"), gpus) == ()  # which takes no workers
    assert process_count(plan) == 2
    assert process_count(plan.replace(strategy="parameter-server")) == 4
    assert process_count(Plan()) == 1


def test_workers_divide_the_gpus_and_share_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = tuple(Device(f"gpu:{index}", "gpu", "A GPU") for index in range(8))
    workers = place_trial(Plan(strategy="multi-worker", local_workers=8), gpus)
    served = place_trial(Plan(strategy="parameter-server", local_workers=8), gpus)
    assert (workers.processes, served.processes) == (8, 10)
    assert workers.devices == served.devices == tuple(gpu.id for gpu in gpus)
    readings = [sample("gpu:0", allocated_peak=10, memory_used=11, memory_total=38), sample("cpu:0", engine_memory=2)]
    monkeypatch.setattr(trial_memory, "available_memory", lambda: 22 * GIB)
    check_beside_run(
        fold(History(), on("gpu")), readings, (ON_GPU, workers), "k3fp"
    )  # two processes on the GPU, nine on the host
    with pytest.raises(RunError, match=r"takes about 26.4 GiB of memory of this machine, and 22.0 GiB are free"):
        check_beside_run(fold(History(), on("gpu")), readings, (ON_GPU, served), "k3fp")
    with pytest.raises(RunError, match=r"takes about 37.8 GiB of memory of gpu:0, and 27.0 GiB are free"):
        check_beside_run(fold(History(), on("gpu")), readings, (ON_GPU, ON_GPU, workers), "k3fp")


def test_gpus_that_no_trial_uses_do_not_matter() -> None:
    check_beside_run(fold(History(), on("gpu")), [], (PlacedTrial(devices=("cpu:0", "gpu:1")),), "k3fp")
    with pytest.raises(RunError, match="whose free memory is unknown"):
        check_beside_run(fold(History(), on("gpu")), [], (PlacedTrial(),), "k3fp")  # on any


def test_a_tpu_belongs_to_the_run() -> None:
    with pytest.raises(RunError, match="holds the TPU"):
        check_beside_run(fold(History(), on("tpu")), [], TWO, "k3fp")


def test_host_memory_must_suffice_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_memory, "available_memory", lambda: 5 * GIB)
    check_beside_run(fold(History(), on("cpu")), [sample("cpu:0", engine_memory=2)], TWO, "k3fp")
    check_beside_run(fold(History(), on("cpu")), [], TWO, "k3fp")
    with pytest.raises(RunError, match="of this machine"):
        check_beside_run(fold(History(), on("cpu")), [sample("cpu:0", engine_memory=3)], TWO, "k3fp")
