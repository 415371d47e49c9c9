"""Which GPU an evaluation, a prediction or an export gets, against the stand-in for NVIDIA's library."""

import os
import socket
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from accel_engine import run
from accel_engine.devices import installation
from accel_engine.devices.installation import Installation
from accel_engine.devices.nvidia_gpu import NvidiaProbe
from accel_engine.errors import UsageError
from accel_engine.events import DevicesFound, RunStarted, TensorFlowDevice
from accel_engine.plan import Plan
from accel_engine.requests.predict import PredictionRequest
from accel_engine.requests.protocol.request import ON_THE_CPU, ComputeDevice
from accel_engine.run import RunWriter
from accel_engine.run.diagnostics import Layer, LayerTable
from accel_engine.run_queue import request_device
from accel_engine.run_queue.free_devices import MachineReader, is_reserved
from accel_engine.run_queue.queue_database import open_queue
from accel_engine.run_queue.request_device import OTHER_MEMORY, memory_needed, placed
from accel_engine.run_queue.waiter import Waiter
from engine.run_queue.conftest import Make
from example_events import model_built
from nvml.stand_in import Driver

LOST = 15
GIB = 1 << 30
NAME = "NVIDIA A100-SXM4-80GB"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setattr(request_device, "POLL_SECONDS", 0)


def reader() -> MachineReader:
    """Idle GPUs have stayed so at the second reading."""
    times = iter(range(0, 10000, 10))
    return MachineReader([NvidiaProbe()], lambda: float(next(times)))


def request(model: Path, wanted: str = "auto") -> PredictionRequest:
    return PredictionRequest(model, wanted_device=wanted)


def device_for(model: Path, wanted: str = "auto") -> ComputeDevice:
    with placed(request(model, wanted), reader) as found:
        return found.device


def train_on(name: str, *devices: str) -> RunWriter:
    """A live run; it is still starting without devices."""
    writer = RunWriter(run.create(Plan(model="mlp", name=name)))
    writer.begin(
        RunStarted(
            time=time.time(), run=name, name="", plan={}, first_step=0, pid=1, host=socket.gethostname(), versions={}
        )
    )
    if devices:
        found = tuple(TensorFlowDevice(f"GPU:{index}", "gpu", "", each) for index, each in enumerate(devices))
        writer.write_event(DevicesFound(time=time.time(), devices=found, strategy=""))
    return writer


def test_auto_takes_the_first_idle_gpu_by_its_uuid(driver: Driver, tmp_path: Path) -> None:
    found = device_for(tmp_path / "model.keras")
    assert found == ComputeDevice("gpu:1", NAME, found.choice)
    assert found.text == f"on gpu:1 ({NAME})"
    assert found.environment == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "GPU-00000002",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "TPU_LOAD_LIBRARY": "0",
    }


