"""The placement of a plan on devices and processes, without TensorFlow."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accel_engine import network_namespace
from accel_engine.devices import installation
from accel_engine.devices.device_types import Device
from accel_engine.devices.tpu_chips import runtime_devices
from accel_engine.errors import FieldValue, PlanError, UsageError, Words
from accel_engine.plan import Plan
from accel_engine.strategies import CATALOGUE, StrategyEntry, find
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.strategies.tpu_endpoint import ELSEWHERE, LOCAL, TpuEndpoint
from accel_engine.words import numbers

GIB = 1 << 30

DETECTED = "its chips on the PCI bus"
"""The source of the endpoint of a TPU that nothing names."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The devices and processes that a plan trains on."""

    devices: tuple[str, ...]
    """Ids of this machine's devices; virtual CPUs are ``cpu:0``, ``cpu:1``, ..."""
    workers: int = 1
    """Number of processes that share a step."""
    replicas_per_device: int = 1
    """Replicas on each device: the cores of a TPU chip."""
    stages: int = 1
    """Devices that hold a replica together, each a part of the model."""
    remote_tpu: str = ""
    """Address or name of a TPU that is not in this machine; empty otherwise."""
    device_memory: int | None = None
    """Memory of a replica's accelerator in bytes, the smallest one; ``None`` for CPUs, or if unknown."""

    @property
    def kind(self) -> str:
        """The kind of its devices: ``cpu``, ``gpu`` or ``tpu``."""
        return self.devices[0].partition(":")[0] if self.devices else "tpu"

    @property
    def replicas(self) -> int | None:
        """Number of replicas; ``None`` for a remote TPU, which reports its cores once connected."""
        return self.workers * len(self.devices) // self.stages * self.replicas_per_device or None


def resolve_placement(plan: Plan, devices: Sequence[Device], environment: Mapping[str, str] = os.environ) -> Placement:
    """Select the devices that a plan trains on, as :func:`place` does, in the cluster that the environment describes.

    Raises:
        PlanError: A device does not exist, or the strategy does not fit the plan or the devices.
        UsageError: The environment describes an invalid cluster or TPU.
    """
    entry = find(plan.strategy)
    return place(plan, entry, devices, find_cluster(entry, environment), find_tpu(plan, entry, environment))


def find_cluster(entry: StrategyEntry, environment: Mapping[str, str]) -> ClusterSpec | None:
    """The cluster that this process belongs to; ``None`` under strategies of a single process.

    Raises:
        UsageError: The environment describes an invalid cluster.
    """
    return ClusterSpec.find(environment) if entry.processes else None


def check_measurable(entry: StrategyEntry, cluster: ClusterSpec | None) -> None:
    """Check that a plan can be measured on this machine alone: its processes, if it has several, are local workers.

    Raises:
        PlanError: The environment describes a cluster.
    """
    if cluster is not None:
        way_out = "unset TF_CONFIG" if cluster.source == "TF_CONFIG" else "measure outside a job of several tasks"
        raise PlanError(
            "strategy",
            entry.name,
            f"a cluster of several machines is not measured: {way_out}, and use ",
            FieldValue("local_workers", "2"),
        )


def check_isolation(plan: Plan, entry: StrategyEntry, cluster: ClusterSpec | None) -> None:
    """Check that a plan's local workers can be isolated, if they must be; this may start a process.

    Raises:
        PlanError: This system does not allow network namespaces.
    """
    is_wanted = plan.isolate_workers == "on" and plan.local_workers and entry.processes and cluster is None
    if is_wanted and (problem := network_namespace.why_not()):
        raise PlanError("isolate_workers", plan.isolate_workers, f"must be auto or off: {problem}")


def find_tpu(plan: Plan, entry: StrategyEntry, environment: Mapping[str, str]) -> TpuEndpoint | None:
    """The endpoint of a plan's TPU, by default this machine's chips; ``None`` under other strategies.

    Raises:
        PlanError: The plan names no valid endpoint.
        UsageError: The environment names no valid endpoint.
    """
    if entry.kind != "tpu":
        return None
    if ELSEWHERE in environment and not plan.tpu:
        return TpuEndpoint(LOCAL, ELSEWHERE)
    try:
        return TpuEndpoint.find(plan.tpu, environment) or TpuEndpoint(LOCAL, DETECTED)
    except UsageError as error:
        if plan.tpu:
            raise PlanError("tpu", plan.tpu, str(error)) from error
        raise


