"""Determines which fields of a plan are relevant, given the other fields.

The form hides irrelevant fields; they have their default in the plan.
"""

from collections.abc import Callable, Mapping, Sequence

from accel_engine import data, models, strategies
from accel_engine.devices.device_types import Device
from accel_engine.models import UserModel
from accel_engine.plan import DEFAULTS, Plan

Devices = Sequence[Device] | None


def is_relevant(name: str, plan: Plan, devices: Devices) -> bool:
    """Whether a field is relevant.

    Args:
        name: The field.
        plan: The plan, which may have values in irrelevant fields.
        devices: The devices of the machine; ``None`` before they are known, when fields of special
            hardware are relevant if they have a value.
    """
    rule = _RULES.get(name)
    return rule is None or rule(plan, devices)


def drop_irrelevant(plan: Plan, devices: Devices) -> Plan:
    """Return the plan with irrelevant fields at their default."""
    return plan.replace(**{name: DEFAULTS[name] for name in _RULES if not is_relevant(name, plan, devices)})


def _kind(plan: Plan, devices: Devices) -> str:
    """The kind of device that would train; empty while unknown."""
    if kind := strategies.find(plan.strategy).kind:
        return kind
    if plan.devices:
        return plan.devices[0].lower().partition(":")[0]
    if plan.virtual_cpus > 1:
        return "cpu"
    if devices is None:
        return ""
    return "gpu" if _gpus(devices) else "cpu"


def _gpus(devices: Devices) -> int:
    return sum(device.kind == "gpu" for device in devices or ())


def _splits_cpu(plan: Plan, devices: Devices) -> bool:
    # With a single GPU, logical CPU devices are the only way to test a multi-device strategy.
    kind = _kind(plan, devices)
    return kind in ("cpu", "") or (kind == "gpu" and not plan.devices and _gpus(devices) == 1)


def _on_gpus(name: str) -> Callable[[Plan, Devices], bool]:
    def rule(plan: Plan, devices: Devices) -> bool:
        kind = _kind(plan, devices)
        return kind == "gpu" or (not kind and getattr(plan, name) != DEFAULTS[name])

    return rule


def _has_own_model_or_data(plan: Plan) -> bool:
    """Whether the data or the model is the user's own; built-in ones need no scaling option."""
    return data.find(plan.data).path is not None or isinstance(models.find(plan.model), UserModel)


_RULES: Mapping[str, Callable[[Plan, Devices], bool]] = {
    "devices": lambda plan, _: strategies.find(plan.strategy).kind != "tpu",  # a TPU is used as a whole
    "virtual_cpus": _splits_cpu,
    "force": lambda plan, devices: plan.precision == "mixed_float16" and _kind(plan, devices) in ("cpu", ""),
    "cpu_kernels": lambda plan, devices: _kind(plan, devices) in ("cpu", ""),
    "memory_growth": _on_gpus("memory_growth"),
    "memory_limit": _on_gpus("memory_limit"),
    "reduction": lambda plan, _: len(strategies.find(plan.strategy).reductions) > 1,
    "local_workers": lambda plan, _: strategies.find(plan.strategy).processes,
    "tpu": lambda plan, _: strategies.find(plan.strategy).kind == "tpu",
    "rate_scaling": lambda plan, _: strategies.find(plan.strategy).maximum_devices != 1,
    "image_size": lambda plan, _: data.find(plan.data).reader == "image_folder",
    "scale": lambda plan, _: _has_own_model_or_data(plan) or plan.scale != DEFAULTS["scale"],
}
"""The rules of the fields that are not always relevant."""
