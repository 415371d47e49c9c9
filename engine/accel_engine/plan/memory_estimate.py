"""Estimates the memory of a plan's training in parts, each with a range, before it is trained; without TensorFlow.

The arrays of a training are computed. What a process takes besides them was measured on CPUs, and gives each part its
range: see ``benchmarks/README.md``. Accelerators were not measured.
"""

import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

from accel_engine.data import DatasetEntry
from accel_engine.data.structure import flatten
from accel_engine.memory import CACHE_SHARE
from accel_engine.plan import Plan
from accel_engine.plan.array_bytes import (
    FLOAT32_BYTES,
    ModelSize,
    StageShare,
    activation_bytes,
    gradient_bytes,
    in_flight,
    micro_batch_count,
    saves_enough,
    slot_bytes,
    slot_bytes_on_device,
    step_bytes,
    weight_bytes,
)
from accel_engine.plan.placement import Placement

_TEXT = 8 + sys.getsizeof("")
"""Bytes of a text in memory besides its characters: its header, and its place in an array."""

_FILES = 100
"""Files of a folder whose sizes are looked at."""


@dataclass(frozen=True, slots=True)
class Training:
    """A training whose memory is estimated."""

    plan: Plan
    size: ModelSize
    """The size of its model."""
    per_replica_batch: int
    """Examples per step on each replica."""
    placement: Placement
    """Its devices and processes. Processes count if the plan starts them on this machine."""
    data: int = 0
    """Bytes of the training examples; 0 if they are unknown."""
    memory: int | None = None
    """Bytes of each device's memory, for CPUs those that are available on the host; ``None`` if unknown."""
    accelerators: tuple[str, ...] = ()
    """Ids of all GPUs of the machine, if they train."""

    @property
    def rematerializes(self) -> bool:
        """Whether parts of the model are computed again; ``auto`` does so if a step may not fit otherwise."""
        plan, size = self.plan, self.size
        if plan.remat != "auto" or plan.strategy in ("parameter-server", "pipeline"):
            return plan.remat == "on"
        if self.memory is None or self.kind == "tpu" or not saves_enough(size.auto_activations, size.remat_share):
            return False
        share = len(self.placement.devices) * max(1, plan.local_workers) if self.kind == "cpu" else 1
        batch, replicas = self.per_replica_batch, len(self.placement.devices)
        needed = step_bytes(plan, size.parameters, size.trainable, size.auto_activations, batch, replicas)
        return needed > self.memory // share

    @property
    def saved_share(self) -> tuple[float, float]:
        """Share of the saved activations that rematerialization leaves, at least and at most."""
        if not self.rematerializes:
            return 1.0, 1.0
        share = None if self.plan.remat_layers else self.size.remat_share
        return (0.0, 1.0) if share is None else (share, share)

    @property
    def kind(self) -> str:
        """The kind of its devices: ``cpu``, ``gpu`` or ``tpu``."""
        return self.placement.kind


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """A part of the memory."""

    name: str
    """Its purpose."""
    low: int
    """Bytes that it takes at least."""
    high: int
    """Bytes that it takes at most; the same as ``low`` if it is computed exactly."""


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """The memory of a training, of the host for CPUs, else of each device."""

    parts: tuple[MemoryPart, ...]
    left_out: str = ""
    """Parts that were not measured, in words; empty without any."""

    @property
    def low(self) -> int:
        """Bytes of all parts at least."""
        return sum(part.low for part in self.parts)

    @property
    def high(self) -> int:
        """Bytes of all parts at most."""
        return sum(part.high for part in self.parts)

    def fits(self, memory: int) -> bool | None:
        """Whether the training fits in some bytes; ``None`` if they are inside the range."""
        return True if self.high <= memory else False if self.low > memory else None


def data_bytes(entry: DatasetEntry) -> int | None:
    """The bytes of the training examples in memory; ``None`` while their number or shape is unknown."""
    specs = flatten(entry.spec) if entry.spec is not None else []
    if entry.examples is None or not (specs or entry.shape is not None):
        return None
    if not specs:
        values = entry.value_range.dtype if entry.value_range else "float32"
        return entry.examples * (_array_bytes(entry.shape or (), values) + _array_bytes((), "int32"))
    numbers = sum(_array_bytes(spec.shape, spec.dtype) for spec in specs if spec.dtype != "string")
    texts = sum(_array_bytes(spec.shape, "int8") for spec in specs if spec.dtype == "string")
    return entry.examples * (numbers + texts * _TEXT + (_stored_bytes(entry) if texts else 0))


