"""Warns of runs that train on devices that are about to be measured."""

from collections.abc import Iterator, Sequence

from accel_engine.run.runs.devices_in_use import runs_on


def warnings(measured: Sequence[str], *, can_choose: bool = True) -> Iterator[str]:
    """A warning for each run that trains on one of the devices, or on unknown ones.

    Args:
        measured: Such as ``cpu``, ``gpu`` or ``gpu:1``; empty for all devices.
        can_choose: Whether the user can choose other devices.
    """
    for each in runs_on(measured):
        where = f" on {', '.join(each.devices)}" if each.devices else ""
        yield (
            f"run {each.run} is training{where}: the measurements are not those of an idle machine, and either may "
            f"run out of memory; stop the run{', or choose other devices' if can_choose else ' before'}"
        )
