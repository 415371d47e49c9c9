"""Applies ``CUDA_VISIBLE_DEVICES``.

The rules are from NVIDIA's CUDA C++ Programming Guide, "CUDA Environment Variables".
"""

from collections.abc import Mapping, Sequence

from accel_engine.devices.device_types import Device

ORDER, VISIBLE = CHOICE = ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES")
"""The environment variables that choose the GPUs of a process."""


def gpu_choice(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that choose its GPUs, as far as they are set."""
    return {name: environment[name] for name in CHOICE if name in environment}


def choice_of(names: Sequence[str], gpus: Sequence[Device]) -> dict[str, str]:
    """The variables with which a program sees only some GPUs: by UUID, which means the same in every order.

    Args:
        names: Ids of the GPUs, in the order in which the program shall see them.
        gpus: The GPUs of the machine, in the order of their PCI bus ids. One whose UUID is unknown is named by its
            index; of one that is split, the first MIG instance is, which CUDA would take, too.
    """
    places = {gpu.id: gpu.uuids[:2][-1] if gpu.uuids else str(index) for index, gpu in enumerate(gpus)}
    return {ORDER: "PCI_BUS_ID", VISIBLE: ",".join(places[name] for name in names)}


def visible_gpus(variable: str | None, gpus: Sequence[Device]) -> tuple[str, ...]:
    """Find the GPUs that are visible to CUDA.

    Args:
        variable: Its value: comma-separated indexes, UUIDs or prefixes of UUIDs; ``None`` if it is not set.
        gpus: The GPUs of the machine, in the order of their PCI bus ids.

    Returns:
        Ids of the visible GPUs in CUDA's order, up to the first invalid entry. A GPU with a visible MIG instance is
        visible.
    """
    if variable is None:
        return tuple(gpu.id for gpu in gpus)
    ids: list[str] = []
    for entry in (part.strip() for part in variable.split(",")):
        matching = [gpu.id for index, gpu in enumerate(gpus) if _matches(entry, index, gpu)]
        if len(matching) != 1:
            break
        ids += matching
    return tuple(ids)


def _matches(entry: str, index: int, gpu: Device) -> bool:
    if entry.isdecimal():
        return int(entry) == index
    # The old name of an instance: MIG-GPU-<UUID>/<GPU instance>/<compute instance>.
    uuid = entry.removeprefix("MIG-").partition("/")[0] if entry.startswith("MIG-GPU-") else entry
    return uuid.startswith(("GPU-", "MIG-")) and any(each.startswith(uuid) for each in gpu.uuids)
