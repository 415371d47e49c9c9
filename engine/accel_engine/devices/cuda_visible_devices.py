"""Applies ``CUDA_VISIBLE_DEVICES``.

The rules are from NVIDIA's CUDA C++ Programming Guide, "CUDA Environment Variables".
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from accel_engine.devices.device_types import Device
from accel_engine.errors import UsageError

ORDER, VISIBLE = CHOICE = ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES")
"""The environment variables that choose the GPUs of a process."""

_AS_DRIVER = "PCI_BUS_ID"
"""The order in which the driver's tools number GPUs; engines set it where the user sets none."""


def gpu_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that are set and choose its GPUs."""
    return {name: environment[name] for name in CHOICE if name in environment}


def gpu_variables_for(
    names: Sequence[str], gpus: Sequence[Device], environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables with which a program sees only some GPUs: by UUID, which means the same in every order.

    Args:
        names: Ids of the GPUs, in the order in which the program shall see them.
        gpus: The GPUs of the machine, in the order of their PCI bus ids. One whose UUID is unknown is named by CUDA's
            number; of one in MIG mode, the first instance is, which CUDA would take, too.
        environment: The user's variables, which show all of them and may name another MIG instance.

    Raises:
        UsageError: See :func:`visible_gpus`.
    """
    numbers = {gpu.id: str(number) for number, gpu in enumerate(gpu for gpu in gpus if not gpu.problem)}
    shown = visible_gpus(environment or {}, gpus)
    # the first two UUIDs are those of the GPU and of its first MIG instance
    places = {gpu.id: gpu.uuids[:2][-1] if gpu.uuids else numbers[gpu.id] for gpu in shown}
    return {ORDER: _AS_DRIVER, VISIBLE: ",".join(places[name] for name in names)}


def visible_gpus(
    environment: Mapping[str, str], gpus: Sequence[Device], *, with_faulty: bool = False
) -> tuple[Device, ...]:
    """Find the GPUs that are visible to CUDA.

    Args:
        environment: The environment of the process. ``CUDA_VISIBLE_DEVICES`` has comma-separated numbers, UUIDs or
            prefixes of UUIDs; without it, all GPUs are visible.
        gpus: The GPUs of the machine, in the order of their PCI bus ids.
        with_faulty: Whether CUDA numbers GPUs that have a problem, too; in new processes it does not.

    Returns:
        The visible GPUs in CUDA's order, up to the first invalid entry; none if an entry is repeated. A GPU with a
        visible MIG instance is visible; besides its UUID, it has only the UUID of the first instance that is named.

    Raises:
        UsageError: Entries are numbers, and ``CUDA_DEVICE_ORDER`` numbers unlike GPUs in an unknown order.
    """
    numbered = [gpu for gpu in gpus if with_faulty or not gpu.problem]
    if VISIBLE not in environment:
        return tuple(numbered)
    entries = [part.strip() for part in environment[VISIBLE].split(",")]
    _check_order(environment, entries, numbered)
    found: dict[str, Device] = {}
    for place, entry in enumerate(entries):
        matching = [
            replace(gpu, uuids=uuids)
            for number, gpu in enumerate(numbered)
            if (uuids := _matching(entry, number, gpu)) is not None
        ]
        if len(matching) != 1:
            break
        if entry in entries[:place]:
            return ()
        found.setdefault(matching[0].id, matching[0])
    return tuple(found.values())


def _check_order(environment: Mapping[str, str], entries: Sequence[str], gpus: Sequence[Device]) -> None:
    differ = len({gpu.name for gpu in gpus}) > 1
    if differ and environment.get(ORDER, _AS_DRIVER) != _AS_DRIVER and any(map(str.isdecimal, entries)):
        raise UsageError(
            f"{VISIBLE}={environment[VISIBLE]} counts from the fastest GPU ({ORDER}={environment[ORDER]}), and the "
            f"GPUs differ: set {ORDER}={_AS_DRIVER}, or name GPUs by UUID (nvidia-smi -L)"
        )


def _matching(entry: str, number: int, gpu: Device) -> tuple[str, ...] | None:
    """The UUIDs of a GPU and its instances that an entry may mean; ``None`` if it means another GPU."""
    if entry.isdecimal():
        return gpu.uuids if int(entry) == number else None
    own, instances = gpu.uuids[:1], gpu.uuids[1:]
    if entry.startswith("MIG-GPU-"):  # an instance's old name: MIG-GPU-<UUID>/<GPU instance>/<compute instance>
        uuid = entry.removeprefix("MIG-").partition("/")[0]
        return (*own, entry) if own and own[0].startswith(uuid) else None
    if entry.startswith("MIG-"):
        named = tuple(instance for instance in instances if instance.startswith(entry))
        return (*own, *named) if len(named) == 1 else None
    return gpu.uuids if entry.startswith("GPU-") and own and own[0].startswith(entry) else None
