"""Restricts TensorFlow to a plan's devices and describes them.

TensorFlow fixes its logical devices at its first operation, so :func:`configure` must run before it.
"""

import os
import re
from dataclasses import replace

import tensorflow as tf

from accel_engine.devices import find_by_address
from accel_engine.devices.cuda_visible_devices import visible_gpus
from accel_engine.devices.device_types import Device, Inventory
from accel_engine.devices.host_probe import processors
from accel_engine.devices.nvidia_queries import NVML_PROBLEMS
from accel_engine.devices.pci_address import is_newer
from accel_engine.devices.tpu_chips import runtime_devices
from accel_engine.errors import FieldValue, PlanError, UsageError
from accel_engine.events import TensorFlowDevice
from accel_engine.memory import available_memory
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.private_names.tensorflow_names import local_devices
from accel_engine.requests.protocol.request import ComputeDevice

GIB, MIB = 1 << 30, 1 << 20

BUS_ID = re.compile(r"pci bus id: ([0-9a-fA-F:.]+)")
"""The address in TensorFlow's description of a GPU."""

_NAME = re.compile(r"name: ([^,]+)")


def with_tensorflow_gpus(inventory: Inventory) -> Inventory:
    """An inventory with the GPUs that TensorFlow sees, where the driver's management library finds none.

    So it is in a container without that library, on a Jetson and with some virtual GPUs. Nothing can be read of them:
    the inventory still has the reason.
    """
    if inventory.of_kind("gpu"):
        return inventory
    found = [tf.config.experimental.get_device_details(gpu) for gpu in tf.config.list_physical_devices("GPU")]
    gpus = (Device(f"gpu:{index}", "gpu", each.get("device_name", "GPU")) for index, each in enumerate(found))
    return replace(inventory, devices=(*inventory.devices, *gpus))


def missing_readings(inventory: Inventory) -> str:
    """The missing readings of GPUs that only TensorFlow finds, and why; empty without such GPUs."""
    reason = inventory.why_unavailable("gpu") if inventory.of_kind("gpu") else ""
    if not reason:
        return ""
    reason = NVML_PROBLEMS.get(reason, reason)
    return f"training on a GPU of which utilization, memory and power cannot be shown: {reason} (see accel-tui doctor)"


def are_newer_than_build() -> bool:
    """Whether one of the visible GPUs is of a newer generation than this build of TensorFlow has code for."""
    built = tf.sysconfig.get_build_info().get("cuda_compute_capabilities", ())
    details = [tf.config.experimental.get_device_details(gpu) for gpu in tf.config.get_visible_devices("GPU")]
    return any(is_newer(".".join(map(str, each.get("compute_capability", ()))), built) for each in details)


def use_for_request(device: ComputeDevice) -> ComputeDevice:
    """Prepare the device of a request; returns the one that computes.

    Numbers of 32 bits are not rounded to TensorFloat-32, so that results on GPUs equal the CPU's except for the order
    of sums.

    Raises:
        UsageError: TensorFlow cannot use the GPU that the user chose.
    """
    if not device.is_gpu:
        return device
    problem = ""
    if not tf.config.list_physical_devices("GPU"):
        problem = f"TensorFlow cannot use {device.id}: see accel-tui doctor"
        if device.is_required:
            raise UsageError(problem)
    elif not device.is_required and are_newer_than_build():
        problem = f"{device.id} is newer than this build of TensorFlow"
    if problem:
        tf.config.set_visible_devices([], "GPU")
        return ComputeDevice(why=problem)
    tf.config.experimental.enable_tensor_float_32_execution(False)
    if not device.name:
        details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
        return replace(device, name=details.get("device_name", "GPU"))
    return device


