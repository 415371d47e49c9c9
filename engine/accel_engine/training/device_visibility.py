"""Which devices TensorFlow may touch, decided before it first touches any.

TensorFlow fixes its logical devices at its first operation, so :func:`configure` comes before it.
"""

import os
import re

import tensorflow as tf
from tensorflow.python.client import device_lib

from accel_engine.devices import find_by_address
from accel_engine.devices.cuda_visible_devices import visible_gpus
from accel_engine.devices.reading import Device, Inventory
from accel_engine.devices.tpu_chips import runtime_devices
from accel_engine.errors import PlanError
from accel_engine.plan import Plan
from accel_engine.strategies import resolve_placement

GIB, MIB = 1 << 30, 1 << 20

_BUS_ID = re.compile(r"pci bus id: ([0-9a-fA-F:.]+)")
_NAME = re.compile(r"name: ([^,]+)")


def configure(plan: Plan, inventory: Inventory) -> tuple[str, ...]:
    """Show TensorFlow the devices of the plan and hide the others.

    GPU memory is taken as it is needed, unless the plan sets a limit, which is taken at once.

    Returns:
        TensorFlow's names of the logical devices to train on, such as ``("GPU:0", "GPU:1")``.

    Raises:
        PlanError: The plan's devices are not there, or not for TensorFlow.
    """
    physical = tf.config.list_physical_devices("GPU")
    visible = _visible(inventory)
    usable = _usable(inventory)
    wanted = plan.devices
    hidden = [name for name in wanted if name in {device.id for device in inventory.devices} - {d.id for d in usable}]
    if hidden:
        raise PlanError(
            "devices", ",".join(wanted), f"TensorFlow does not see {', '.join(hidden)} (is this its CUDA build?)"
        )
    chosen = resolve_placement(plan, usable).devices
    gpus = [visible.index(name) for name in chosen if name.startswith("gpu:")]
    tf.config.set_visible_devices([physical[index] for index in gpus], "GPU")
    for index in gpus:
        if plan.memory_limit is not None:
            limit = tf.config.LogicalDeviceConfiguration(memory_limit=plan.memory_limit * GIB // MIB)
            tf.config.set_logical_device_configuration(physical[index], [limit])
        else:
            tf.config.experimental.set_memory_growth(physical[index], plan.memory_growth == "on")
    if plan.virtual_cpus > 1:
        host = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(
            host, [tf.config.LogicalDeviceConfiguration() for _ in range(plan.virtual_cpus)]
        )
    if gpus:
        return tuple(f"GPU:{index}" for index in range(len(gpus)))
    return tuple(name.upper() for name in chosen)


def found(names: tuple[str, ...], inventory: Inventory) -> tuple[dict[str, str], ...]:
    """Say what TensorFlow's devices are, matched to the hardware by PCI bus id, cores of a TPU by their order."""
    if names[0].startswith("TPU"):
        return _found_cores(names, inventory)
    descriptions = {
        device.name.removeprefix("/device:"): device.physical_device_desc for device in device_lib.list_local_devices()
    }
    devices = []
    for name in names:
        kind = name.partition(":")[0].lower()
        description = descriptions.get(name, "")
        bus = _BUS_ID.search(description)
        match = find_by_address(inventory, bus[1]) if bus else None
        same = match.id if match else "cpu:0" if kind == "cpu" else ""
        devices.append({"name": name, "kind": kind, "description": description, "device": same})
    return tuple(devices)


def found_at_workers() -> tuple[dict[str, str], ...]:
    """Say what the workers take steps on, as their coordinator sees it: GPUs where there are any, else CPUs."""
    there = [tf.DeviceSpec.from_string(device.name) for device in tf.config.list_logical_devices()]
    theirs = [device for device in there if device.job == "worker"]
    kind = "GPU" if any(device.device_type == "GPU" for device in theirs) else "CPU"
    return tuple(
        {
            "name": f"worker {device.task} {kind}:{device.device_index}",
            "kind": kind.lower(),
            "description": device.to_string(),
            "device": "",
        }
        for device in theirs
        if device.device_type == kind
    )


def _found_cores(names: tuple[str, ...], inventory: Inventory) -> tuple[dict[str, str], ...]:
    """Say what the cores of a TPU are; only those of this machine are chips of the inventory."""
    cores, chips = [core.name for core in tf.config.list_logical_devices("TPU")], inventory.of_kind("tpu")
    each = runtime_devices(chips[0]) if chips else 1
    here = len(cores) == len(chips) * each and not any("/job:worker" in core for core in cores)
    return tuple(
        {"name": name, "kind": "tpu", "description": core, "device": chips[index // each].id if here else ""}
        for index, (name, core) in enumerate(zip(names, cores, strict=True))
    )


def hardware(devices: tuple[dict[str, str], ...], inventory: Inventory) -> tuple[str, ...]:
    """What the makers call the devices that were found; nothing where neither the hardware nor TensorFlow says."""
    names = {device.id: device.name for device in inventory.devices}
    told = [_NAME.search(device["description"]) for device in devices]
    return tuple(
        names.get(device["device"]) or (name[1] if name else "") for device, name in zip(devices, told, strict=True)
    )


def hardware_of_workers(plan: Plan, inventory: Inventory) -> tuple[str, ...]:
    """What the makers call the devices of a worker that this process hands steps to; nothing for another machine's."""
    if not plan.local_workers:
        return ()
    names = {device.id: device.name for device in inventory.devices}
    return tuple(names.get(device, "") for device in resolve_placement(plan, _usable(inventory), {}).devices)


def memory(names: tuple[str, ...], plan: Plan, inventory: Inventory) -> int | None:
    """Bytes of memory that each of these devices has for the plan at least; ``None`` for the host's own.

    0 for a TPU, where examples do not stay: its compiler would choose how they lie in memory, at many times
    their size where a side is short.
    """
    if names[0].startswith("TPU"):
        return 0
    if names[0].startswith("CPU"):
        return None
    chosen = resolve_placement(plan, _usable(inventory)).devices
    sizes = [device.memory for device in inventory.devices if device.id in chosen and device.memory is not None]
    if plan.memory_limit is not None:
        sizes.append(int(plan.memory_limit * GIB))
    return min(sizes, default=None)


def _usable(inventory: Inventory) -> list[Device]:
    """The machine's devices, without GPUs that TensorFlow does not see."""
    visible = _visible(inventory)
    return [device for device in inventory.devices if device.kind != "gpu" or device.id in visible]


def _visible(inventory: Inventory) -> tuple[str, ...]:
    """Ids of the GPUs that TensorFlow sees, in its order; fewer than CUDA is told to show where it cannot use them."""
    shown = visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"), inventory.of_kind("gpu"))
    return shown[: len(tf.config.list_physical_devices("GPU"))]
