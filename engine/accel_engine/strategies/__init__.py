"""The catalogue of strategies: how a step is spread over devices, without TensorFlow.

Says which strategies fit a machine, and why the others do not. Their ``tf.distribute`` forms are
built in :mod:`accel_engine.strategies.builders`, which only the engine process imports.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accel_engine import installation
from accel_engine.cluster_spec import ClusterSpec
from accel_engine.devices.reading import Device
from accel_engine.devices.tpu_chips import runtime_devices
from accel_engine.errors import PlanError, UsageError
from accel_engine.registry import suggestion
from accel_engine.strategies.tpu_endpoint import TpuEndpoint

if TYPE_CHECKING:
    from accel_engine.plan import Plan

__all__ = ["CATALOGUE", "Placement", "StrategyEntry", "find", "incompatibility", "resolve_placement"]


@dataclass(frozen=True, slots=True)
class StrategyEntry:
    """A strategy that a plan can name.

    Attributes:
        name: What plans call it.
        summary: What it is for, in a line.
        needs: What it needs, in words.
        builder: ``module:function``; called with TensorFlow's logical device names and the plan.
        minimum_devices: The fewest devices of a process that it makes sense on.
        maximum_devices: The most it uses of a process; 0 for all.
        reductions: How it can sum gradients over replicas.
        processes: Whether it spreads over processes, which may be on many machines.
        coordinated: Whether workers take steps of their own, each with the whole batch, that one process hands out.
        kind: The only kind of device that it is for; empty for GPUs and CPUs.
        precision: Numbers that a plan computes with that leaves them to it, by Keras' name.
    """

    name: str
    summary: str
    needs: str
    builder: str
    minimum_devices: int = 1
    maximum_devices: int = 0
    reductions: tuple[str, ...] = ("auto",)
    processes: bool = False
    coordinated: bool = False
    kind: str = ""
    precision: str = "float32"


CATALOGUE: dict[str, StrategyEntry] = {
    entry.name: entry
    for entry in (
        StrategyEntry(
            "default",
            "One device, without distribution: the first accelerator, else the CPU",
            "nothing",
            "accel_engine.strategies.builders:default",
            maximum_devices=1,
        ),
        StrategyEntry(
            "one-device",
            "One device of your choice, by the same path as many",
            "one device",
            "accel_engine.strategies.builders:one_device",
            maximum_devices=1,
        ),
        StrategyEntry(
            "mirrored",
            "The model copied to every device, gradients summed at each step",
            "two devices of a kind, or --virtual-cpus 2",
            "accel_engine.strategies.builders:mirrored",
            minimum_devices=2,
            reductions=("auto", "nccl", "hierarchical-copy", "one-device"),
        ),
        StrategyEntry(
            "tpu",
            "The model copied to every core of a TPU, gradients summed at each step",
            "a TPU chip here, or one named by --tpu, COLAB_TPU_ADDR or TPU_NAME",
            "accel_engine.strategies.tpu_builder:tpu",
            kind="tpu",
            precision="mixed_bfloat16",
        ),
        StrategyEntry(
            "central-storage",
            "The weights in the host's memory, computation on every device",
            "two devices of a kind, or --virtual-cpus 2",
            "accel_engine.strategies.builders:central_storage",
            minimum_devices=2,
        ),
        StrategyEntry(
            "multi-worker",
            "Mirrored over processes on one machine or many",
            "TF_CONFIG, a Slurm job, or --local-workers 2",
            "accel_engine.strategies.builders:multi_worker",
            reductions=("auto", "nccl", "ring"),
            processes=True,
        ),
        StrategyEntry(
            "parameter-server",
            "The weights in processes of their own; workers take steps without waiting for others",
            "TF_CONFIG with a chief, workers and parameter servers (ps), or --local-workers 1",
            "accel_engine.strategies.builders:parameter_server",
            maximum_devices=1,
            processes=True,
            coordinated=True,
        ),
    )
}
"""Every strategy, simplest first."""


def find(name: str) -> StrategyEntry:
    """Find a strategy by name.

    Raises:
        PlanError: There is none of that name.
    """
    if entry := CATALOGUE.get(name.lower().replace("_", "-")):
        return entry
    raise PlanError("strategy", name, f"no such strategy; {suggestion(name, CATALOGUE)}")


@dataclass(frozen=True, slots=True)
class Placement:
    """What a plan trains on.

    Attributes:
        devices: Ids of this machine's devices; the logical devices of a split CPU are ``cpu:0``, ``cpu:1``, ...
        workers: Number of processes that share a step.
        replicas_per_device: Replicas on each device.
        remote_tpu: The TPU that trains in place of this machine's devices: its address or name.
    """

    devices: tuple[str, ...]
    workers: int = 1
    replicas_per_device: int = 1
    remote_tpu: str = ""

    @property
    def replicas(self) -> int | None:
        """Copies of the model that share a step; ``None`` where only the TPU knows, once connected."""
        return self.workers * len(self.devices) * self.replicas_per_device or None


def resolve_placement(
    plan: "Plan", devices: Sequence[Device], environment: Mapping[str, str] = os.environ
) -> Placement:
    """Decide what a plan trains on: its devices or, without any, all accelerators of the best kind, else the CPU.

    Args:
        plan: The plan.
        devices: The devices of the machine.
        environment: Where a cluster may be described.

    Raises:
        PlanError: A wanted device is not there, or the strategy does not fit.
        UsageError: The environment describes no possible cluster, or no possible TPU.
    """
    entry = find(plan.strategy)
    if plan.reduction not in entry.reductions:
        raise PlanError("reduction", plan.reduction, f"must be {' or '.join(entry.reductions)} under {entry.name}")
    if plan.tpu and entry.kind != "tpu":
        raise PlanError("tpu", plan.tpu, "is for --strategy tpu")
    if entry.kind == "tpu":
        _worker_count(entry, plan, environment)
        return _place_on_tpu(entry, plan, devices, environment)
    if _computes_elsewhere(entry, environment):
        chosen: tuple[str, ...] = ("cpu:0",)
    else:
        chosen = _own_gpus(plan, _choose_devices(entry, plan, devices), environment)
        _check_precision(plan, chosen)
    if plan.reduction == "nccl" and not chosen[0].startswith("gpu"):
        raise PlanError("reduction", plan.reduction, "is for GPUs, and none is used")
    if plan.xla == "on" and (entry.coordinated or entry.name == "central-storage"):
        raise PlanError(
            "xla", plan.xla, f"must be auto or off under {entry.name}: the weights are not where it computes"
        )
    workers = _worker_count(entry, plan, environment)
    return Placement(chosen, 1 if entry.coordinated else workers)


def incompatibility(strategy: str, plan: "Plan", devices: Sequence[Device]) -> str:
    """Say why a strategy does not fit a plan and a machine; nothing when it does."""
    tpu = plan.tpu if find(strategy).kind == "tpu" else ""
    try:
        resolve_placement(plan.replace(strategy=strategy, devices=(), tpu=tpu), devices)
    except PlanError as error:
        return error.allowed
    except UsageError as error:
        return str(error)
    return ""


def _choose_devices(entry: StrategyEntry, plan: "Plan", devices: Sequence[Device]) -> tuple[str, ...]:
    most = entry.maximum_devices * max(1, plan.local_workers)
    there: dict[str, list[str]] = {}
    for device in devices:
        there.setdefault(device.kind, []).append(device.id)
    there["cpu"] = [f"cpu:{index}" for index in range(plan.virtual_cpus)]
    known = [name for names in there.values() for name in names]
    for name in plan.devices:
        if name.lower() not in known:
            raise PlanError("devices", ",".join(plan.devices), f"{name} is not here; known: {', '.join(known)}")
    chosen = [name.lower() for name in plan.devices]
    if len(set(chosen)) < len(chosen):
        raise PlanError("devices", ",".join(plan.devices), "names a device twice")
    if not chosen:
        best = next((kind for kind in ("gpu", "cpu") if there.get(kind)), "cpu")
        chosen = there["cpu"] if plan.virtual_cpus > 1 else there[best]
        chosen = chosen[: most or None]
    if any(name.startswith("tpu") for name in chosen):
        raise PlanError("devices", ",".join(chosen), "a TPU needs --strategy tpu, which takes the whole of it")
    if len({name.partition(":")[0] for name in chosen}) > 1:
        raise PlanError("devices", ",".join(chosen), "must be of one kind")
    if len(chosen) < entry.minimum_devices:
        raise PlanError("strategy", entry.name, f"needs {entry.needs}; there is only {', '.join(chosen)}")
    if most and len(chosen) > most:
        raise PlanError("devices", ",".join(chosen), f"strategy {entry.name} takes {most}")
    return tuple(chosen)


def _computes_elsewhere(entry: StrategyEntry, environment: Mapping[str, str]) -> bool:
    """Whether this process hands steps out or keeps weights, so that it needs none of the plan's devices."""
    cluster = ClusterSpec.find(environment) if entry.coordinated else None
    return cluster is not None and cluster.coordinated and cluster.role != "worker"


