"""GPUs that only TensorFlow finds, or whose memory the driver does not tell."""

from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf

from accel_engine.devices.device_types import Device, Inventory, UnavailableKind
from accel_engine.errors import PlanError
from accel_engine.events import Warned
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve
from accel_engine.private_names.tensorflow_names import LocalDevice
from accel_engine.training.core import device_visibility
from accel_engine.training.core.device_visibility import configure, place_on_visible

from .. import conftest
from ..conftest import Gym

CPU = Device("cpu:0", "cpu", "a processor", 8 << 30, 2)
WITHOUT_NVML = Inventory((CPU,), (UnavailableKind("gpu", "no NVIDIA driver"),))
PLAN = Plan(model="linear", epochs=1, validation="off")


@pytest.fixture
def orin(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A GPU that TensorFlow sees; the devices that it is told to use."""
    device = SimpleNamespace(name="/physical_device:GPU:0", device_type="GPU")
    listed = tf.config.list_physical_devices
    used: list[Any] = []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [device] if kind == "GPU" else listed(kind))
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda _: {"device_name": "Orin"})
    monkeypatch.setattr(tf.config, "set_visible_devices", lambda devices, _: used.extend(devices))
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", lambda *_: None)
    return used


@pytest.mark.parametrize("visible", [None, "1"])
def test_a_gpu_that_the_drivers_library_does_not_find_trains(
    orin: list[Any], monkeypatch: pytest.MonkeyPatch, visible: str | None
) -> None:
    """CUDA_VISIBLE_DEVICES numbers the machine's GPUs, and TensorFlow finds those only."""
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    inventory = device_visibility.with_tensorflow_gpus(WITHOUT_NVML)

    placed = place_on_visible(resolve(Plan()), inventory)

    assert placed.placement is not None
    assert placed.placement.devices == ("gpu:0",)
    assert configure(placed, inventory) == ("GPU:0",)
    assert [device.name for device in orin] == ["/physical_device:GPU:0"]
    assert inventory.of_kind("gpu")[0].name == "Orin"


def test_a_named_gpu_that_tensorflow_does_not_see_either_is_refused() -> None:
    with pytest.raises(PlanError, match="TensorFlow does not see gpu:0"):
        place_on_visible(resolve(Plan(devices=("gpu:0",))), WITHOUT_NVML)


def test_the_run_says_which_readings_are_missing_and_why(
    orin: list[Any], gym: Gym, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conftest, "MACHINE", WITHOUT_NVML)

    messages = [event.message for event in gym.train(PLAN).all(Warned)]

    assert [
        message
        for message in messages
        if "utilization, memory and power" in message and "NVML, the driver's monitoring library, is missing" in message
    ]
    assert device_visibility.missing_readings(WITHOUT_NVML) == ""


def test_nothing_is_added_where_the_driver_finds_gpus(orin: list[Any]) -> None:
    machine = Inventory((CPU, Device("gpu:0", "gpu", "T4")))
    assert device_visibility.with_tensorflow_gpus(machine) is machine
    assert device_visibility.missing_readings(machine) == ""


@pytest.mark.parametrize(
    ("gpu", "limit", "memory"),
    [
        (Device("gpu:0", "gpu", "Orin", 32 << 30, unified=True), None, 5 << 30),  # what is free of the host's
        (Device("gpu:0", "gpu", "Orin"), None, 7 << 30),  # what TensorFlow may allocate
        (Device("gpu:0", "gpu", "A100", 40 << 30, uuids=("GPU-a", "MIG-b")), None, 7 << 30),  # of an instance
    ],
)
def test_a_gpu_never_counts_as_host_memory(
    monkeypatch: pytest.MonkeyPatch, gpu: Device, limit: float | None, memory: int
) -> None:
    monkeypatch.setattr(device_visibility, "available_memory", lambda: 5 << 30)
    monkeypatch.setattr(device_visibility, "local_devices", lambda: {"GPU:0": LocalDevice("", 7 << 30)})
    inventory = Inventory((CPU, gpu))
    resolved: ResolvedPlan = resolve(Plan(memory_limit=limit)).with_devices(inventory.devices)

    assert device_visibility.device_memory(("GPU:0",), resolved, inventory) == memory


def test_an_unknown_memory_is_no_reason_to_cache_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_visibility, "local_devices", dict)
    inventory = Inventory((CPU, Device("gpu:0", "gpu", "Orin")))
    resolved = resolve(Plan()).with_devices(inventory.devices)

    assert device_visibility.device_memory(("GPU:0",), resolved, inventory) == 0
    assert device_visibility.device_memory(("CPU:0",), resolved, inventory) is None
