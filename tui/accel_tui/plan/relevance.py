"""Which fields of a plan mean something for what else is chosen; no widgets.

A form shows no others, and they count as left at their default: what cannot be seen is not in the plan.
"""

from collections.abc import Callable, Mapping, Sequence

from accel_engine import data, models, strategies
from accel_engine.devices.reading import Device
from accel_engine.models import UserModel
from accel_engine.plan import DEFAULTS, Plan

Devices = Sequence[Device] | None


def relevant(name: str, plan: Plan, devices: Devices) -> bool:
    """Whether a field means something.

    Args:
        name: The field.
        plan: What is chosen; other fields that mean nothing may be filled in.
        devices: The machine's; ``None`` before they are known, when what only some machines have means
            something if it is filled in.
    """
    rule = _RULES.get(name)
    return rule is None or rule(plan, devices)


def sensible(plan: Plan, devices: Devices) -> Plan:
    """The plan with every field at its default that means nothing."""
    return plan.replace(**{name: DEFAULTS[name] for name in _RULES if not relevant(name, plan, devices)})


def _kind(plan: Plan, devices: Devices) -> str:
    """The kind of device that would train; empty while that is not known."""
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
    # Beside a single GPU, the parts of a CPU are the only way to try a strategy for many devices.
    kind = _kind(plan, devices)
    return kind in ("cpu", "") or (kind == "gpu" and not plan.devices and _gpus(devices) == 1)


def _on_gpus(name: str) -> Callable[[Plan, Devices], bool]:
    def rule(plan: Plan, devices: Devices) -> bool:
        kind = _kind(plan, devices)
        return kind == "gpu" or (not kind and getattr(plan, name) != DEFAULTS[name])

    return rule


def _brings_own(plan: Plan) -> bool:
    """Whether the data or the model is the user's own: the catalogue's go together as they are."""
    return data.find(plan.data).path is not None or isinstance(models.find(plan.model), UserModel)


_RULES: Mapping[str, Callable[[Plan, Devices], bool]] = {
    "devices": lambda plan, _: strategies.find(plan.strategy).kind != "tpu",  # it is used as a whole
    "virtual_cpus": _splits_cpu,
    "force": lambda plan, devices: plan.precision == "mixed_float16" and _kind(plan, devices) in ("cpu", ""),
    "memory_growth": _on_gpus("memory_growth"),
    "memory_limit": _on_gpus("memory_limit"),
    "reduction": lambda plan, _: len(strategies.find(plan.strategy).reductions) > 1,
    "local_workers": lambda plan, _: strategies.find(plan.strategy).processes,
    "tpu": lambda plan, _: strategies.find(plan.strategy).kind == "tpu",
    "rate_scaling": lambda plan, _: strategies.find(plan.strategy).maximum_devices != 1,
    "image_size": lambda plan, _: data.find(plan.data).reader == "folder",
    "scale": lambda plan, _: _brings_own(plan) or plan.scale != DEFAULTS["scale"],
}
"""Of the fields that do not always mean something."""