def _check_precision(plan: "Plan", chosen: tuple[str, ...]) -> None:
    """Refuse a precision that was measured to be far slower than any other; see ``benchmarks/README.md``."""
    if plan.precision == "mixed_float16" and chosen[0].startswith("cpu") and plan.force == "off":
        raise PlanError(
            "precision",
            plan.precision,
            "is far slower than float32 on a CPU: use auto (float32), or --force on to train with it all the same",
        )


def _own_gpus(plan: "Plan", chosen: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, ...]:
    """The GPUs of this process, where others on this machine take the rest; a CPU is shared by all."""
    count = plan.local_workers
    if not count or not chosen[0].startswith("gpu"):
        return chosen
    if len(chosen) % count:
        there = f"{len(chosen)} GPU{'s' * (len(chosen) > 1)}"
        raise PlanError("local_workers", count, f"must share {there} out evenly, or train on --devices cpu:0")
    cluster = ClusterSpec.find(environment)
    each = len(chosen) // count
    first = each * cluster.index if cluster else 0
    return chosen[first : first + each]


def _place_on_tpu(
    entry: StrategyEntry, plan: "Plan", devices: Sequence[Device], environment: Mapping[str, str]
) -> Placement:
    for field, wrong, allowed in (
        ("devices", plan.devices, "must be empty: a TPU is used as a whole"),
        ("xla", plan.xla == "off", "must be auto or on: a TPU runs only what XLA has compiled"),
        ("precision", plan.precision == "mixed_float16", "must be auto, mixed_bfloat16 or float32 on a TPU"),
    ):
        if wrong:
            raise PlanError(field, getattr(plan, field), allowed)
    try:
        endpoint = TpuEndpoint.find(plan.tpu, environment)
    except UsageError as error:
        if plan.tpu:
            raise PlanError("tpu", plan.tpu, str(error)) from error
        raise
    if endpoint is not None and not endpoint.local:
        return Placement((), remote_tpu=endpoint.target)
    chips = [device for device in devices if device.kind == "tpu"]
    if endpoint is None and not chips:
        raise PlanError("strategy", entry.name, f"needs {entry.needs}")
    here = installation.find_installation()
    if here.distribution and here.distribution != "tensorflow-tpu":
        cause = f"{here.distribution} {here.version} has no TPU support"
        raise PlanError("strategy", entry.name, f"{cause}: in a fresh environment, pip install 'accel-tui[tpu]'")
    return Placement(tuple(chip.id for chip in chips), replicas_per_device=runtime_devices(chips[0]) if chips else 1)


