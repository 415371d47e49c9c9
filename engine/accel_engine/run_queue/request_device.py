"""Finds the device that a request on trained models computes on, and keeps it for this request.

``auto`` takes a GPU of the machine only while nothing uses it: no run of this program, no run that the queue has just
started, no other request and no other program. It never takes a TPU, which a process has to itself.
"""

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from accel_engine.devices.cuda_visible_devices import ORDER, VISIBLE, gpu_variables_for, visible_gpus
from accel_engine.devices.device_types import ASLEEP, Device, Reading, Sample
from accel_engine.devices.installation import cuda_cure, find_installation, may_have_unlisted_gpus
from accel_engine.devices.nvidia_gpu import NvidiaProbe
from accel_engine.devices.nvidia_queries import NVML_PROBLEMS
from accel_engine.errors import AccelError, RunError, UsageError
from accel_engine.events import ModelBuilt
from accel_engine.memory import available_memory
from accel_engine.plan.array_bytes import FLOAT32_BYTES
from accel_engine.requests.protocol.model_reference import EXAMPLES_AT_A_TIME, host_of_request
from accel_engine.requests.protocol.request import ComputeDevice, DeviceRequest, EngineRequest
from accel_engine.run import diagnostics
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import home, make_private
from accel_engine.run.engine.status import read_info
from accel_engine.run.store.database import reading
from accel_engine.run.store.stored_events import last_event
from accel_engine.run_queue.decision import IDLE_SECONDS, STAYS_IDLE
from accel_engine.run_queue.free_devices import MachineReader, active_runs, reservation
from accel_engine.run_queue.queue_database import changing_queue, database_path
from accel_engine.run_queue.queue_entries import StoredEntry
from accel_engine.words import numbers

OTHER_MEMORY = 2 << 30
"""Bytes that a request takes on a GPU at most besides weights and outputs of layers: CUDA's context, kernels, and the
workspace of cuDNN. Chosen with a margin, not measured."""

WEIGHT_COPIES = 2
"""Copies of the weights while they are restored."""

POLL_SECONDS = 0.5
"""How often GPUs are read until one has stayed idle."""

READINGS = 10
"""How often a GPU is read until it tells its free memory."""

_Request = TypeVar("_Request", bound=EngineRequest[Any])

Reader = Callable[[], MachineReader]


def _read_gpus() -> MachineReader:
    return MachineReader([NvidiaProbe()])


@contextmanager
def placed(request: _Request, reader: Reader = _read_gpus) -> Iterator[_Request]:
    """The request with its device, which no other request and no run of the queue gets before the end of the block.

    Requests that are not a :class:`DeviceRequest`, and requests that a host answers, are yielded unchanged. Where
    ``auto`` may find an idle GPU, it takes :data:`IDLE_SECONDS` to see that it stays idle.

    Args:
        request: The request.
        reader: Opens what reads the GPUs.

    Raises:
        UsageError: The GPU that the user chose does not exist, cannot be used, or has too little free memory.
        RunError: The request is about runs of several machines.
    """
    if not isinstance(request, DeviceRequest) or request.wanted_device == "cpu" or host_of_request(request):
        yield request
        return
    with ExitStack() as kept:
        with reader() as machine:
            chooser = _Chooser(machine, request.model_paths, kept)
            is_auto = request.wanted_device == "auto"
            device = chooser.idle() if is_auto else chooser.required(request.wanted_device)
        yield replace(request, device=device)