def place_on_visible(resolved: ResolvedPlan, inventory: Inventory) -> ResolvedPlan:
    """Place a plan on the devices of the machine that TensorFlow sees.

    Raises:
        PlanError: The plan's devices are not available, or TensorFlow does not see them.
        UsageError: The environment numbers GPUs in an order that cannot be known.
    """
    wanted, usable = resolved.plan.devices, _usable(resolved.plan, inventory)
    hidden = [name for name in wanted if name in {device.id for device in inventory.devices} - {d.id for d in usable}]
    if not inventory.of_kind("gpu"):  # the plan may name one that nothing but TensorFlow can find
        hidden += [name for name in wanted if name.lower().startswith("gpu:")]
    if hidden:
        raise PlanError("devices", wanted, f"TensorFlow does not see {', '.join(hidden)} (is this its CUDA build?)")
    return resolved.with_devices(usable)


def configure(resolved: ResolvedPlan, inventory: Inventory, threads: int | None = None) -> tuple[str, ...]:
    """Make the devices of a placed plan visible to TensorFlow and hide the others.

    GPU memory grows on demand, unless the plan sets a limit, which is allocated at once.

    Args:
        resolved: The plan.
        inventory: The machine's devices.
        threads: Threads per operation on the CPU; ``None`` for the environment's, or else TensorFlow's own.

    Returns:
        TensorFlow's names of the logical devices to train on, such as ``("GPU:0", "GPU:1")``.

    Raises:
        PlanError: XLA would end the process on them.
    """
    plan, chosen = resolved.plan, resolved.placement.devices if resolved.placement else ()
    if threads is not None:
        set_threads(threads)
    physical, names = tf.config.list_physical_devices("GPU"), [name for name in chosen if name.startswith("gpu:")]
    visible = _visible(inventory) if names else ()
    gpus = [visible.index(name) for name in names]
    tf.config.set_visible_devices([physical[index] for index in gpus], "GPU")
    if plan.xla == "on" and plan.force == "off" and gpus and are_newer_than_build():
        reason = (
            "ends the process on a GPU that is newer than this build of TensorFlow: use auto, NVIDIA's container, or "
        )
        raise PlanError("xla", plan.xla, reason, FieldValue("force", "on"), " to try it anyway")
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


def describe_devices(names: tuple[str, ...], inventory: Inventory) -> tuple[TensorFlowDevice, ...]:
    """Describe TensorFlow's devices, matched to the hardware by PCI bus id, a TPU's cores by their order."""
    if names[0].startswith("TPU"):
        return _describe_cores(names, inventory)
    local = local_devices()
    devices = []
    for name in names:
        kind = name.partition(":")[0].lower()
        description = local[name].description if name in local else ""
        bus = BUS_ID.search(description)
        match = find_by_address(inventory, bus[1]) if bus else None
        same = match.id if match else "cpu:0" if kind == "cpu" else ""
        devices.append(TensorFlowDevice(name, kind, description, same))
    return tuple(devices)


def describe_worker_devices() -> tuple[TensorFlowDevice, ...]:
    """Describe the devices of the workers, as their coordinator sees them: GPUs, or CPUs if there are none."""
    every = [tf.DeviceSpec.from_string(device.name) for device in tf.config.list_logical_devices()]
    remote = [device for device in every if device.job == "worker"]
    kind = "GPU" if any(device.device_type == "GPU" for device in remote) else "CPU"
    return tuple(
        TensorFlowDevice(f"worker {device.task} {kind}:{device.device_index}", kind.lower(), device.to_string())
        for device in remote
        if device.device_type == kind
    )


