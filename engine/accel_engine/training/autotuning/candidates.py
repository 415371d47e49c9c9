"""Says which other execution mode may be faster than the one of the plan."""

import tensorflow as tf

from accel_engine.data.structure import has_texts
from accel_engine.keras_support.model_structure import walk
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.device_visibility import are_newer_than_build
from accel_engine.training.core.loop import ExecutionMode
from accel_engine.training.core.micro_batches import candidate_count, supports_micro_batches


def plan_mode(assembly: Assembly) -> ExecutionMode:
    """The execution mode that the plan says, without XLA where it leaves the choice."""
    return ExecutionMode(assembly.plan.xla == "on" or assembly.on_tpu, assembly.plan.micro_batches or 1)


def alternative_mode(assembly: Assembly, default: ExecutionMode) -> ExecutionMode | None:
    """The mode that may be faster than the plan's and that the plan allows; ``None`` where a trial makes no sense.

    There is none for a custom ``train_step``, whose Python must not run more often than it should, nor with other
    workers, which would have to agree on it.

    XLA is not tried on a TPU, which compiles everything; nor with several replicas, which CPUs and central storage do
    not support, and with which it is known to hang or abort on GPUs (TensorFlow's issues 53140, 56423, 61314); nor on a
    GPU that is newer than TensorFlow's build, where it aborts; nor for texts, which it cannot compile; nor for
    convolutions on a CPU, which took 6 to 12 seconds to compile and ran 2 to 5 times slower in all measurements. These
    are tried in micro-batches instead, if that changes nothing but the rounding of sums.
    """
    plan = assembly.plan
    if assembly.has_custom_train_step or not assembly.single_process or assembly.on_tpu:
        return None
    if has_texts(assembly.dataset.spec) or assembly.replicas > 1:
        return None
    stored = isinstance(assembly.strategy, tf.distribute.experimental.CentralStorageStrategy)
    if not assembly.on_cpu and (stored or are_newer_than_build()):
        return None
    if not assembly.on_cpu or not any("conv" in type(layer).__name__.lower() for layer, _ in walk(assembly.model)):
        return ExecutionMode(True, default.micro_batches) if plan.xla == "auto" else None
    count = candidate_count(assembly.step_counts.per_replica_batch)
    allowed = plan.micro_batches is None and plan.xla != "on" and count > 1
    return ExecutionMode(micro_batches=count) if allowed and supports_micro_batches(assembly.model) else None
