"""Configuring GPUs before TensorFlow's first use, with a substitute for its functions."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf

from accel_engine.devices.device_types import Device, Inventory, Reading, Sample
from accel_engine.errors import PlanError, UsageError
from accel_engine.events import TensorFlowDevice
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.training.core import device_visibility
from accel_engine.training.core.device_visibility import VARIABLE, threads_in_use, threads_of_user
from accel_engine.training.memory_meters import AllocatedMemory

configure, place = (
    device_visibility.configure,
    device_visibility.place_on_visible,
)  # as it is: other tests here take devices as they are

GIB = 1 << 30
INVENTORY = Inventory(
    (
        Device("cpu:0", "cpu", "A processor"),
        Device("gpu:0", "gpu", "A small card", memory=8 * GIB, uuids=("GPU-aaaa",)),
        Device("gpu:1", "gpu", "A card", memory=24 * GIB, uuids=("GPU-bbbb",)),
        Device("gpu:2", "gpu", "A card", memory=24 * GIB, uuids=("GPU-cccc",)),
    )
)


class Told:
    """Records how TensorFlow's devices are configured."""

    def __init__(self, gpus: int) -> None:
        self.physical = [f"physical GPU {index}" for index in range(gpus)]
        self.visible: list[str] = []
        self.growth: dict[str, bool] = {}
        self.limits: dict[str, list[float]] = {}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    told = Told(3)
    config = tf.config
    monkeypatch.setattr(config, "list_physical_devices", lambda kind: told.physical if kind == "GPU" else [])
    monkeypatch.setattr(config, "set_visible_devices", lambda devices, kind: told.visible.extend(devices))
    monkeypatch.setattr(config.experimental, "set_memory_growth", told.growth.__setitem__)
    monkeypatch.setattr(
        config,
        "set_logical_device_configuration",
        lambda device, configured: told.limits.update({device: [each.memory_limit for each in configured]}),
    )
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return told


def test_the_plans_gpus_are_visible_with_memory_growth(told: Told) -> None:
    names = configure(place(resolve(Plan(strategy="mirrored", devices=("gpu:1", "gpu:2"))), INVENTORY), INVENTORY)
    assert names == ("GPU:0", "GPU:1")
    assert told.visible == ["physical GPU 1", "physical GPU 2"]
    assert told.growth == {"physical GPU 1": True, "physical GPU 2": True}
    assert not told.limits


def test_xla_is_refused_where_it_would_end_the_process(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_visibility, "are_newer_than_build", lambda: True)
    plan = Plan(devices=("gpu:1",), xla="on")
    with pytest.raises(PlanError, match="ends the process on a GPU that is newer than this build"):
        configure(place(resolve(plan), INVENTORY), INVENTORY)
    forced = plan.replace(force="on")
    assert configure(place(resolve(forced), INVENTORY), INVENTORY) == ("GPU:0",)
    assert configure(place(resolve(plan.replace(xla="auto")), INVENTORY), INVENTORY) == ("GPU:0",)


def test_a_memory_limit_replaces_memory_growth(told: Told) -> None:
    configure(place(resolve(Plan(devices=("gpu:1",), memory_limit=4)), INVENTORY), INVENTORY)
    assert told.limits == {"physical GPU 1": [4096]}
    assert not told.growth


@pytest.mark.parametrize("threads", [None, 3])
def test_threads_are_set_only_if_they_are_given(
    told: Told, monkeypatch: pytest.MonkeyPatch, threads: int | None
) -> None:
    given: list[int] = []
    monkeypatch.setattr(tf.config.threading, "set_intra_op_parallelism_threads", given.append)
    configure(place(resolve(Plan(devices=("gpu:1",))), INVENTORY), INVENTORY, threads)
    assert given == ([] if threads is None else [threads])