def _describe_cores(names: tuple[str, ...], inventory: Inventory) -> tuple[TensorFlowDevice, ...]:
    """Describe the cores of a TPU; only cores of this machine have a chip in the inventory."""
    cores, chips = [core.name for core in tf.config.list_logical_devices("TPU")], inventory.of_kind("tpu")
    per_chip = runtime_devices(chips[0]) if chips else 1
    local = len(cores) == len(chips) * per_chip and not any("/job:worker" in core for core in cores)
    return tuple(
        TensorFlowDevice(name, "tpu", core, chips[index // per_chip].id if local else "")
        for index, (name, core) in enumerate(zip(names, cores, strict=True))
    )


def hardware_names(devices: tuple[TensorFlowDevice, ...], inventory: Inventory) -> tuple[str, ...]:
    """The devices' product names; empty where neither the hardware nor TensorFlow reports one."""
    names = {device.id: device.name for device in inventory.devices}
    reported = [_NAME.search(device.description) for device in devices]
    return tuple(
        names.get(device.device) or (name[1] if name else "") for device, name in zip(devices, reported, strict=True)
    )


def worker_hardware_names(resolved: ResolvedPlan, inventory: Inventory) -> tuple[str, ...]:
    """The product names of a local worker's devices; empty for workers on other machines."""
    if not resolved.plan.local_workers:
        return ()
    chosen = replace(resolved, cluster=None).with_devices(_usable(resolved.plan, inventory)).placement
    names = {device.id: device.name for device in inventory.devices}
    return tuple(names.get(device, "") for device in (chosen.devices if chosen else ()))


def device_memory(names: tuple[str, ...], resolved: ResolvedPlan, inventory: Inventory) -> int | None:
    """The memory that a placed plan may take of each device, in bytes; ``None`` for CPUs, which use host memory.

    It is what was free on the smallest one when it was found, with what this process has taken since. A GPU that shares
    the host's memory has what is free of that. 0, with which datasets are not cached, if it is unknown, and for a TPU:
    its compiler would choose a memory layout that takes many times their size where a dimension is short.
    """
    if names[0].startswith("TPU"):
        return 0
    if names[0].startswith("CPU"):
        return None
    plan, chosen = resolved.plan, resolved.placement.devices if resolved.placement else ()
    gpus = [device for device in inventory.devices if device.id in chosen]
    sizes = [device.memory if device.free is None else device.free for device in gpus if device.memory is not None]
    if any(device.unified for device in gpus):
        sizes.append(available_memory())
    # The driver does not tell the memory, or tells the whole card's, of which a MIG instance is a part.
    if any(device.memory is None or len(device.uuids) > 1 for device in gpus):
        sizes += [local.memory for name, local in local_devices().items() if name in names]
    if plan.memory_limit is not None:
        sizes.append(int(plan.memory_limit * GIB))
    return min(sizes, default=0)


def _usable(plan: Plan, inventory: Inventory) -> list[Device]:
    """The machine's devices, without GPUs that TensorFlow does not see, and with none for a plan on other devices."""
    is_elsewhere = bool(plan.devices) and not any(name.lower().startswith("gpu") for name in plan.devices)
    visible = () if is_elsewhere else _visible(inventory)
    return [device for device in inventory.devices if device.kind != "gpu" or device.id in visible]


def _visible(inventory: Inventory) -> tuple[str, ...]:
    """Ids of the GPUs that TensorFlow sees, in its order."""
    if inventory.why_unavailable("gpu"):  # these are TensorFlow's
        return tuple(gpu.id for gpu in inventory.of_kind("gpu"))
    count, every = len(tf.config.list_physical_devices("GPU")), inventory.of_kind("gpu")
    found = [visible_gpus(os.environ, every, with_faulty=with_faulty) for with_faulty in (False, True)]
    shown = next((shown for shown in found if len(shown) == count), found[0][:count])
    return tuple(gpu.id for gpu in shown)


VARIABLE = "TF_NUM_INTRAOP_THREADS"
"""The environment variable for the number of threads per operation; 0 stands for TensorFlow's own."""


def set_threads(count: int) -> None:
    """Set the threads per operation, instead of the environment's; before TensorFlow's first operation.

    Raises:
        RuntimeError: TensorFlow has run an operation with another number.
    """
    tf.config.threading.set_intra_op_parallelism_threads(count)


def threads_of_user() -> int | None:
    """The threads per operation that the user has set in the environment; ``None`` if they are not set.

    Raises:
        UsageError: The number is negative, with which TensorFlow aborts the process.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    try:
        count = int(text)
    except ValueError:
        return processors()  # as TensorFlow does
    if count < 0:
        raise UsageError(
            f"{VARIABLE} = {count} in the environment: must be at least 1, or 0 for TensorFlow's own number"
        )
    return count or processors()


def threads_in_use() -> int:
    """The number of threads per operation in this process."""
    return tf.config.threading.get_intra_op_parallelism_threads() or threads_of_user() or processors()
