"""Chooses what containers and manifests say about resources and probes, from measurements."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from accel_engine.deploy_folder.facts import Facts, FolderMeasurement, versions_line
from accel_engine.deploy_folder.folder_options import FolderOptions
from accel_engine.deploy_folder.rendering import Block, Value, clean, yaml_text
from accel_engine.words import numbers

MIB = 1 << 20

REPLICAS, MAX_REPLICAS = 2, 10
"""Replicas at least, so that one may fail, and at most."""

_MEMORY_STEP = 64 * MIB
_MEMORY_HEADROOM = 1.5
_MEMORY_UNKNOWN = 1024 * MIB
_TENSORFLOW_GPU_MEMORY = 4096 * MIB
"""Host memory at least with an accelerator's libraries, which a measurement on the CPU does not have."""

_LOAD_HEADROOM = 5.0
"""How much longer than measured a start may take: images of nodes are cold, and their processors shared."""

_TPU = {"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice", "cloud.google.com/gke-tpu-topology": "1x1"}
"""The nodes of GKE with one TPU v5e chip."""

RESOURCES = {"gpu": "nvidia.com/gpu", "tpu": "google.com/tpu"}
"""Names of the resources that a pod requests to get accelerators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The resources of a replica."""

    cpus: int
    memory: int
    """Bytes."""
    replicas: int
    max_replicas: int
    start_seconds: float
    """How long a start may take."""


def resources_of(facts: Facts, options: FolderOptions) -> Resources:
    """Choose resources.

    Args:
        facts: With what was measured, if anything was.
        options: What is written.
    """
    measured = facts.measured
    memory, sizing = _MEMORY_UNKNOWN, facts.sizing
    peak = max(measured.memory_bytes if measured else 0, (sizing and sizing.memory_bytes) or 0)
    if peak:
        memory = math.ceil(peak * _MEMORY_HEADROOM / _MEMORY_STEP) * _MEMORY_STEP
    if options.accelerator != "cpu":
        memory = max(memory, _TENSORFLOW_GPU_MEMORY)
    load = measured.load_seconds if measured else 0.0
    replicas = max(REPLICAS, (sizing and sizing.replicas) or 0)
    return Resources(
        cpus=max(measured.threads if measured else 1, math.ceil((sizing and sizing.cores) or 0)),
        memory=memory,
        replicas=replicas,
        max_replicas=max(MAX_REPLICAS, 2 * replicas),
        start_seconds=max(30.0, _LOAD_HEADROOM * load),
    )


def manifest_values(facts: Facts, options: FolderOptions, resources: Resources) -> dict[str, Value]:
    """The values of containers and manifests."""
    service, measured = facts.service, facts.measured
    image = options.image or f"{facts.label}:{service.version}"
    return {
        "name": service.name,
        "label": facts.label,
        "runtime": f"{facts.label}-tensorflow",
        "version": service.version,
        "version_label": f"{service.version}-{service.step}",
        "run": service.run,
        "step": str(service.step),
        "task": service.task,
        "data": service.data,
        "data_hash": service.data_hash,
        "licence": facts.licence or "NOASSERTION",
        "versions": versions_line(service.versions),
        "image": image,
        "cpus": str(resources.cpus),
        "memory": f"{resources.memory // MIB}Mi",
        "replicas": resources.replicas,
        "max_replicas": resources.max_replicas,
        "startup_failures": math.ceil(resources.start_seconds / 2),
        "start_period": math.ceil(resources.start_seconds),
        "load_comment": Block(_load_comment(measured)),
        "resource_comment": Block(_resource_comment(measured, options)),
        "rate_comment": Block(rate_line(facts)),
        "placement": Block(node_placement(_selector(options), options.accelerator)),
        "device_resource": Block(f"{RESOURCES[options.accelerator]}: 1" if options.accelerator != "cpu" else ""),
        "serving_image": serving_image(service.versions, options),
        "storage": options.storage or f"pvc://models/{facts.label}",
    }


def serving_image(versions: Mapping[str, str], options: FolderOptions) -> str:
    """The image of TensorFlow Serving of the version of TensorFlow that wrote a model."""
    suffix = "-gpu" if options.accelerator == "gpu" else ""
    return f"tensorflow/serving:{clean(versions.get('tensorflow', 'latest'))}{suffix}"


def _load_comment(measured: FolderMeasurement | None) -> str:
    if measured is None:
        return "How long a start takes was not measured: it may take this long."
    times = f"it may take {_LOAD_HEADROOM:g} times as long, and 30 s at least"
    return f"Ready {measured.load_seconds:.1f} s after its start where this was written; {times}."


def _resource_comment(measured: FolderMeasurement | None, options: FolderOptions) -> str:
    if measured is None:
        return "Not measured: measure, and adapt them."
    words = f"Measured: {measured.memory_bytes / MIB:.0f} MiB at most, of which memory has half as much more."
    return words if options.accelerator == "cpu" else f"{words} That was on the CPU: measure it here."


def rate_line(facts: Facts) -> str:
    """How much one replica answers, and how many the wanted rate takes."""
    measured, sizing = facts.measured, facts.sizing
    if sizing and sizing.rate and sizing.target_latency:
        latency = numbers.latency(sizing.target_latency)
        words = f"One replica answers {sizing.rate:.0f} requests/s with p99 within {latency}"
        if not sizing.replicas or not sizing.target_rate:
            return f"{words}, where this was written."
        replicas = numbers.counted(sizing.replicas, "replica")
        return f"{words}, where this was written: {sizing.target_rate:g} requests/s take {replicas}, without headroom."
    if measured is None:
        return "How much one replica answers was not measured."
    return (
        f"One replica answered {measured.rate:.0f} requests/s with {measured.connections} connections, p99 "
        f"{measured.p99 * 1000:.1f} ms, where this was written."
    )


def _selector(options: FolderOptions) -> dict[str, str]:
    chosen = dict(each.split("=", 1) for each in options.node_selector)
    return _TPU | chosen if options.accelerator == "tpu" else chosen


def node_placement(selector: Mapping[str, str], accelerator: str) -> str:
    """The node selector and the tolerations of a pod.

    Args:
        selector: Labels of the nodes.
        accelerator: ``cpu``, ``gpu`` or ``tpu``.
    """
    lines = ["nodeSelector:", *(f"  {yaml_text(key)}: {yaml_text(value)}" for key, value in selector.items())]
    lines = lines if selector else []
    if resource := RESOURCES.get(accelerator):
        lines += ["tolerations:", f"  - key: {resource}", "    operator: Exists", "    effect: NoSchedule"]
    return "\n".join(lines)