def place(
    plan: Plan, entry: StrategyEntry, devices: Sequence[Device], cluster: ClusterSpec | None, tpu: TpuEndpoint | None
) -> Placement:
    """Select the devices that a plan trains on: the plan's or, by default, as many GPUs as the strategy takes, or CPUs.

    Args:
        plan: The plan.
        entry: Its strategy.
        devices: The machine's devices.
        cluster: The cluster that this process belongs to.
        tpu: The endpoint of the TPU.

    Raises:
        PlanError: A device does not exist, or the strategy does not fit the plan or the devices.
    """
    if plan.reduction not in entry.reductions:
        raise PlanError("reduction", plan.reduction, f"must be {' or '.join(entry.reductions)} under {entry.name}")
    if plan.tpu and entry.kind != "tpu":
        raise PlanError("tpu", plan.tpu, "requires ", FieldValue("strategy", "tpu"))
    if tpu:
        _worker_count(entry, plan, cluster)
        return _place_on_tpu(entry, plan, devices, tpu)
    if cluster is not None and cluster.coordinated and entry.coordinated and cluster.role != "worker":
        chosen: tuple[str, ...] = ("cpu:0",)  # a coordinator or a parameter server needs none of the plan's devices
    else:
        chosen = _own_gpus(plan, _choose_devices(entry, plan, devices), cluster)
        _check_precision(plan, chosen)
        _check_threads(plan, chosen)
    if plan.reduction == "nccl" and not chosen[0].startswith("gpu"):
        raise PlanError("reduction", plan.reduction, "requires GPUs, but no GPU is used")
    if plan.reduction == "hierarchical-copy" and len(chosen) % 2:
        reason = f"TensorFlow leaves out the gradients of the last of {len(chosen)} devices: use an even number, or "
        raise PlanError("reduction", plan.reduction, reason, FieldValue("reduction", "one-device"))
    if plan.xla == "on" and (entry.coordinated or entry.staged or entry.name == "central-storage"):
        raise PlanError("xla", plan.xla, f"must be auto or off under {entry.name}, which XLA does not support")
    workers = _worker_count(entry, plan, cluster)
    if plan.xla == "on" and chosen[0].startswith("cpu") and workers * len(chosen) > 1:
        raise PlanError("xla", plan.xla, "must be auto or off: XLA cannot compile a step of several replicas on CPUs")
    memory = _smallest_memory(devices, chosen, plan.memory_limit) if chosen[0].startswith("gpu") else None
    if entry.staged and plan.stages and len(plan.stages) != len(chosen) - 1:
        reason = f"must name the first layer of each stage but the first: {len(chosen) - 1} for {', '.join(chosen)}"
        raise PlanError("stages", plan.stages, reason)
    return Placement(
        chosen,
        1 if entry.coordinated else workers,
        device_memory=memory,
        stages=len(chosen) if entry.staged else 1,
    )


def process_count(plan: Plan) -> int:
    """Number of engine processes of this machine that train a plan: one, or its local workers and who serves them."""
    entry = find(plan.strategy)
    return plan.local_workers + 2 * entry.coordinated if entry.processes and plan.local_workers else 1


def devices_of_workers(plan: Plan, devices: Sequence[Device]) -> tuple[str, ...]:
    """The devices of all local workers of a plan together.

    Raises:
        PlanError: A device does not exist, or the strategy does not fit the plan or the devices.
    """
    return _choose_devices(find(plan.strategy), plan, devices)


def incompatibility(strategy: str, plan: Plan, devices: Sequence[Device]) -> Words:
    """Return why a strategy does not fit a plan and a machine; empty if it does."""
    tpu = plan.tpu if find(strategy).kind == "tpu" else ""
    try:
        resolve_placement(plan.replace(strategy=strategy, devices=(), tpu=tpu), devices)
    except PlanError as error:
        return error.reason
    except UsageError as error:
        return (str(error),)
    return ()


def _choose_devices(entry: StrategyEntry, plan: Plan, devices: Sequence[Device]) -> tuple[str, ...]:
    maximum = entry.maximum_devices * max(1, plan.local_workers)
    available: dict[str, list[str]] = {}
    for device in devices:
        available.setdefault(device.kind, []).append(device.id)
    available["cpu"] = [f"cpu:{index}" for index in range(plan.virtual_cpus)]
    known = [name for names in available.values() for name in names]
    for name in plan.devices:
        if name.lower() not in known:
            raise PlanError("devices", ",".join(plan.devices), f"no device {name}; available: {', '.join(known)}")
    chosen = [name.lower() for name in plan.devices]
    if len(set(chosen)) < len(chosen):
        raise PlanError("devices", ",".join(plan.devices), "contains a device twice")
    if not chosen:
        best = next((kind for kind in ("gpu", "cpu") if available.get(kind)), "cpu")
        chosen = available["cpu"] if plan.virtual_cpus > 1 else available[best]
        chosen = chosen[: maximum or None]
    if any(name.startswith("tpu") for name in chosen):
        raise PlanError(
            "devices", ",".join(chosen), "a TPU needs ", FieldValue("strategy", "tpu"), ", which uses all of its cores"
        )
    if len({name.partition(":")[0] for name in chosen}) > 1:
        raise PlanError("devices", ",".join(chosen), "must be of the same kind")
    if len(chosen) < entry.minimum_devices:
        raise PlanError("strategy", entry.name, "needs ", *entry.needs, f"; available: {', '.join(chosen)}")
    if maximum and len(chosen) > maximum:
        raise PlanError("devices", ",".join(chosen), f"strategy {entry.name} takes at most {maximum}")
    return tuple(chosen)


