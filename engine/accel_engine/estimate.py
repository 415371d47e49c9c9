"""What a plan comes to, by arithmetic alone: steps, batches and memory, before anything is built."""

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
"""Values that Keras' optimizers, with their default arguments, keep beside every trainable weight."""

_WEIGHT_BYTES = 4
"""Weights, gradients and slots are float32 under every precision of a plan."""

TPU_STRIDE = 8
"""Examples that a TPU core computes at a time."""

TPU_BATCH = 128
"""Examples that fill a TPU core's matrix unit, which is 128 wide."""


@dataclass(frozen=True, slots=True)
class StepCounts:
    """How a plan's data becomes steps.

    Attributes:
        replicas: Number of replicas.
        per_replica_batch: Examples a step on each replica.
        steps_per_epoch: Optimizer updates in an epoch.
        total_steps: Optimizer updates in all epochs.
        dropped_examples: Examples that one pass over the data leaves out, so that batches are whole.
        passes: Times that an epoch goes over the data; not a whole number when the plan sets the steps.
    """

    replicas: int
    per_replica_batch: int
    steps_per_epoch: int
    total_steps: int
    dropped_examples: int
    passes: float

    @property
    def global_batch(self) -> int:
        """Examples that a step really takes, over all replicas."""
        return self.per_replica_batch * self.replicas


def count_steps(plan: Plan, examples: int, replicas: int) -> StepCounts:
    """Lay out a plan's steps.

    Each replica takes ``batch_size // replicas`` examples a step, and a pass over the data has as many
    steps as there are whole global batches in it.

    Args:
        plan: The plan.
        examples: Number of training examples.
        replicas: Number of replicas.

    Raises:
        PlanError: The batch is larger than the data, or smaller than the number of replicas, or no whole
            micro-batches.
    """
    if plan.batch_size > examples:
        raise PlanError("batch_size", plan.batch_size, f"must be at most {examples}, the number of training examples")
    share = plan.batch_size // replicas
    if not share:
        raise PlanError("batch_size", plan.batch_size, f"must be at least {replicas}, one example a replica")
    if share % (plan.micro_batches or 1):
        raise PlanError("micro_batches", plan.micro_batches, f"must divide the {share} examples that a device takes")
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
    """Say which batch would serve a TPU better; nothing when it is a good one.

    Its cores work on 8 examples at a time and fill up a batch that is no multiple of it; 128 fill its matrix units.

    Args:
        counts: How the data becomes steps.
        examples: Number of training examples, which a batch cannot exceed.
    """
    share, replicas = counts.per_replica_batch, counts.replicas
    best = f"{TPU_BATCH * replicas}, {TPU_BATCH} a core, is best" if TPU_BATCH * replicas <= examples else ""
    if share % TPU_STRIDE:
        whole = -(-share // TPU_STRIDE) * TPU_STRIDE * replicas
        fits = f"a batch size of {whole} costs no more" if whole <= examples else ""
        advice = ", ".join(part for part in (fits, best) if part)
        padded = f"a TPU core fills up {share} examples to a multiple of {TPU_STRIDE}"
        return f"{padded}: {advice}" if advice else padded
    return f"each TPU core takes {share} examples: a batch size of {best}" if best and share < TPU_BATCH else ""


def estimate_memory(plan: Plan, per_replica_batch: int, parameters: int, trainable: int, activations: int) -> int:
    """Estimate the bytes that training takes on each replica's device, without the data.

    ``4 * (parameters + trainable * (1 + slots)) + activation_bytes * activations * per_replica_batch``:
    all weights, a gradient and the optimizer's slots for each trainable one, and what the forward pass
    keeps for the backward pass. Of micro-batches there is one at a time, and the gradients of those before
    it. Under mixed precision an activation has 2 bytes, and there is a second, 16-bit copy of the weights.
    Work space of single operations is not in it, so that the truth is larger, more so for convolutions.

    Args:
        plan: The plan.
        per_replica_batch: Examples a step on each replica.
        parameters: Number of weights.
        trainable: Number of trainable weights.
        activations: Numbers that one example's forward pass leaves behind.
    """
    mixed = plan.policy != "float32"
    parts = plan.micro_batches or 1
    gradients = 1 if parts == 1 else 2
    weights = _WEIGHT_BYTES * (parameters + trainable * (gradients + OPTIMIZER_SLOTS.get(plan.optimizer, 2)))
    copies = 2 * parameters if mixed else 0
    return weights + copies + (2 if mixed else 4) * activations * (per_replica_batch // parts)
