"""Computes a plan's steps and batches, and estimates its memory, before the model is built."""

from dataclasses import dataclass

from accel_engine.errors import PlanError
from accel_engine.plan import Plan

OPTIMIZER_SLOTS = {
    "auto": 2,
    "adam": 2,
    "adamw": 2,
    "nadam": 2,
    "rmsprop": 1,
    "sgd": 0,
    "adagrad": 1,
    "lion": 1,
}
"""Slot variables per trainable weight of Keras' optimizers, with default arguments."""

_WEIGHT_BYTES = 4
"""Weights, gradients and slots are float32 under every precision."""

TPU_BATCH_MULTIPLE = 8
"""A TPU core pads its batch to a multiple of this."""

TPU_FULL_BATCH = 128
"""Per-core batch that fills a TPU core's matrix unit, which is 128 wide."""


@dataclass(frozen=True, slots=True)
class StepCounts:
    """Batch sizes and numbers of steps of a plan.

    Attributes:
        replicas: Number of replicas.
        per_replica_batch: Examples per step on each replica.
        steps_per_epoch: Steps per epoch.
        total_steps: Steps of all epochs.
        dropped_examples: Examples of the last partial batch, which each pass over the data drops.
        passes: Passes over the data per epoch; may be fractional if the plan sets the steps per epoch.
    """

    replicas: int
    per_replica_batch: int
    steps_per_epoch: int
    total_steps: int
    dropped_examples: int
    passes: float

    @property
    def global_batch(self) -> int:
        """Examples per step over all replicas, at most the plan's batch size."""
        return self.per_replica_batch * self.replicas


def count_steps(plan: Plan, examples: int, replicas: int) -> StepCounts:
    """Compute a plan's batch sizes and steps.

    Each replica takes ``batch_size // replicas`` examples per step. A pass over the data has as many steps as whole
    global batches.

    Args:
        plan: The plan.
        examples: Number of training examples.
        replicas: Number of replicas.

    Raises:
        PlanError: The batch size is larger than the data, smaller than the number of replicas, or not divisible by the
            number of micro-batches.
    """
    if plan.batch_size > examples:
        raise PlanError("batch_size", plan.batch_size, f"must be at most {examples}, the number of training examples")
    share = plan.batch_size // replicas
    if not share:
        raise PlanError("batch_size", plan.batch_size, f"must be at least {replicas}, one example per replica")
    if share % (plan.micro_batches or 1):
        raise PlanError("micro_batches", plan.micro_batches, f"must divide the per-replica batch of {share}")
    batches = examples // (share * replicas)
    steps = plan.steps_per_epoch or batches
    return StepCounts(
        replicas=replicas,
        per_replica_batch=share,
        steps_per_epoch=steps,
        total_steps=steps * plan.epochs,
        dropped_examples=examples - batches * share * replicas,
        passes=steps / batches,
    )


def tpu_advice(counts: StepCounts, examples: int) -> str:
    """Recommend a batch size for a TPU; empty if the plan's is a good one.

    TPU cores pad a batch to a multiple of 8; 128 examples fill their matrix units.

    Args:
        counts: The plan's batch sizes.
        examples: Number of training examples, the largest possible batch.
    """
    share, replicas = counts.per_replica_batch, counts.replicas
    best = (
        f"{TPU_FULL_BATCH * replicas} ({TPU_FULL_BATCH} per core) is best"
        if TPU_FULL_BATCH * replicas <= examples
        else ""
    )
    if share % TPU_BATCH_MULTIPLE:
        padded_batch = -(-share // TPU_BATCH_MULTIPLE) * TPU_BATCH_MULTIPLE * replicas
        fits = f"a batch size of {padded_batch} is as fast" if padded_batch <= examples else ""
        advice = ", ".join(part for part in (fits, best) if part)
        padded = f"a TPU core pads {share} examples to a multiple of {TPU_BATCH_MULTIPLE}"
        return f"{padded}: {advice}" if advice else padded
    return f"each TPU core takes {share} examples: a batch size of {best}" if best and share < TPU_FULL_BATCH else ""


def estimate_memory(plan: Plan, per_replica_batch: int, parameters: int, trainable: int, activations: int) -> int:
    """Estimate the memory of training on each replica's device in bytes, without the dataset.

    ``4 * (parameters + trainable * (1 + slots)) + activation_bytes * activations * per_replica_batch``:
    all weights, a gradient and the optimizer's slots for each trainable weight, and the activations kept for the
    backward pass. Micro-batches add a copy of the gradients, and only one micro-batch has activations at a time.
    Under mixed precision an activation has 2 bytes, and there is a 16-bit copy of the weights. The workspace of
    operations is not included, so the actual use is higher, above all with convolutions.

    Args:
        plan: The plan.
        per_replica_batch: Examples per step on each replica.
        parameters: Number of weights.
        trainable: Number of trainable weights.
        activations: Number of activations of one example.
    """
    mixed = plan.policy != "float32"
    parts = plan.micro_batches or 1
    gradients = 1 if parts == 1 else 2
    weights = _WEIGHT_BYTES * (parameters + trainable * (gradients + OPTIMIZER_SLOTS.get(plan.optimizer, 2)))
    copies = 2 * parameters if mixed else 0
    return weights + copies + (2 if mixed else 4) * activations * (per_replica_batch // parts)