class _Chooser:
    """Chooses a GPU.

    Args:
        machine: Reads the GPUs.
        models: See :attr:`DeviceRequest.model_paths`.
        kept: Gets the reservation of the GPU.
    """

    def __init__(self, machine: MachineReader, models: Sequence[Path], kept: ExitStack) -> None:
        self._machine, self._kept = machine, kept
        self._gpus = [device for device in machine.devices if device.kind == "gpu"]
        self._models = models

    def idle(self) -> ComputeDevice:
        """The first GPU that nothing uses and whose memory suffices; else the CPU, and why.

        Raises:
            UsageError: The environment numbers GPUs in an order that cannot be known.
        """
        if find_installation().distribution == "tensorflow-cpu":
            return ComputeDevice()
        if self._may_have_others:
            reason = NVML_PROBLEMS.get(self._machine.why_no_gpu, self._machine.why_no_gpu)
            return ComputeDevice(why=f"auto cannot tell whether a GPU is idle: {reason}; choose gpu:0 to try one")
        visible = self._visible
        gpus = [visible[gpu.id] for gpu in self._gpus if gpu.id in visible]
        if not gpus:
            return ComputeDevice()
        users = self._users(gpus)
        for gpu in gpus:
            users[gpu.id] = users[gpu.id] or self._lacks_memory(gpu) or self._reserve(gpu)
            if not users[gpu.id]:
                return self._chosen(gpu)
        return ComputeDevice(why="; ".join(f"{gpu} {reason}" for gpu, reason in users.items()))

    def required(self, wanted: str) -> ComputeDevice:
        """The GPU that the user chose.

        Raises:
            UsageError: The GPU cannot be used; the message says why.
        """
        if find_installation().distribution == "tensorflow-cpu" and (self._gpus or self._may_have_others):
            cure = cuda_cure("in a fresh environment, run pip install 'accel-tui[cuda]'")
            raise UsageError(f"{wanted}: tensorflow-cpu uses no GPU; {cure}")
        if self._may_have_others:
            return self._undescribed(wanted)
        gpu = next((gpu for gpu in self._gpus if gpu.id == wanted), None)
        if gpu is None:
            known = ", ".join(["cpu", *(gpu.id for gpu in self._gpus)])
            why = f" ({self._machine.why_no_gpu})" if self._machine.why_no_gpu else ""
            raise UsageError(f"no device {wanted}: this machine has {known}{why}")
        if gpu.problem:
            raise UsageError(f"{wanted} cannot be used, {gpu.problem}; choose another device, or auto")
        if gpu.id not in self._visible:
            raise UsageError(f"{wanted} is hidden by {VISIBLE}={os.environ[VISIBLE]}")
        gpu = self._visible[gpu.id]
        if reason := self._lacks_memory(gpu) or self._reserve(gpu, beside_runs=True):
            raise UsageError(f"{wanted} {reason}; choose another device, or auto")
        return replace(self._chosen(gpu), is_required=True)

    @property
    def _visible(self) -> dict[str, Device]:
        return {gpu.id: gpu for gpu in visible_gpus(os.environ, self._gpus)}

    @property
    def _may_have_others(self) -> bool:
        return bool(self._machine.why_no_gpu) and may_have_unlisted_gpus(self._gpus)

    def _undescribed(self, wanted: str) -> ComputeDevice:
        """A GPU by its number among TensorFlow's: it has no UUID, and TensorFlow decides whether it is there."""
        number, shown = int(wanted.partition(":")[2]), os.environ.get(VISIBLE)
        choice = {ORDER: "PCI_BUS_ID", VISIBLE: str(number)}
        if shown is not None:
            entries = [entry.strip() for entry in shown.split(",")]
            if number >= len(entries):
                raise UsageError(f"{wanted} is hidden by {VISIBLE}={shown}")
            choice = {VISIBLE: entries[number]}
        if reason := self._reserve(Device(wanted, "gpu", ""), beside_runs=True):
            raise UsageError(f"{wanted} {reason}; choose another device, or auto")
        return ComputeDevice(wanted, choice=choice, is_required=True)

    def _users(self, gpus: Sequence[Device]) -> dict[str, str]:
        """Who uses each GPU, once it is known whether those that look idle stay so."""
        until = time.monotonic() + 2 * IDLE_SECONDS
        while True:
            found = self._machine.in_use()
            runs = self._runs()
            users = {gpu.id: runs.get(gpu.id) or found[gpu.id] for gpu in gpus}
            if STAYS_IDLE not in users.values() or time.monotonic() > until:
                return users
            time.sleep(POLL_SECONDS)

    def _runs(self) -> dict[str, str]:
        with suppress(RunError):  # of a queue that cannot be read; nothing is reserved then
            return _devices_of_runs(self._machine.devices)
        return {}

    def _lacks_memory(self, gpu: Device) -> str:
        """Why a GPU's memory does not suffice; empty if it does."""
        free, needed = self._free_memory(gpu), memory_needed(self._models)
        if free is None:
            return "does not tell how much of its memory is free"
        if free >= needed:
            return ""
        return f"has {numbers.size(free)} of memory free, and up to {numbers.size(needed)} are needed"

    def _free_memory(self, gpu: Device) -> int | None:
        """See :func:`free_memory`; a GPU that does not answer at once is read again."""
        for _ in range(READINGS):
            if (free := free_memory(gpu, self._machine.samples.get(gpu.id))) is not None:
                return free
            self._machine.in_use()
        return None

    def _reserve(self, gpu: Device, *, beside_runs: bool = False) -> str:
        """Keep a GPU for this request; returns who has it already."""
        with ExitStack() as taken:
            try:
                make_private(home())
                taken.enter_context(WriterLock(home(), reservation(gpu.id)))
            except BlockingIOError:
                return "is used by another evaluation, prediction or export"
            except RunError:
                return f"cannot be reserved, as {home()} cannot be written or locked"
            try:  # a run that the queue starts at the same moment is noted already, or sees the reservation
                user = "" if beside_runs else _devices_of_runs(self._machine.devices).get(gpu.id, "")
            except RunError as error:
                return f"cannot be reserved, {error}"
            if user:
                return user
            self._kept.enter_context(taken.pop_all())
        return ""

    def _chosen(self, gpu: Device) -> ComputeDevice:
        return ComputeDevice(gpu.id, gpu.name, gpu_variables_for([gpu.id], self._gpus, os.environ))


