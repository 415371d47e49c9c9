"""The devices that a run was trained on, as far as the run itself and this machine know them."""

from accel_engine.devices.reading import Device, Inventory
from accel_tui.state import RunState


def inventory_of(state: RunState, here: Inventory | None) -> Inventory | None:
    """The devices that the run trains on, then the others that it has readings of.

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
    if not ids:
        return here
    return Inventory(tuple(known.get(id_) or Device(id_, id_.partition(":")[0], described.get(id_, "")) for id_ in ids))


def _order(device: str) -> tuple[str, int]:
    kind, _, number = device.partition(":")
    return kind, int(number) if number.isdecimal() else 0