def _check_precision(plan: Plan, chosen: tuple[str, ...]) -> None:
    """Raise for a precision that is far slower than all others; see ``benchmarks/README.md``."""
    if plan.precision == "mixed_float16" and chosen[0].startswith("cpu") and plan.force == "off":
        raise PlanError(
            "precision",
            plan.precision,
            "is far slower than float32 on a CPU: use auto (float32), or ",
            FieldValue("force", "on"),
            " to use it anyway",
        )


def _check_threads(plan: Plan, chosen: tuple[str, ...]) -> None:
    """Raise for a number of threads that the steps would not have."""
    if plan.threads is not None and not chosen[0].startswith("cpu"):
        trains = f"has no effect on {', '.join(chosen)}, only where a CPU trains: use auto, or train on "
        raise PlanError("threads", plan.threads, trains, FieldValue("devices", "cpu:0"))


def _own_gpus(plan: Plan, chosen: tuple[str, ...], cluster: ClusterSpec | None) -> tuple[str, ...]:
    """The GPUs of this process, one share of the local workers'; all workers share the CPU."""
    count = plan.local_workers
    if not count or not chosen[0].startswith("gpu"):
        return chosen
    if len(chosen) % count:
        gpus = f"{numbers.counted(len(chosen), 'GPU')}"
        raise PlanError(
            "local_workers", count, f"must divide {gpus} evenly, or train on ", FieldValue("devices", "cpu:0")
        )
    share = len(chosen) // count
    first = share * cluster.index if cluster else 0
    return chosen[first : first + share]


def _place_on_tpu(entry: StrategyEntry, plan: Plan, devices: Sequence[Device], tpu: TpuEndpoint) -> Placement:
    chips = [device for device in devices if device.kind == "tpu"]
    if tpu.local and tpu.source in (DETECTED, ELSEWHERE) and not chips:
        raise PlanError("strategy", entry.name, "needs ", *entry.needs)
    for field, invalid, allowed in (
        ("devices", plan.devices, "must be empty: all cores of a TPU are used"),
        ("xla", plan.xla == "off", "must be auto or on: a TPU requires XLA"),
        ("threads", plan.threads is not None, "must be auto: a TPU trains, not the CPU"),
        ("precision", plan.precision == "mixed_float16", "must be auto, mixed_bfloat16 or float32 on a TPU"),
    ):
        if invalid:
            raise PlanError(field, getattr(plan, field), allowed)
    if not tpu.local:
        return Placement((), remote_tpu=tpu.target)
    installed = installation.find_installation()
    if tpu.source != ELSEWHERE and installed.distribution and not installation.supports_tpus(installed.distribution):
        cause = f"{installed.distribution} {installed.version} has no TPU support"
        raise PlanError("strategy", entry.name, f"{cause}: in a fresh environment, pip install 'accel-tui[tpu]'")
    names, cores = tuple(chip.id for chip in chips), runtime_devices(chips[0]) if chips else 1
    memory = _smallest_memory(devices, names)
    return Placement(names, replicas_per_device=cores, device_memory=memory // cores if memory else None)


def _smallest_memory(devices: Sequence[Device], chosen: tuple[str, ...], limit: float | None = None) -> int | None:
    """The memory of the smallest of the chosen devices, or a limit of it in GiB; ``None`` if unknown."""
    sizes = [device.memory for device in devices if device.id in chosen and device.memory is not None]
    return min([*sizes, *([] if limit is None else [int(limit * GIB)])], default=None)


def _worker_count(entry: StrategyEntry, plan: Plan, cluster: ClusterSpec | None) -> int:
    if not entry.processes:
        if plan.local_workers:
            supported = ", ".join(other.name for other in CATALOGUE.values() if other.processes)
            raise PlanError("local_workers", plan.local_workers, f"must be 0 unless the strategy is one of {supported}")
        return 1
    if cluster is not None and plan.local_workers and not cluster.local:
        raise PlanError(
            "local_workers", plan.local_workers, f"must be 0, because {cluster.source} describes the workers"
        )
    count = len(cluster.workers) if cluster is not None else plan.local_workers
    if not count:
        raise PlanError("strategy", entry.name, "needs ", *entry.needs)
    if cluster is not None and cluster.coordinated and not entry.coordinated:
        raise PlanError("strategy", entry.name, f"{cluster.source} has parameter servers: use parameter-server")
    if cluster is not None and entry.coordinated and not (cluster.coordinator and cluster.servers):
        raise PlanError(
            "strategy", entry.name, "needs ", *entry.needs, f"; {cluster.source} describes a different cluster"
        )
    if cluster is not None and cluster.role == "evaluator":
        raise PlanError("strategy", entry.name, "does not support an evaluator: the chief validates")
    return count