def _devices_of_runs(devices: Sequence[Device]) -> dict[str, str]:
    """The live run on each accelerator; one that has not found its devices yet may use any of them.

    Raises:
        RunError: The queue cannot be read.
    """
    started: list[StoredEntry] = []
    if database_path().is_file():
        with changing_queue() as queue:  # after a start that is being noted
            started = [entry for entry in queue.entries() if entry.state == "started"]
    found: dict[str, str] = {}
    for run in sorted(active_runs(started), key=lambda run: not run.is_starting):
        names = [device.id for device in devices] if run.is_starting else run.devices
        found |= dict.fromkeys(names, f"is used by run {run.run}")
    return found


def free_memory(gpu: Device, sample: Sample | None) -> int | None:
    """Bytes of a GPU's memory that are free, of its first instance if it is split; ``None`` if they are unknown."""
    if gpu.unified:
        return available_memory()
    unknown = Reading(None)
    readings = sample.readings if sample else {}
    used, total = readings.get("memory_used", unknown), readings.get("memory_total", unknown)
    if used.reason == ASLEEP:
        return gpu.memory
    if len(gpu.uuids) > 1:
        instances = readings.get("instances", unknown).items
        first = next((each for each in instances if each.id == gpu.uuids[1]), None)
        return None if first is None or first.memory is None or first.total is None else first.total - first.memory
    return None if used.value is None or total.value is None else int(total.value - used.value)


def memory_needed(models: Sequence[Path]) -> int:
    """Bytes of a GPU's memory that models take together: an upper bound, of what is known without TensorFlow.

    The outputs of layers count for all of a batch at once; those whose shape is known only at run time do not.

    Args:
        models: The directories of runs, and the files of models.
    """
    return OTHER_MEMORY + sum(_of_run(path) if path.is_dir() else _of_file(path) for path in models)


def _of_run(directory: Path) -> int:
    with suppress(AccelError):  # the engine tells what is wrong with it
        with reading(directory) as database:
            built, plan = last_event(database, ModelBuilt), read_info(database).plan_values
        table = diagnostics.read(directory).layers
        shapes = [layer.shape for layer in table.layers if not layer.inner] if table else []
        outputs = sum(math.prod(side or 1 for side in shape) for shape in shapes if shape is not None)
        weights = built.parameters or 0 if built else 0
        examples = max(plan.get("batch_size") or 0, EXAMPLES_AT_A_TIME)
        return FLOAT32_BYTES * (WEIGHT_COPIES * weights + outputs * examples)
    return 0


def _of_file(path: Path) -> int:
    """By the size of its file."""
    with suppress(OSError):
        return WEIGHT_COPIES * path.stat().st_size
    return 0