def test_requests_at_once_and_the_queue_never_take_the_same(
    driver: Driver, tmp_path: Path, add: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("queued")
    model = tmp_path / "model.keras"
    with placed(request(model), reader) as first, placed(request(model), reader) as second:
        assert (first.device.id, second.device.id) == ("gpu:1", "gpu:2")
        third = device_for(model)
        assert third.id == "cpu"
        assert "gpu:2 is used by an evaluation, a prediction or an export" in third.why
        with pytest.raises(UsageError, match="gpu:1 is used by another evaluation, prediction or export"):
            device_for(model, "gpu:1")
        with open_queue() as database, reader() as machine, closing(Waiter(database, machine)) as waiter:
            waiter.start_runs()
            waiter.start_runs()
            assert [entry.state for entry in database.entries()] == ["waiting"]
            monkeypatch.setattr(machine, "in_use", lambda: {"gpu:0": "is 50% busy", "gpu:1": "", "gpu:2": ""})
            waiter.start_runs()  # as if the GPUs had been taken after they were read
            assert [entry.state for entry in database.entries()] == ["waiting"]
    assert not is_reserved("gpu:1")
    assert device_for(model).id == "gpu:1"


def test_a_run_that_the_queue_starts_has_its_gpu_before_its_engine_says_so(
    driver: Driver, tmp_path: Path, add: Make
) -> None:
    name = add("queued")
    with open_queue() as database:
        entry = database.find(name)
        assert entry
        database.put(replace(entry, state="started", devices=("gpu:1",)))
    assert device_for(tmp_path / "model.keras").id == "gpu:2"


def test_auto_stays_away_from_live_runs_but_a_user_may_not(driver: Driver, tmp_path: Path) -> None:
    model = tmp_path / "model.keras"
    with closing(train_on("one", "gpu:1")) as writer:
        assert device_for(model).id == "gpu:2"
        chosen = device_for(model, "gpu:1")
        assert (chosen.id, chosen.is_required) == ("gpu:1", True)
        with closing(train_on("two")):  # it may find any of them
            found = device_for(model)
        assert found.environment == ON_THE_CPU
        assert "gpu:2 is used by run" in found.text
        assert f"gpu:1 is used by run {writer.directory.name}" in found.text


def test_auto_stays_away_from_other_programs(driver: Driver, tmp_path: Path) -> None:
    for gpu in (1, 2):
        driver.measure("pid", gpu, os.getpid())
    found = device_for(tmp_path / "model.keras")
    assert found.id == "cpu"
    assert "gpu:0 has 61.5 GiB of 80.0 GiB in use" in found.why
    assert "gpu:1 is used by another program" in found.why


def test_a_model_larger_than_the_free_memory_is_left_to_the_cpu(driver: Driver, tmp_path: Path) -> None:
    directory = run.create(Plan(model="mlp", batch_size=512))
    with closing(RunWriter(directory)) as writer:
        writer.write_event(model_built(parameters=5 << 30))
        writer.write_diagnostics(LayerTable((Layer("a", "Dense", 0, (None, 1 << 20), 0, 0, None),)), 0)
    assert memory_needed([directory]) == OTHER_MEMORY + 4 * (2 * (5 << 30) + 512 * (1 << 20))
    assert device_for(directory).id == "gpu:1"
    for gpu in (1, 2):
        driver.measure("memory", gpu, 45.0)
    driver.measure("memory", 0, 0.0)
    found = device_for(directory, "auto")
    assert "gpu:1 has 45.0 GiB of 80.0 GiB in use" in found.why
    with pytest.raises(UsageError, match=r"gpu:1 has 35\.0 GiB of memory free, and up to 44\.0 GiB are needed"):
        device_for(directory, "gpu:1")


def test_a_lost_gpu_is_refused_and_passed_over(driver: Driver, tmp_path: Path) -> None:
    driver.refuse("*", 1, LOST)
    assert device_for(tmp_path / "model.keras").id == "gpu:2"
    with pytest.raises(UsageError, match="gpu:1 cannot be used, lost: it no longer responds"):
        device_for(tmp_path / "model.keras", "gpu:1")


def test_of_a_split_gpu_the_first_instance_counts(driver: Driver, tmp_path: Path) -> None:
    driver.measure("instances", 1, 2)
    found = device_for(tmp_path / "model.keras", "gpu:1")
    assert found.choice["CUDA_VISIBLE_DEVICES"].startswith("MIG-")
    file = tmp_path / "large.keras"
    file.touch()
    os.truncate(file, 18 * GIB)  # the instance has 40 GiB, of which 3 are in use
    with pytest.raises(UsageError, match=r"gpu:1 has 37\.0 GiB of memory free, and up to 38\.0 GiB are needed"):
        device_for(file, "gpu:1")


def test_the_instance_that_the_user_chose_is_used(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.measure("instances", 1, 2)
    with reader() as machine:
        second = machine.devices[1].uuids[2]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", second)
    assert device_for(tmp_path / "model.keras", "gpu:1").choice["CUDA_VISIBLE_DEVICES"] == second


def test_numbers_in_the_users_variable_pass_over_a_lost_gpu(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.refuse("*", 0, LOST)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert device_for(tmp_path / "model.keras").choice["CUDA_VISIBLE_DEVICES"] == "GPU-00000003"


@pytest.fixture
def without_nvml(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without NVIDIA's library; the file that its GPU would have."""
    machine = MachineReader([])
    machine.why_no_gpu = "no NVIDIA driver"
    monkeypatch.setitem(globals(), "reader", lambda: machine)
    monkeypatch.setattr(request_device, "find_installation", lambda: Installation("tensorflow", "2.21.0"))
    monkeypatch.setattr(installation, "GPU_FILES", (tmp_path / "nvidiactl",))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path / "nvidiactl"


def test_a_gpu_that_nvml_does_not_list_is_used_by_name_only(
    without_nvml: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model.keras"
    with pytest.raises(UsageError, match=r"no device gpu:0: this machine has cpu \(no NVIDIA driver\)"):
        device_for(model, "gpu:0")
    assert device_for(model) == ComputeDevice()
    without_nvml.touch()
    first = device_for(model, "gpu:0")
    assert (first.id, first.text, first.is_required) == ("gpu:0", "on gpu:0", True)
    assert first.choice == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0"}
    found = device_for(model)
    assert (found.id, found.is_notable) == ("cpu", True)
    assert "NVML, the driver's monitoring library, is missing; choose gpu:0 to try one" in found.why
    with placed(request(model, "gpu:0"), reader), pytest.raises(UsageError, match="gpu:0 is used by another"):
        device_for(model, "gpu:0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, 1")
    assert device_for(model, "gpu:1").choice == {"CUDA_VISIBLE_DEVICES": "1"}
    with pytest.raises(UsageError, match="gpu:2 is hidden by CUDA_VISIBLE_DEVICES=3, 1"):
        device_for(model, "gpu:2")
    monkeypatch.setattr(request_device, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))
    with pytest.raises(UsageError, match="gpu:0: tensorflow-cpu uses no GPU"):
        device_for(model, "gpu:0")


def test_what_hides_gpus_hides_them_from_requests_too(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model.keras"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    assert device_for(model).choice["CUDA_VISIBLE_DEVICES"] == "GPU-00000003"
    with pytest.raises(UsageError, match="gpu:1 is hidden by CUDA_VISIBLE_DEVICES=2"):
        device_for(model, "gpu:1")
    with pytest.raises(UsageError, match="no device gpu:7: this machine has cpu, gpu:0, gpu:1, gpu:2"):
        device_for(model, "gpu:7")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(request_device, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))
    assert device_for(model) == ComputeDevice()
    for processor, cure in (("x86_64", r"run pip install 'accel-tui\[cuda\]'"), ("aarch64", "use NVIDIA's container")):
        monkeypatch.setattr("platform.machine", lambda processor=processor: processor)
        with pytest.raises(UsageError, match=f"gpu:1: tensorflow-cpu uses no GPU; .*{cure}"):
            device_for(model, "gpu:1")


def test_without_gpus_it_is_the_cpu_at_once(tmp_path: Path) -> None:
    def nothing() -> MachineReader:
        return MachineReader([])

    with placed(request(tmp_path), nothing) as found:
        assert found.device == ComputeDevice()
        assert found.environment == ON_THE_CPU
        assert not found.device.is_notable
    with (
        pytest.raises(UsageError, match="no device gpu:0: this machine has cpu"),
        placed(request(tmp_path, "gpu:0"), nothing),
    ):
        pass
