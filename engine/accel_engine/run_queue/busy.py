"""Finds the runs that a plan would share its devices with."""

from collections.abc import Sequence

from accel_engine.devices.device_types import Device
from accel_engine.errors import AccelError
from accel_engine.plan import Plan
from accel_engine.plan.placement import resolve_placement
from accel_engine.run.runs.devices_in_use import devices_in_use


def busy_runs(plan: Plan, devices: Sequence[Device]) -> list[str]:
    """Ids of the live runs that train on the plan's devices, or on unknown ones.

    Args:
        plan: The plan.
        devices: The devices of the machine.
    """
    try:
        placement = resolve_placement(plan, devices)
    except AccelError:  # the run's creation reports it
        return []
    wanted = set(map(_physical, placement.devices))
    return [
        each.run for each in devices_in_use() if not each.devices or wanted.intersection(map(_physical, each.devices))
    ]


def _physical(device: str) -> str:
    """TensorFlow's virtual CPUs are all the same one."""
    return "cpu" if device.startswith("cpu") else device
