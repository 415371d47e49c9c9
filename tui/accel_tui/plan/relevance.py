"""Determines which fields of a plan are relevant, given the other fields.

The form hides irrelevant fields; they have their default in the plan.
"""

from collections.abc import Callable, Mapping, Sequence

from accel_engine.devices.device_types import Device
from accel_engine.models import UserModel
from accel_engine.plan import DEFAULTS, Plan
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve

Devices = Sequence[Device] | None
Rule = Callable[[ResolvedPlan, Devices], bool]


def is_relevant(name: str, resolved: ResolvedPlan, devices: Devices) -> bool:
    """Whether a field is relevant.

    Args:
        name: The field.
        resolved: The plan, which may have values in irrelevant fields.
        devices: The devices of the machine; ``None`` before they are known, when fields of special
            hardware are relevant if they have a value.
    """
    rule = _RULES.get(name)
    return rule is None or rule(resolved, devices)


def drop_irrelevant(plan: Plan, devices: Devices) -> Plan:
    """Return the plan with irrelevant fields at their default."""
    resolved = resolve(plan)
    return plan.replace(**{name: DEFAULTS[name] for name in _RULES if not is_relevant(name, resolved, devices)})


def _kind(resolved: ResolvedPlan, devices: Devices) -> str:
    """The kind of device that would train; empty while unknown."""
    plan = resolved.plan
    if resolved.strategy.kind:
        return resolved.strategy.kind
    if plan.devices:
        return plan.devices[0].lower().partition(":")[0]
    if plan.virtual_cpus > 1:
        return "cpu"
    if devices is None:
        return ""
    return "gpu" if _gpus(devices) else "cpu"


def _gpus(devices: Devices) -> int:
    return sum(device.kind == "gpu" for device in devices or ())


def _splits_cpu(resolved: ResolvedPlan, devices: Devices) -> bool:
    # With a single GPU, logical CPU devices are the only way to test a multi-device strategy.
    kind = _kind(resolved, devices)
    return kind in ("cpu", "") or (kind == "gpu" and not resolved.plan.devices and _gpus(devices) == 1)


def _on_gpus(name: str) -> Rule:
    def rule(resolved: ResolvedPlan, devices: Devices) -> bool:
        kind = _kind(resolved, devices)
        return kind == "gpu" or (not kind and getattr(resolved.plan, name) != DEFAULTS[name])

    return rule


def _has_own_model_or_data(resolved: ResolvedPlan) -> bool:
    """Whether the data or the model is the user's own; built-in ones need no scaling option."""
    return resolved.data.path is not None or isinstance(resolved.model, UserModel)


_RULES: Mapping[str, Rule] = {
    "devices": lambda resolved, _: resolved.strategy.kind != "tpu",  # a TPU is used as a whole
    "virtual_cpus": _splits_cpu,
    "force": lambda resolved, devices: (
        resolved.plan.precision == "mixed_float16" and _kind(resolved, devices) in ("cpu", "")
    ),
    "cpu_kernels": lambda resolved, devices: _kind(resolved, devices) in ("cpu", ""),
    "memory_growth": _on_gpus("memory_growth"),
    "memory_limit": _on_gpus("memory_limit"),
    "reduction": lambda resolved, _: len(resolved.strategy.reductions) > 1,
    "local_workers": lambda resolved, _: resolved.strategy.processes,
    "tpu": lambda resolved, _: resolved.strategy.kind == "tpu",
    "rate_scaling": lambda resolved, _: resolved.strategy.maximum_devices != 1,
    "image_size": lambda resolved, _: resolved.data.reader == "image_folder",
    "scale": lambda resolved, _: _has_own_model_or_data(resolved) or resolved.plan.scale != DEFAULTS["scale"],
}
"""The rules of the fields that are not always relevant."""