def _stored_bytes(entry: DatasetEntry) -> int:
    """The mean bytes of an example in its file, or of some files of its folder; 0 if they cannot be read.

    A table has other columns than its texts, too, which count then.
    """
    path, examples = entry.path, (entry.examples, entry.validation_examples, entry.test_examples)
    with suppress(OSError):
        if path is not None and path.is_file():
            return path.stat().st_size // max(1, sum(each or 0 for each in examples))
        if path is not None:
            sizes = [each.stat().st_size for each in islice(path.rglob("*.txt"), _FILES)]
            return sum(sizes) // max(1, len(sizes))
    return 0


def estimate_memory(training: Training) -> MemoryEstimate:
    """Estimate the memory of a training: of the host with all processes on it for CPUs, else of each device."""
    size, is_staged = training.size, training.placement.stages > 1
    arrays = _of_largest_stage(training) if is_staged and training.kind != "cpu" else _arrays(training)
    left_out = [] if size.saved else ["the activations, which are unknown for this model"]
    if training.kind != "cpu":
        cache = [MemoryPart("cached data", training.data, training.data)] if _is_cached(training) else []
        return MemoryEstimate((*arrays, *cache), " and ".join([*left_out, _NOT_MEASURED[training.kind]]))
    processes = max(1, training.plan.local_workers)
    replicas = len(training.placement.devices) // training.placement.stages
    host = (_times(part, processes) for part in _host(training, replicas))
    parts = (*(_times(part, processes * replicas) for part in arrays), *host)
    return MemoryEstimate(parts, "".join(left_out))


_NOT_MEASURED = {
    "gpu": "the CUDA context and the workspace of cuDNN, which were not measured",
    "tpu": "the program and the padding of the TPU's compiler, which were not measured",
}


def _is_cached(training: Training) -> bool:
    """Whether the data is cached on each device: see ``accel_engine.training.core.feed.choose_feed``."""
    replicas = len(training.placement.devices) if training.kind == "cpu" else 1
    is_small = training.memory is None or training.data * replicas <= CACHE_SHARE * training.memory
    return training.data > 0 and training.kind != "tpu" and is_small


def _arrays(training: Training) -> list[MemoryPart]:
    """The arrays of a replica: weights, gradients, optimizer state and activations."""
    plan, size = training.plan, training.size
    return [
        _exact("weights", weight_bytes(plan, size.parameters)),
        _exact("gradients", gradient_bytes(plan, size.trainable)),
        _optimizer_state(training),
        _activations(training),
    ]


