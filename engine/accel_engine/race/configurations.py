"""The configurations of a plan on a machine: one change at a time, and the changes that were faster together."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accel_engine import strategies
from accel_engine.devices.device_types import Device
from accel_engine.errors import PlanError, join_words
from accel_engine.plan import Plan, isolation
from accel_engine.plan.placement import check_measurable
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve
from accel_engine.plan.task_choices import PRECISIONS
from accel_engine.race.configuration import Configuration, ConfigurationKind, UnsupportedConfiguration
from accel_engine.words import numbers

REFERENCE = "this plan"
"""The title of the reference."""

COMBINED = "combined"
"""The title of the changes that were faster, together."""

MICRO_BATCHES = (2, 4)
"""Numbers of micro-batches to try."""

BATCH_FACTORS = (0.5, 2.0, 4.0)
"""Batch sizes to try, as multiples of the plan's."""


@dataclass(frozen=True, slots=True)
class ConfigurationList:
    """The configurations of a plan on a machine."""

    reference: Configuration
    """The plan without a change."""
    others: tuple[Configuration, ...]
    """Plans with one change each."""
    refused: tuple[UnsupportedConfiguration, ...] = ()
    """Plans that cannot be run, and why."""


def check_raceable(resolved: ResolvedPlan) -> None:
    """Check that a race can measure a plan.

    Raises:
        PlanError: The plan trains in a cluster, of which this machine is a part.
    """
    check_measurable(resolved.strategy, resolved.cluster)


def find_configurations(
    resolved: ResolvedPlan, devices: Sequence[Device], kinds: Collection[ConfigurationKind] = tuple(ConfigurationKind)
) -> ConfigurationList:
    """Find the configurations of a plan, each with one change, without those that come to the same as another one.

    Args:
        resolved: The plan, checked and placed, with what is known of its data.
        devices: The machine's devices.
        kinds: What may change.
    """
    reference = Configuration(REFERENCE, resolved.plan)
    seen, others, refused = [effective(resolved, devices)], list[Configuration](), list[UnsupportedConfiguration]()
    for title, kind, changes in _changes(resolved, devices):
        differing = {name: value for name, value in changes.items() if getattr(resolved.plan, name) != value}
        if kind not in kinds or not differing:
            continue
        configuration, problem = _configuration(resolved, devices, title, differing, (kind,))
        if problem:
            refused.append(UnsupportedConfiguration(configuration, problem))
            continue
        key = effective(_resolved(resolved, devices, configuration.plan, differing), devices)
        if key not in seen:
            seen.append(key)
            others.append(configuration)
    return ConfigurationList(reference, tuple(others), tuple(refused))


def combine(
    resolved: ResolvedPlan, devices: Sequence[Device], winners: Sequence[Configuration]
) -> Configuration | None:
    """The changes of several configurations together, as far as the machine allows; ``None`` if fewer than two remain.

    Args:
        resolved: The reference, checked and placed.
        devices: The machine's devices.
        winners: The configurations, the fastest first; of each kind only the first one counts.
    """
    changes, used = dict[str, Any](), list[Configuration]()
    for winner in winners:
        if winner.changes_training or {kind for each in used for kind in each.kinds} & {*winner.kinds}:
            continue
        together = {**changes, **winner.changes}
        if not _configuration(resolved, devices, COMBINED, together, ())[1]:
            changes = together
            used.append(winner)
    if len(used) < 2:
        return None
    title = f"{COMBINED}: {', '.join(configuration.title for configuration in used)}"
    return _configuration(
        resolved, devices, title, changes, tuple(kind for configuration in used for kind in configuration.kinds)
    )[0]


def effective(resolved: ResolvedPlan, devices: Sequence[Device]) -> dict[str, Any]:
    """The fields of a plan with what ``auto`` and defaults stand for in a race, so that equal plans are equal.

    A race leaves the choice of XLA and of micro-batches to no measurement: ``auto`` is without them.

    Args:
        resolved: The plan, placed on devices.
        devices: The machine's devices.
    """
    plan, placement, counts = resolved.plan, resolved.placement, resolved.step_counts
    on_tpu, on_cpu = resolved.strategy.kind == "tpu", placement is not None and placement.kind == "cpu"
    values = plan.to_mapping()
    return values | {
        "name": "",
        "force": "off",
        "precision": plan.policy,
        "xla": "on" if on_tpu or plan.xla == "on" else "off",
        "micro_batches": plan.micro_batches or 1,
        "threads": (plan.threads or _cores(devices)) if on_cpu else None,
        "layer_kernels": "off" if on_tpu or (on_cpu and plan.xla == "on") else plan.layer_kernels,
        "strategy": "default" if plan.strategy == "one-device" else plan.strategy,
        "devices": list(placement.devices) if placement else values["devices"],
        "batch_size": counts.global_batch if counts else plan.batch_size,
    }


