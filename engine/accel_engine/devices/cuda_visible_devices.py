"""Which GPUs CUDA shows a program, as ``CUDA_VISIBLE_DEVICES`` has it.

The rules are those of NVIDIA's CUDA C++ Programming Guide, "CUDA Environment Variables".
"""

from collections.abc import Sequence

from accel_engine.devices.reading import Device


def visible_gpus(shown: str | None, gpus: Sequence[Device]) -> tuple[str, ...]:
    """Find the GPUs that CUDA shows.

    Args:
        shown: The variable: indexes, UUIDs or beginnings of them, with commas between; ``None`` where it is not set.
        gpus: The GPUs of the machine, in the order of their PCI bus ids.

    Returns:
        Their ids in CUDA's order, up to the first name that is none. A GPU that shows an instance (MIG) is one of them.
    """
    if shown is None:
        return tuple(gpu.id for gpu in gpus)
    found: list[str] = []
    for name in (part.strip() for part in shown.split(",")):
        matching = [gpu.id for index, gpu in enumerate(gpus) if _is_meant(name, index, gpu)]
        if len(matching) != 1:
            break
        found += matching
    return tuple(found)


def _is_meant(name: str, index: int, gpu: Device) -> bool:
    if name.isdecimal():
        return int(name) == index
    # An instance used to be called by its GPU: MIG-GPU-<UUID>/<GPU instance>/<compute instance>.
    whole = name.removeprefix("MIG-").partition("/")[0] if name.startswith("MIG-GPU-") else name
    return whole.startswith(("GPU-", "MIG-")) and any(uuid.startswith(whole) for uuid in gpu.uuids)
