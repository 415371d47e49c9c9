"""The devices that a run was trained on, as far as the run itself and this machine know them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from accel_engine.devices.reading import Device, Inventory
from accel_tui.run.device_meter import Meter
from accel_tui.run.state import RunState


def inventory_of(state: RunState, here: Inventory | None) -> Inventory | None:
    """The devices that the run trains on, then the others that it has readings of, then those of other machines.

    Args:
        state: The run's.
        here: This machine's devices, when the run is this machine's; ``None`` when it is another's or
            they are not known yet.

    Returns:
        This machine's before the run has said a word of devices; ``None`` while nothing is known.
    """
    found = state.devices.devices if state.devices else ()
    described = {device["device"]: device["description"] for device in found if device.get("device")}
    known = {device.id: device for device in here.devices} if here else {}
    # A CPU that is split into several logical devices is one device.
    ids = dict.fromkeys([*described, *sorted(state.meters, key=_order)])
    devices = tuple(known.get(id_) or Device(id_, id_.partition(":")[0], described.get(id_, "")) for id_ in ids)
    inventory = Inventory(devices) if ids else here
    for worker, its in _elsewhere(state):
        theirs = inventory_of(its, None) if inventory else None
        if inventory and theirs:
            named = tuple(replace(device, id=f"{worker} {device.id}") for device in theirs.devices)
            inventory = replace(inventory, devices=(*inventory.devices, *named))
    return inventory


def meters_of(state: RunState) -> Mapping[str, Meter]:
    """Readings of the run's devices and of those on other machines, by the ids of :func:`inventory_of`."""
    theirs = {f"{worker} {id_}": meter for worker, its in _elsewhere(state) for id_, meter in its.meters.items()}
    return {**state.meters, **theirs} if theirs else state.meters


def host_memory_used(state: RunState) -> float | None:
    """The share of its machine's memory that was in use at the last reading; ``None`` where unknown."""
    meter = state.meters.get("cpu:0")
    used, total = (meter.reading(name).value for name in ("memory_used", "memory_total")) if meter else (None, None)
    return used / total if used is not None and total else None


def _elsewhere(state: RunState) -> Iterator[tuple[str, RunState]]:
    """The first worker on every other machine: all workers of a machine read the same devices."""
    seen = {state.info.host if state.info else ""}
    for name, worker in state.workers.items():
        if worker.info and worker.info.host not in seen:
            seen.add(worker.info.host)
            yield name, worker


def _order(device: str) -> tuple[str, int]:
    kind, _, number = device.partition(":")
    return kind, int(number) if number.isdecimal() else 0