def _configuration(
    reference: ResolvedPlan,
    devices: Sequence[Device],
    title: str,
    changes: Mapping[str, Any],
    kinds: tuple[ConfigurationKind, ...],
) -> tuple[Configuration, str]:
    """A configuration, and why it cannot be run; empty if it can."""
    try:
        plan = reference.plan.replace(**changes)
    except PlanError as error:
        return Configuration(title, reference.plan, changes, kinds), error.allowed
    resolved = _resolved(reference, devices, plan, changes)
    is_synchronous = not resolved.strategy.coordinated
    updates_differ = is_synchronous and reference.strategy.coordinated
    configuration = Configuration(title, plan, changes, kinds, updates_differ)
    try:
        check_measurable(resolved.strategy, resolved.cluster)
    except PlanError as error:
        return configuration, error.allowed
    if not (is_synchronous or reference.strategy.coordinated):
        reason = "its workers update the weights at different times, which trains differently"
        return configuration, f"{reason}{_how_to_measure(plan)}"
    if not reference.strategy.processes and (reason := isolation.why_reachable(resolved)):
        return configuration, f"others could run code through the ports of its workers: {reason}{_how_to_measure(plan)}"
    if resolved.environment_error:
        return configuration, resolved.environment_error
    return configuration, next((join_words(reason) for reason in resolved.errors.values()), "")


def _how_to_measure(plan: Plan) -> str:
    options = f"--strategy {plan.strategy} --local-workers {plan.local_workers or 'N'}"
    return f"; to measure it, race with {options}"


def _resolved(reference: ResolvedPlan, devices: Sequence[Device], plan: Plan, changes: Collection[str]) -> ResolvedPlan:
    """A changed plan; what the reference has besides, such as a limit of the GPUs' memory, refuses no change."""
    return resolve(plan, devices, chosen=changes).with_data(reference.data)


def _changes(
    resolved: ResolvedPlan, devices: Sequence[Device]
) -> Iterator[tuple[str, ConfigurationKind, dict[str, Any]]]:
    """A title, a kind and the changed fields of each configuration, whether the machine allows it or not."""
    plan = resolved.plan
    on_cpu = resolved.placement is not None and resolved.placement.kind == "cpu"
    yield from _device_changes(plan, devices, on_cpu=on_cpu)
    yield (
        ("no XLA", ConfigurationKind.XLA, {"xla": "off"})
        if plan.xla == "on"
        else ("XLA", ConfigurationKind.XLA, {"xla": "on"})
    )
    for precision in PRECISIONS[1:]:
        if precision != plan.policy:
            yield precision, ConfigurationKind.PRECISION, {"precision": precision}
    if plan.micro_batches:
        yield "no micro-batches", ConfigurationKind.MICRO_BATCHES, {"micro_batches": 1}
    for count in MICRO_BATCHES:
        yield f"{count} micro-batches", ConfigurationKind.MICRO_BATCHES, {"micro_batches": count}
    is_on = plan.remat == "on"
    yield (
        "no rematerialization" if is_on else "rematerialization",
        ConfigurationKind.REMAT,
        {"remat": "off" if is_on else "on"},
    )
    if on_cpu:
        yield from _cpu_changes(resolved, devices)
    for factor in BATCH_FACTORS:
        size = max(1, int(plan.batch_size * factor))
        yield f"batch size {size:,}", ConfigurationKind.BATCH_SIZE, {"batch_size": size}


def _device_changes(
    plan: Plan, devices: Sequence[Device], *, on_cpu: bool
) -> Iterator[tuple[str, ConfigurationKind, dict[str, Any]]]:
    """One device of each name, then the strategies for several; with several workers, one for each GPU."""
    kind = ConfigurationKind.DEVICES
    alone = {"local_workers": 0, "isolate_workers": "auto", "reduction": "auto"} if plan.local_workers else {}
    named = {(device.kind, device.name): device.id for device in reversed(devices) if device.kind != "tpu"}
    for name in sorted({"cpu:0", *named.values()}):
        title = f"{name}, one process" if alone else name
        yield title, kind, {"strategy": "default", "devices": (name,), "virtual_cpus": 1, **alone}
    gpus = sum(device.kind == "gpu" for device in devices)
    for entry in strategies.CATALOGUE.values():
        if entry.name in ("default", "one-device"):
            continue
        if entry.name == "mirrored" and on_cpu and _cores(devices) > 1:
            virtual = {"strategy": entry.name, "devices": (), "virtual_cpus": 2, **alone}
            yield "mirrored on 2 virtual CPUs", kind, virtual
            continue
        has_workers = entry.processes and not entry.coordinated
        on_all = gpus > 1 and (has_workers or entry.minimum_devices > 1)
        workers = {"local_workers": gpus} if on_all and has_workers else {} if entry.processes else alone
        title = f"{entry.name} on {gpus} GPUs" if on_all else entry.name
        yield title, kind, {"strategy": entry.name, "devices": (), **workers}


def _cpu_changes(
    resolved: ResolvedPlan, devices: Sequence[Device]
) -> Iterator[tuple[str, ConfigurationKind, dict[str, Any]]]:
    cores = _cores(devices)
    if resolved.plan.threads is not None:
        yield "all threads", ConfigurationKind.THREADS, {"threads": None}
    for count in dict.fromkeys((1, max(1, cores // 2))):
        yield f"{numbers.counted(count, 'thread')}", ConfigurationKind.THREADS, {"threads": count}
    is_off = resolved.plan.layer_kernels == "off"
    title = "our kernels" if is_off else "Keras' kernels"
    yield title, ConfigurationKind.LAYER_KERNELS, {"layer_kernels": "auto" if is_off else "off"}


def _cores(devices: Sequence[Device]) -> int:
    return next((device.cores for device in devices if device.kind == "cpu"), 1)
