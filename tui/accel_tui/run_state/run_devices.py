"""The devices of a run, from the run itself and from this machine."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from accel_engine.devices.device_types import Device, Inventory
from accel_tui.run_state.device_meter import Meter, unread
from accel_tui.run_state.state import RunState

NOT_SAMPLED = "not sampled by this run"
"""Why an ended run has no readings of a device."""


def inventory_of(state: RunState, here: Inventory | None) -> Inventory | None:
    """The devices that the run trains on, other devices that it samples, and other machines' devices.

    Args:
        state: The run's state.
        here: This machine's devices if the run is on this machine and they are known, else ``None``.

    Returns:
        This machine's devices until the run lists its own; ``None`` while nothing is known; empty for an ended run
        that has listed none, if ``here`` is ``None``.
    """
    if state.has_ended and here is None and not (state.devices or state.meters):
        return Inventory(())
    found = state.devices.devices if state.devices else ()
    described = {device.device: device.description for device in found if device.device}
    known = {device.id: device for device in here.devices} if here else {}
    # A CPU split into several logical devices is one device.
    ids = dict.fromkeys([*described, *sorted(state.meters, key=_order)])
    devices = tuple(known.get(id_) or Device(id_, id_.partition(":")[0], described.get(id_, "")) for id_ in ids)
    inventory = Inventory(devices) if ids else here
    for worker, worker_state in _other_machines(state):
        worker_inventory = inventory_of(worker_state, None) if inventory else None
        if inventory and worker_inventory:
            named = tuple(replace(device, id=f"{worker} {device.id}") for device in worker_inventory.devices)
            inventory = replace(inventory, devices=(*inventory.devices, *named))
    return inventory


def meters_of(state: RunState, inventory: Inventory | None = None) -> Mapping[str, Meter]:
    """Meters of the run's devices and of other machines', by the ids of :func:`inventory_of`.

    Once the run has ended, devices of the inventory that it has not sampled have a meter that says so.
    """
    if state.has_ended and inventory:
        return {**{device.id: unread(device.id, NOT_SAMPLED) for device in inventory.devices}, **_meters(state)}
    return _meters(state)


def _meters(state: RunState) -> Mapping[str, Meter]:
    others = {
        f"{worker} {id_}": meter
        for worker, worker_state in _other_machines(state)
        for id_, meter in worker_state.meters.items()
    }
    return {**state.meters, **others} if others else state.meters


def host_memory_used(state: RunState) -> float | None:
    """Share of the machine's memory in use at the last reading; ``None`` if unknown."""
    meter = state.meters.get("cpu:0")
    used, total = (meter.reading(name).value for name in ("memory_used", "memory_total")) if meter else (None, None)
    return used / total if used is not None and total else None


def _other_machines(state: RunState) -> Iterator[tuple[str, RunState]]:
    """The first worker on every other machine; workers of a machine sample the same devices."""
    seen = {state.info.host if state.info else ""}
    for name, worker in state.workers.items():
        if worker.info and worker.info.host not in seen:
            seen.add(worker.info.host)
            yield name, worker


def _order(device: str) -> tuple[str, int]:
    kind, _, number = device.partition(":")
    return kind, int(number) if number.isdecimal() else 0
