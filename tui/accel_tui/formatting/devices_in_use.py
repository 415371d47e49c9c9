"""Warns of runs that train on devices that are about to be measured."""

from collections.abc import Iterator, Sequence

from accel_engine.run.devices_in_use import devices_in_use


def warnings(measured: Sequence[str], *, can_choose: bool = True) -> Iterator[str]:
    """A warning for each run that trains on one of the devices, or on unknown ones.

    Args:
        measured: Such as ``cpu``, ``gpu`` or ``gpu:1``; empty for all devices.
        can_choose: Whether the user can choose other devices.
    """
    for each in devices_in_use():
        shared = [device for device in each.devices if not measured or _names(device) & set(measured)]
        if shared or not each.devices:
            where = f" on {', '.join(shared)}" if shared else ""
            yield (
                f"run {each.run} is training{where}: the measurements are not those of an idle machine, and either may "
                f"run out of memory; stop the run{', or choose other devices' if can_choose else ' before'}"
            )


def _names(device: str) -> set[str]:
    """The ways to name a device; TensorFlow has a single CPU, ``cpu:0``, and runs may have virtual ones."""
    kind = device.partition(":")[0]
    return {kind, "cpu:0"} if kind == "cpu" else {kind, device}