def _worker_count(entry: StrategyEntry, plan: "Plan", environment: Mapping[str, str]) -> int:
    if not entry.processes:
        if plan.local_workers:
            many = ", ".join(other.name for other in CATALOGUE.values() if other.processes)
            raise PlanError("local_workers", plan.local_workers, f"must be 0 unless the strategy is one of {many}")
        return 1
    cluster = ClusterSpec.find(environment)
    if cluster is not None and plan.local_workers and not cluster.local:
        raise PlanError(
            "local_workers", plan.local_workers, f"must be 0 where {cluster.source} describes the workers already"
        )
    count = len(cluster.workers) if cluster is not None else plan.local_workers
    if not count:
        raise PlanError("strategy", entry.name, f"needs {entry.needs}")
    if cluster is not None and cluster.coordinated and not entry.coordinated:
        raise PlanError("strategy", entry.name, f"{cluster.source} has parameter servers: use parameter-server")
    if cluster is not None and entry.coordinated and not (cluster.coordinator and cluster.servers):
        raise PlanError("strategy", entry.name, f"needs {entry.needs}; {cluster.source} has no such cluster")
    if cluster is not None and cluster.role == "evaluator":
        raise PlanError("strategy", entry.name, "has no use for an evaluator: the chief validates")
    return count
