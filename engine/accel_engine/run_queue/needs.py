"""The devices and the memory that the plan of a run in the queue needs; without TensorFlow."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from accel_engine import data, strategies
from accel_engine.devices.cuda_visible_devices import VISIBLE, visible_gpus
from accel_engine.devices.device_types import Device
from accel_engine.devices.installation import find_installation, with_unlisted_gpus
from accel_engine.errors import AccelError, PlanError, UsageError
from accel_engine.plan import Plan
from accel_engine.plan.memory_estimate import GRAPH, TENSORFLOW, data_bytes
from accel_engine.plan.placement import resolve_placement
from accel_engine.strategies import StrategyEntry


@dataclass(frozen=True, slots=True)
class RunNeeds:
    """The devices and the memory that a run needs to start."""

    kind: str = "cpu"
    """``cpu``, ``gpu`` or ``tpu``."""
    count: int = 0
    """How many accelerators; 0 on the CPU."""
    devices: tuple[str, ...] = ()
    """Ids of the accelerators that it may get."""
    memory: int = 0
    """Bytes of the host's memory that it takes at least."""


def find_need(plan: Plan, wanted: int | None, devices: Sequence[Device], environment: Mapping[str, str]) -> RunNeeds:
    """Find what a plan needs.

    Args:
        plan: The plan.
        wanted: How many accelerators the user wants; ``None`` for what the plan says, or else one.
        devices: The devices of the machine.
        environment: The environment variables of its engine.

    Raises:
        PlanError: The plan does not fit the machine.
        UsageError: The plan cannot be trained on this number of devices, or the environment is wrong.
    """
    strategy, memory = strategies.find(plan.strategy), _host_memory(plan)
    unlisted = with_unlisted_gpus(devices, plan.devices)[len(devices) :]
    usable = [*_usable(plan, devices, environment), *unlisted]
    placement = resolve_placement(plan, usable, environment)
    if placement.kind == "cpu" or not placement.devices:
        if wanted is not None:
            where = "on the CPU" if placement.kind == "cpu" else "on a TPU that is not in this machine"
            raise UsageError(f"the run gets no accelerator, as it trains {where}: leave --devices-each out")
        return RunNeeds(memory=memory)
    chosen = [device.id for device in usable if device.kind == placement.kind]
    if placement.kind == "tpu":
        return _whole_tpu(wanted, tuple(chosen), memory)
    if plan.devices:
        chosen = [name.lower() for name in plan.devices]
        if wanted not in (None, len(chosen)):
            raise UsageError(f"the plan's devices are {', '.join(chosen)}: leave --devices-each out")
    count = _count(plan, strategy, wanted, len(chosen))
    return RunNeeds("gpu", count, tuple(chosen), memory)


def _count(plan: Plan, strategy: StrategyEntry, wanted: int | None, available: int) -> int:
    """How many GPUs a plan gets."""
    most = strategy.maximum_devices * max(1, plan.local_workers)
    count = (min(most, available) if most else available) if wanted is None else wanted
    if most and count > most:
        raise UsageError(f"--devices-each {count}: strategy {strategy.name} takes at most {most}; mirrored takes more")
    if count < strategy.minimum_devices:
        raise UsageError(f"--devices-each {count}: strategy {strategy.name} takes at least {strategy.minimum_devices}")
    if count > available:
        raise UsageError(f"--devices-each {count}: this machine has {available} that the plan may use")
    if plan.local_workers and count % plan.local_workers:
        raise UsageError(f"--devices-each {count}: must be a multiple of the plan's {plan.local_workers} local workers")
    return count


def _whole_tpu(wanted: int | None, chips: tuple[str, ...], memory: int) -> RunNeeds:
    if wanted not in (None, len(chips)):
        raise UsageError(f"--devices-each {wanted}: a run takes the whole TPU, {len(chips)} chips")
    return RunNeeds("tpu", len(chips), chips, memory)


def _usable(plan: Plan, devices: Sequence[Device], environment: Mapping[str, str]) -> list[Device]:
    """The devices without GPUs that TensorFlow will not see.

    The run waits for one that is lost, if the plan names it, or if all are and the user hides none.
    """
    named = {name.lower() for name in plan.devices}
    gpus = [device for device in devices if device.kind == "gpu"]
    on_cpu = bool(named) and not any(name.startswith("gpu") for name in named)
    if on_cpu or find_installation().distribution == "tensorflow-cpu":
        return [device for device in devices if device.kind != "gpu"]
    lost = {gpu.id for gpu in gpus if gpu.problem}
    shown = {gpu.id for gpu in visible_gpus(environment, gpus)}
    shown |= lost if len(lost) == len(gpus) and environment.get(VISIBLE) not in ("", "-1") else lost & named
    return [device for device in devices if device.kind != "gpu" or device.id in shown]


def _host_memory(plan: Plan) -> int:
    """The least memory of the engine: TensorFlow, and training data whose size is known before it is read."""
    known = 0
    with suppress(AccelError, PlanError):
        known = data_bytes(data.find(plan.data)) or 0
    return TENSORFLOW[0] + GRAPH[0] + known