@pytest.mark.parametrize("shown", ["2,1", "GPU-cccc,GPU-bbbb"])
def test_gpus_are_matched_under_cuda_visible_devices(told: Told, monkeypatch: pytest.MonkeyPatch, shown: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    told.physical = ["the first that is shown", "the second"]
    configure(place(resolve(Plan(devices=("gpu:1",))), INVENTORY), INVENTORY)
    assert told.visible == ["the second"]


@pytest.mark.parametrize("lost_is_numbered", [False, True])
def test_a_gpu_that_is_lost_moves_no_other(told: Told, lost_is_numbered: bool) -> None:
    """CUDA does not number it in new processes; where it does, TensorFlow lists as many as the driver."""
    lost = replace(INVENTORY.devices[1], problem="lost")
    inventory = replace(INVENTORY, devices=(INVENTORY.devices[0], lost, *INVENTORY.devices[2:]))
    told.physical = [*(["the lost one"] if lost_is_numbered else []), "gpu:1", "gpu:2"]
    configure(place(resolve(Plan(devices=("gpu:2",))), inventory), inventory)
    assert told.visible == ["gpu:2"]


def test_numbers_in_an_order_that_only_cuda_knows_are_refused(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    told.physical = told.physical[:2]
    with pytest.raises(UsageError, match="counts from the fastest GPU"):
        place(resolve(Plan()), INVENTORY)
    on_cpu = place(resolve(Plan(devices=("cpu:0",))), INVENTORY)
    assert configure(on_cpu, INVENTORY) == ("CPU:0",)


def test_a_hidden_gpu_is_rejected_by_name(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-cccc")
    told.physical = told.physical[:1]
    with pytest.raises(PlanError, match="TensorFlow does not see gpu:0"):
        configure(place(resolve(Plan(devices=("gpu:0",))), INVENTORY), INVENTORY)


def test_local_workers_divide_the_gpus(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = ClusterSpec(("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"), index=1)
    monkeypatch.setenv("TF_CONFIG", cluster.to_tf_config())
    monkeypatch.setenv("ACCEL_TUI_LOCAL_WORKERS", "1")
    assert configure(place(resolve(Plan(strategy="multi-worker", local_workers=3)), INVENTORY), INVENTORY) == ("GPU:0",)
    assert told.visible == ["physical GPU 1"]


@pytest.mark.parametrize(
    ("role", "index", "names", "visible"),
    [
        ("chief", 0, ("CPU:0",), []),
        ("ps", 0, ("CPU:0",), []),
        ("worker", 0, ("GPU:0",), ["physical GPU 0"]),
        ("worker", 2, ("GPU:0",), ["physical GPU 2"]),
    ],
)
def test_only_a_coordinators_workers_get_gpus(
    told: Told, monkeypatch: pytest.MonkeyPatch, role: str, index: int, names: tuple[str, ...], visible: list[str]
) -> None:
    workers = tuple(f"127.0.0.1:{port}" for port in (1, 2, 3))
    cluster = ClusterSpec(workers, ("127.0.0.1:4",), role, index, coordinator="127.0.0.1:5")
    monkeypatch.setenv("TF_CONFIG", cluster.to_tf_config())
    monkeypatch.setenv("ACCEL_TUI_LOCAL_WORKERS", "1")
    plan = Plan(strategy="parameter-server", local_workers=3)

    assert configure(place(resolve(plan), INVENTORY), INVENTORY) == names
    assert told.visible == visible
    assert device_visibility.worker_hardware_names(resolve(plan), INVENTORY) == ("A small card",)
    assert device_visibility.worker_hardware_names(resolve(plan.replace(local_workers=0)), INVENTORY) == ()


@pytest.mark.parametrize(
    ("kinds", "names"),
    [(("CPU",), ["worker 0 CPU:0", "worker 1 CPU:0"]), (("CPU", "GPU"), ["worker 0 GPU:0", "worker 1 GPU:0"])],
)
def test_a_coordinator_describes_its_workers_devices(
    monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...], names: list[str]
) -> None:
    places = ["/job:chief/replica:0/task:0", "/job:ps/replica:0/task:0"]
    there = [f"{place}/device:CPU:0" for place in places]
    there += [f"/job:worker/replica:0/task:{task}/device:{kind}:0" for task in (0, 1) for kind in kinds]
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda: [SimpleNamespace(name=name) for name in there])

    assert [device.name for device in device_visibility.describe_worker_devices()] == names
    assert {device.kind for device in device_visibility.describe_worker_devices()} == {kinds[-1].lower()}


@pytest.mark.parametrize(
    ("plan", "memory"),
    [
        (Plan(devices=("gpu:1",)), 24 * GIB),
        (Plan(strategy="mirrored"), 8 * GIB),
        (Plan(devices=("gpu:1",), memory_limit=6), 6 * GIB),
    ],
)
def test_memory_is_that_of_the_smallest_device(told: Told, plan: Plan, memory: int) -> None:
    assert device_visibility.device_memory(("GPU:0",), place(resolve(plan), INVENTORY), INVENTORY) == memory


def test_memory_that_others_used_does_not_count(told: Told) -> None:
    small, *others = INVENTORY.of_kind("gpu")
    used = Inventory((small, *(replace(gpu, free=5 * GIB) for gpu in others)))
    resolved = place(resolve(Plan(strategy="mirrored")), used)

    assert device_visibility.device_memory(("GPU:0",), resolved, used) == 5 * GIB


def test_cpus_have_no_device_memory(told: Told) -> None:
    assert device_visibility.device_memory(("CPU:0",), place(resolve(Plan()), INVENTORY), INVENTORY) is None


def test_allocated_memory_is_added_to_the_driver_s_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"TPU:0": {"current": 100, "peak": 300}, "TPU:1": {"current": 20, "peak": 50}}
    monkeypatch.setattr(tf.config.experimental, "get_memory_info", known.__getitem__)
    allocated_memory = AllocatedMemory(
        [
            TensorFlowDevice("TPU:0", "tpu", device="tpu:0"),
            TensorFlowDevice("TPU:1", "tpu", device="tpu:0"),
            TensorFlowDevice("CPU:0", "cpu", device="cpu:0"),
        ]
    )
    driver = {"memory_used": Reading(1000.0, "B")}
    host = Sample(1.0, "cpu:0", {"load": Reading(0.5)})
    chip, same = allocated_memory.add_to((Sample(1.0, "tpu:0", driver), host))
    assert chip.readings == {**driver, "allocated": Reading(120.0, "B"), "allocated_peak": Reading(350.0, "B")}
    assert same is host


def test_a_missing_allocator_reading_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Any:
        raise ValueError(f"Allocator stats not available for device '{name}'\nmore")

    monkeypatch.setattr(tf.config.experimental, "get_memory_info", refuse)
    (sample,) = AllocatedMemory([TensorFlowDevice("GPU:0", "gpu", device="gpu:0")]).add_to((Sample(1.0, "gpu:0"),))
    assert sample.readings["allocated"] == Reading.missing(
        "TensorFlow does not report it: Allocator stats not available for device 'GPU:0'", "B"
    )


@pytest.mark.parametrize(("text", "count"), [("", None), ("3", 3), ("0", 2), ("many", 2)])
def test_the_variable_is_read_as_tensorflow_does(monkeypatch: pytest.MonkeyPatch, text: str, count: int | None) -> None:
    monkeypatch.setattr(device_visibility, "processors", lambda: 2)
    monkeypatch.setenv(VARIABLE, text)

    assert threads_of_user() == count
    assert threads_in_use() == (count or 2), "these tests set no number in TensorFlow"


def test_a_negative_number_with_which_tensorflow_aborts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "-1")

    with pytest.raises(UsageError, match=r"TF_NUM_INTRAOP_THREADS = -1 in the environment: must be at least 1"):
        threads_of_user()
