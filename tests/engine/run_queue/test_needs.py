"""What a plan needs: the devices that it may use, how many of them, and memory."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_engine.devices import installation
from accel_engine.devices.device_types import Device
from accel_engine.devices.installation import Installation
from accel_engine.errors import AccelError, PlanError, UsageError
from accel_engine.plan import Plan, placement
from accel_engine.plan.placement import Placement
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run_queue import needs
from accel_engine.run_queue.engine_environment import with_devices
from accel_engine.run_queue.needs import RunNeeds, find_need

GPUS = tuple(Device(f"gpu:{index}", "gpu", "a GPU", uuids=(f"GPU-{index}aa",)) for index in range(4))
TPUS = tuple(Device(f"tpu:{index}", "tpu", "TPU v4", cores=1) for index in range(2))
ALL = ("gpu:0", "gpu:1", "gpu:2", "gpu:3")


@pytest.fixture(autouse=True)
def _cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "find_installation", lambda: Installation("tensorflow", "2.21.0"))


def need(wanted: int | None = None, environment: Mapping[str, str] | None = None, **fields: Any) -> RunNeeds:
    return find_need(Plan(model="mlp", **fields), wanted, GPUS, environment or {})


@pytest.mark.parametrize(
    ("fields", "wanted", "count", "devices"),
    [
        ({}, None, 1, ALL),
        ({}, 1, 1, ALL),
        ({"strategy": "mirrored"}, None, 4, ALL),
        ({"strategy": "mirrored"}, 2, 2, ALL),
        ({"devices": ("gpu:2",)}, None, 1, ("gpu:2",)),
        ({"devices": ("GPU:1", "gpu:3"), "strategy": "mirrored"}, 2, 2, ("gpu:1", "gpu:3")),
        ({"strategy": "multi-worker", "local_workers": 2}, None, 4, ALL),
        ({"strategy": "multi-worker", "local_workers": 2}, 2, 2, ALL),
        ({"devices": ("cpu:0",)}, None, 0, ()),
    ],
)
def test_devices_of_a_plan(fields: dict[str, Any], wanted: int | None, count: int, devices: tuple[str, ...]) -> None:
    found = need(wanted, **fields)

    assert (found.count, found.devices) == (count, devices)
    assert found.kind == ("gpu" if count else "cpu")


@pytest.mark.parametrize(
    ("fields", "wanted", "problem"),
    [
        ({}, 2, "strategy default takes at most 1"),
        ({"strategy": "mirrored"}, 1, "strategy mirrored takes at least 2"),
        ({"strategy": "mirrored"}, 5, "this machine has 4 that the plan may use"),
        ({"devices": ("gpu:2",)}, 2, "the plan's devices are gpu:2"),
        ({"devices": ("cpu:0",)}, 1, "it trains on the CPU"),
        ({"strategy": "multi-worker", "local_workers": 2}, 3, "a multiple of the plan's 2 local workers"),
    ],
)
def test_a_number_that_does_not_fit_is_refused(fields: dict[str, Any], wanted: int, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        need(wanted, **fields)


def test_a_plan_that_does_not_fit_is_refused() -> None:
    with pytest.raises(PlanError, match="no device gpu:9"):
        need(devices=("gpu:9",))


def test_only_visible_gpus_are_used() -> None:
    visible = {"CUDA_VISIBLE_DEVICES": "2,GPU-0"}

    assert need(environment=visible).devices == ("gpu:0", "gpu:2")
    assert need(environment=visible, strategy="mirrored").count == 2
    with pytest.raises(AccelError, match="no device gpu:1"):
        need(environment=visible, devices=("gpu:1",))
    assert need(environment={"CUDA_VISIBLE_DEVICES": "-1"}).kind == "cpu"


def test_gpus_that_are_lost_are_passed_over_unless_nothing_else_can_be_waited_for() -> None:
    lost = [replace(gpu, problem="lost") for gpu in GPUS]
    plan, one_lost = Plan(model="mlp", strategy="mirrored"), (lost[0], *GPUS[1:])

    assert find_need(plan, None, one_lost, {}).devices == ALL[1:]
    assert find_need(plan, None, one_lost, {"CUDA_VISIBLE_DEVICES": "0,1"}).devices == ("gpu:1", "gpu:2")
    named = Plan(model="mlp", devices=("gpu:0",))
    assert find_need(named, None, one_lost, {}).devices == ("gpu:0",)  # it waits, and its reason names the loss
    assert find_need(Plan(model="mlp"), None, lost, {}).devices == ALL
    assert find_need(Plan(model="mlp"), None, lost, {"CUDA_VISIBLE_DEVICES": "-1"}).kind == "cpu"


def test_numbers_that_only_cuda_understands_matter_only_where_a_gpu_is_used() -> None:
    mixed = (replace(GPUS[0], name="another GPU"), *GPUS[1:])
    fastest = {"CUDA_DEVICE_ORDER": "FASTEST_FIRST", "CUDA_VISIBLE_DEVICES": "0"}

    with pytest.raises(UsageError, match="counts from the fastest GPU"):
        find_need(Plan(model="mlp"), None, mixed, fastest)
    assert find_need(Plan(model="mlp", devices=("cpu:0",)), None, mixed, fastest).kind == "cpu"


def test_a_build_for_the_cpu_uses_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))

    assert need().kind == "cpu"


def test_a_tpu_is_taken_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement.installation, "find_installation", lambda: Installation("tensorflow-tpu", "2.20.0"))
    plan = Plan(model="mlp", strategy="tpu")

    found = find_need(plan, None, TPUS, {})
    assert (found.kind, found.count, found.devices) == ("tpu", 2, ("tpu:0", "tpu:1"))
    with pytest.raises(UsageError, match="a run takes the whole TPU, 2 chips"):
        find_need(plan, 1, TPUS, {})


def test_a_tpu_elsewhere_needs_none_of_this_machine() -> None:
    plan = Plan(model="mlp", strategy="tpu", tpu="grpc://10.0.0.2:8470")

    assert find_need(plan, None, (), {}).kind == "cpu"
    with pytest.raises(UsageError, match="not in this machine"):
        find_need(plan, 1, (), {})


def test_memory_has_the_data_that_is_known() -> None:
    small, large = need(data="digits").memory, need(data="cifar10").memory

    assert small > 500 << 20
    assert large - small > 150_000_000  # 50,000 images of 32x32x3 bytes


def test_a_gpu_that_nvml_does_not_list_may_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its engine sees what the user's environment shows, and TensorFlow decides."""
    driver = tmp_path / "nvidiactl"
    monkeypatch.setattr(installation, "GPU_FILES", (driver,))
    monkeypatch.setattr(installation, "find_installation", lambda: Installation("tensorflow", "2.21.0"))
    named = Plan(model="mlp", devices=("gpu:0",))
    with pytest.raises(PlanError, match="no device gpu:0"):
        find_need(named, None, (), {})
    driver.touch()

    found = find_need(named, None, (), {"CUDA_VISIBLE_DEVICES": "1"})

    assert (found.kind, found.count, found.devices) == ("gpu", 1, ("gpu:0",))
    assert with_devices({"CUDA_VISIBLE_DEVICES": "1"}, found.devices, ()) == {"CUDA_VISIBLE_DEVICES": "1"}
    assert resolve(named, ()).placement == Placement(("gpu:0",))
    assert find_need(Plan(model="mlp"), None, (), {}).kind == "cpu"
    with pytest.raises(PlanError, match="no device gpu:7"):
        find_need(Plan(model="mlp", devices=("gpu:7",)), None, GPUS, {})
    monkeypatch.setattr(installation, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))
    with pytest.raises(PlanError, match="no device gpu:0"):
        find_need(named, None, (), {})
