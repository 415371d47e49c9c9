"""The catalogue of strategies: how a step is spread over devices, without TensorFlow.

Says which strategies fit a machine, and why the others do not. Their ``tf.distribute`` forms are
built in :mod:`accel_engine.strategies.builders`, which only the engine process imports.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from accel_engine.devices.reading import Device
from accel_engine.errors import PlanError
from accel_engine.registry import suggestion

__all__ = ["CATALOGUE", "StrategyEntry", "choose_devices", "find", "misfit"]


@dataclass(frozen=True, slots=True)
class StrategyEntry:
    """A strategy that a plan can name.

    Attributes:
        name: What plans call it.
        summary: What it is for, in a line.
        needs: What it needs, in words.
        builder: ``module:function``; called with TensorFlow's logical device names.
        minimum_devices: The fewest devices it makes sense on.
        maximum_devices: The most it uses; 0 for all.
    """

    name: str
    summary: str
    needs: str
    builder: str
    minimum_devices: int = 1
    maximum_devices: int = 0


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


def choose_devices(
    strategy: str, devices: Sequence[Device], wanted: Sequence[str] = (), virtual_cpus: int = 1
) -> tuple[str, ...]:
    """Decide which devices a strategy trains on.

    Args:
        strategy: Its name.
        devices: The devices of the machine.
        wanted: Ids that the user chose; without any, all accelerators of the best kind, else the CPU.
        virtual_cpus: How many logical devices the CPU is split into.

    Returns:
        Ids, where the logical devices of a split CPU are ``cpu:0``, ``cpu:1``, ...

    Raises:
        PlanError: A wanted device is not there, or the strategy does not fit.
    """
    entry = find(strategy)
    there: dict[str, list[str]] = {}
    for device in devices:
        there.setdefault(device.kind, []).append(device.id)
    there["cpu"] = [f"cpu:{index}" for index in range(virtual_cpus)]
    known = [name for names in there.values() for name in names]
    for name in wanted:
        if name.lower() not in known:
            raise PlanError("devices", ",".join(wanted), f"{name} is not here; known: {', '.join(known)}")
    chosen = [name.lower() for name in wanted]
    if len(set(chosen)) < len(chosen):
        raise PlanError("devices", ",".join(wanted), "names a device twice")
    if not chosen:
        best = next((kind for kind in ("gpu", "cpu") if there.get(kind)), "cpu")
        chosen = there["cpu"] if virtual_cpus > 1 else there[best]
        chosen = chosen[: entry.maximum_devices or None]
    if len({name.partition(":")[0] for name in chosen}) > 1:
        raise PlanError("devices", ",".join(chosen), "must be of one kind")
    if len(chosen) < entry.minimum_devices:
        raise PlanError("strategy", strategy, f"needs {entry.needs}; there is only {', '.join(chosen)}")
    if entry.maximum_devices and len(chosen) > entry.maximum_devices:
        raise PlanError("devices", ",".join(chosen), f"strategy {strategy} takes {entry.maximum_devices}")
    return tuple(chosen)


def misfit(strategy: str, devices: Sequence[Device], wanted: Sequence[str] = (), virtual_cpus: int = 1) -> str:
    """Say why a strategy does not fit; nothing when it does."""
    try:
        choose_devices(strategy, devices, wanted, virtual_cpus)
    except PlanError as error:
        return error.allowed
    return ""