def _optimizer_state(training: Training) -> MemoryPart:
    plan, size = training.plan, training.size
    replicas = len(training.placement.devices) // training.placement.stages
    if training.kind != "cpu":
        own = slot_bytes_on_device(plan, size.trainable, size.widest, replicas)
        return MemoryPart("optimizer state", *own)
    parts = 1 if plan.optimizer_state == "device" else replicas
    return _exact("optimizer state", slot_bytes(plan, size.trainable) // parts)


def _of_largest_stage(training: Training) -> list[MemoryPart]:
    """The arrays of the device of a pipeline that needs the most memory."""
    plan, size, count = training.plan, training.size, training.placement.stages
    divided = micro_batch_count(training.per_replica_batch, count) if size.is_divisible else 1
    divided = plan.micro_batches or divided
    own = plan.replace(micro_batches=divided, remat="off", remat_layers=())
    weights, gradients, slots, activations = _arrays(replace(training, plan=own))
    between = activation_bytes(own, size.largest, training.per_replica_batch)
    # Of the plan's own cuts, or of a model that is not known, all may be on one device.
    is_known = not plan.stages and count - 2 < len(size.stages)
    shares = size.stages[count - 2] if is_known else (StageShare(1.0, 1.0),)
    # Computed again, a stage has the activations of one micro-batch at a time, and the inputs of others.
    again = training.rematerializes
    inputs = [MemoryPart("inputs of stages", 0, between * divided)] if again else []
    stages = [
        [
            *(_times(part, share.weights) for part in (weights, gradients, slots)),
            _times(activations, share.activations * (1 if again else in_flight(index, count, divided))),
            *inputs,
        ]
        for index, share in enumerate(shares)
    ]
    return max(stages, key=lambda parts: sum(part.high for part in parts))


def _activations(training: Training) -> MemoryPart:
    size = training.size
    saved, largest = (
        activation_bytes(training.plan, nbytes, training.per_replica_batch) for nbytes in (size.saved, size.largest)
    )
    factors = zip(training.saved_share, SAVED if size.is_traced else UNTRACED, LARGEST, strict=True)
    low, high = (round(share * factor * saved + more * largest) for share, factor, more in factors)
    return MemoryPart("activations", low, high)


def _host(training: Training, replicas: int) -> list[MemoryPart]:
    """The memory of a process on CPUs besides the arrays of a step."""
    plan, size = training.plan, training.size
    copied = weight_bytes(plan, size.parameters) + FLOAT32_BYTES * size.trainable + slot_bytes(plan, size.trainable)
    return [
        _data(training, replicas),
        MemoryPart("copies of weights", *(round(share * copied) for share in STATE_COPIES)),
        _of_graph("graph and kernels", training, GRAPH, OPERATION),
        *([_xla(training)] if training.plan.xla != "off" and replicas == 1 else []),  # it takes no mirrored step
        MemoryPart("TensorFlow", *TENSORFLOW),
    ]


def _of_graph(name: str, training: Training, base: tuple[int, int], each: tuple[int, int]) -> MemoryPart:
    """A part that grows with the number of operations of a step."""
    count = training.size.operations
    return MemoryPart(name, base[0] + each[0] * count, base[1] + each[1] * count)


def _xla(training: Training) -> MemoryPart:
    """XLA's part; ``auto`` tries it in long runs only."""
    part = _of_graph("XLA", training, XLA, XLA_OPERATION)
    return part if training.plan.xla == "on" else replace(part, low=0)


def _data(training: Training, replicas: int) -> MemoryPart:
    """The data in a process; lazily read data takes none."""
    if _is_cached(training):
        more = (replicas - 1) * training.data
        return MemoryPart("data", *(round(copies * training.data) + more for copies in DATA))
    most = training.data if training.memory is None else min(training.data, round(CACHE_SHARE * training.memory))
    return MemoryPart("data", 0, most)


def _exact(name: str, nbytes: int) -> MemoryPart:
    return MemoryPart(name, nbytes, nbytes)


def _times(part: MemoryPart, count: float) -> MemoryPart:
    return MemoryPart(part.name, round(part.low * count), round(part.high * count))


def _array_bytes(shape: tuple[int | None, ...], dtype: str) -> int:
    bits = int("".join(each for each in dtype if each.isdigit()) or 8)
    size = max(1, bits // 8)
    for side in shape:
        size *= side or 1
    return size


MIB = 1 << 20

TENSORFLOW = (505 * MIB, 530 * MIB)
"""Bytes of a process that has imported TensorFlow and Keras, and built nothing."""

GRAPH = (45 * MIB, 95 * MIB)
"""Bytes that a process takes besides, whatever it trains."""

OPERATION = (24 * MIB // 1000, 42 * MIB // 1000)
"""Bytes per operation of a step's graph: the graph, its copies and its compiled kernels."""

STATE_COPIES = (0.75, 1.9)
"""Copies of weights, gradients and optimizer state, as parts of them: while weights are initialized and updated, and
while checkpoints and the model are written."""

XLA = (70 * MIB, 200 * MIB)
"""Bytes of XLA's compiler and program, besides :data:`XLA_OPERATION`."""

XLA_OPERATION = (0, 195 * MIB // 1000)
"""Bytes of them per operation of a step's graph. ``mlp`` took 74 to 108 MiB more, ``vit`` 306, ``MobileNetV2``
about 990 more than the estimate without it."""

SAVED = (1.0, 1.4)
"""Share of the saved activations: not all are freed as soon as they could be."""

LARGEST = (1.0, 1.5)
"""Share of the largest activation: its gradient, and the workspace of the operations on it."""

DATA = (1.5, 4.0)
"""Copies of cached data: of reading, converting and caching."""

UNTRACED = (0.57, 3.7)
"""The same as :data:`SAVED` where only the outputs of layers are known: the models of the catalogue save 0.57 to 2.62
times these, recurrent ones excepted, which save up to 15 times their output."""
