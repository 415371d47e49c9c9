"""Cases of ``advice.py`` on speed: streams, plans, and readings of devices written into runs."""

from collections.abc import Mapping

from accel_engine.devices.device_types import CountedItem, Reading
from accel_engine.events import DevicesFound, Event, TensorFlowDevice
from advice_case import Case
from advice_runs import Launched, Trained, Written

GPU_MEMORY = 16e9
_WORKERS = {"epochs": 6, "strategy": "multi-worker", "local_workers": 2, "devices": ("cpu:0",)}
_LONG = Trained(plan={"epochs": 30, "xla": "auto"})


def _gpu(time: float) -> list[Event]:
    """A run on a GPU says so."""
    device = TensorFlowDevice("GPU:0", "gpu", "", "gpu:0")
    return [DevicesFound(time=time, devices=(device,), strategy="OneDeviceStrategy")]


def _reading(*names: str) -> Reading:
    return Reading.counted(tuple(map(CountedItem, names)))


def _cool(index: int) -> Mapping[str, Reading]:
    """A busy GPU at its full clock."""
    return {
        "utilization": Reading(92.0 + index % 3),
        "clock_sm": Reading(1980.0 - index % 2),
        "temperature": Reading(64.0),
        "throttling": _reading(),
        "memory_total": Reading(GPU_MEMORY),
        "allocated_peak": Reading(0.4 * GPU_MEMORY),
    }


def _hot(index: int) -> Mapping[str, Reading]:
    """The same, which has become too hot after some readings."""
    hot = {"clock_sm": Reading(1110.0), "temperature": Reading(91.0), "throttling": _reading("HW thermal slowdown")}
    return {**_cool(index), **(hot if index > 5 else {})}


def _host(busy: float, own: float, swap: float = 0.0) -> Mapping[str, Reading]:
    """A host with two cores and 16 GB."""
    return {
        "utilization": Reading(busy),
        "engine_cpu": Reading(own),
        "core_0": Reading(busy),
        "core_1": Reading(busy),
        "memory_total": Reading(16e9),
        "memory_used": Reading(6e9 if not swap else 15.5e9),
        "swap_used": Reading(swap),
    }


HEALTHY: tuple[Case, ...] = (
    Case("stream", Trained(data="own:fast", model="tabular", plan={"epochs": 4})),
    Case("gpu", Written(run=_LONG, samples={"gpu:0": _cool}, events=_gpu)),
    Case("two-workers", Launched(data="own:fast", model="own:large", plan=_WORKERS)),
    Case("own-use-of-processors", Written(run=_LONG, samples={"cpu:0": lambda _: _host(95.0, 185.0)})),
)

FAULTS: tuple[Case, ...] = (
    Case("slow-input", Trained(data="own:slow", model="tabular", plan={"epochs": 4}), ("input-wait",)),
    Case("straggler", Launched(data="own:slow_on_worker_1", model="own:large", plan=_WORKERS), ("straggler",)),
    Case("changing-shapes", Trained(data="own:changing", model="own:any_length", plan={"epochs": 3}), ("retracing",)),
    Case(
        "validation-too-often",
        Trained(plan={"epochs": 20, "validation_every": "1 steps"}),
        ("frequent-validation",),
    ),
    Case(
        "checkpoints-too-often",
        Trained(plan={"epochs": 6, "checkpoint_every": "1 steps"}),
        ("frequent-checkpoints", "slow-disk"),
    ),
    Case(
        "float16-on-cpu",
        Trained(plan={"epochs": 3, "precision": "mixed_float16", "force": "on"}),
        ("float16-on-cpu",),
    ),
    Case(
        "float16-on-cpu-cnn",
        Trained(model="own:convolutional", plan={"epochs": 1, "precision": "mixed_float16", "force": "on"}),
        ("float16-on-cpu",),
    ),
    Case("throttling", Written(run=_LONG, samples={"gpu:0": _hot}, events=_gpu), ("throttling",)),
    Case("neighbours", Written(run=_LONG, samples={"cpu:0": lambda _: _host(98.0, 30.0)}), ("neighbours",)),
    Case(
        "swapping",
        Written(run=_LONG, samples={"cpu:0": lambda index: _host(60.0, 110.0, 2e9 * (index > 5))}),
        ("swapping",),
    ),
)
