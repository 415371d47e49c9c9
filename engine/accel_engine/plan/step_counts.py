"""Computes a plan's batch sizes and numbers of steps, before the model is built."""

from dataclasses import dataclass

from accel_engine.errors import PlanError
from accel_engine.plan import Plan

TPU_BATCH_MULTIPLE = 8
"""A TPU core pads its batch to a multiple of this."""

TPU_FULL_BATCH = 128
"""Per-core batch that fills a TPU core's matrix unit, which is 128 wide."""


@dataclass(frozen=True, slots=True)
class StepCounts:
    """Batch sizes and numbers of steps of a plan."""

    replicas: int
    per_replica_batch: int
    """Examples per step on each replica, except in the last step of a pass over the data."""
    steps_per_epoch: int
    """Steps per epoch; 0 while it is unknown, for a stream."""
    total_steps: int
    """Steps of all epochs; 0 while it is unknown."""
    last_batch: int
    """Examples of the last, smaller step of a pass over the data, over all replicas; 0 if there is none."""
    dropped_examples: int
    """Examples that each pass over the data leaves out."""
    passes: float
    """Passes over the data per epoch, fractional if the plan sets the steps per epoch; 0 while it is unknown."""

    @property
    def global_batch(self) -> int:
        """Examples per step over all replicas, at most the plan's batch size."""
        is_all = self.last_batch and self.steps_per_epoch == self.passes  # a pass is a single step
        return self.last_batch if is_all else self.per_replica_batch * self.replicas

    def step_sizes(self, first: int, last: int) -> list[int]:
        """Examples of some steps of a run, over all replicas.

        Args:
            first: The first step, from 0.
            last: The step after the last one.
        """
        per_pass = round(self.steps_per_epoch / self.passes) if self.last_batch else 0
        return [
            (self.last_batch if per_pass and step % per_pass == per_pass - 1 else self.global_batch)
            for step in range(first, last)
        ]


def count_steps(plan: Plan, examples: int, replicas: int) -> StepCounts:
    """Compute a plan's batch sizes and steps.

    Each replica takes ``batch_size // replicas`` examples per step. The last step of a pass over the data takes those
    that are left; see :mod:`accel_engine.training.core.uneven_batches` for how replicas share them.

    Args:
        plan: The plan.
        examples: Number of training examples.
        replicas: Number of replicas.

    Raises:
        PlanError: There are fewer examples in a batch than replicas, or it is not divisible by the number of
            micro-batches.
    """
    keeps, share = plan.last_batch == "keep", min(plan.batch_size, examples) // replicas
    if not share:
        reason = f"must be at least {replicas}, one example per replica"
        if plan.batch_size >= replicas:
            reason = f"{replicas} replicas need at least {replicas} training examples; there are {examples}"
        raise PlanError("batch_size", plan.batch_size, reason)
    if keeps and plan.batch_size >= examples:  # a single step of all of them, of which some replicas take one more
        share = min(plan.batch_size // replicas, -(-examples // replicas))
    if share % (plan.micro_batches or 1):
        raise PlanError("micro_batches", plan.micro_batches, f"must divide the per-replica batch of {share}")
    whole, rest = divmod(examples, share * replicas)
    last = rest if keeps else 0
    batches = whole + (last > 0)
    steps = plan.steps_per_epoch or batches
    return StepCounts(
        replicas=replicas,
        per_replica_batch=share,
        steps_per_epoch=steps,
        total_steps=steps * plan.epochs,
        last_batch=last,
        dropped_examples=rest - last,
        passes=steps / batches,
    )


def count_stream_steps(plan: Plan, batches: int | None, batch_size: int | None, replicas: int) -> StepCounts:
    """Compute the steps of a plan on a stream, whose batches are not divided or joined.

    Args:
        plan: The plan.
        batches: Batches of an epoch; ``None`` if unknown.
        batch_size: Examples of a batch; ``None`` if unknown.
        replicas: Number of replicas.

    Raises:
        PlanError: A batch has fewer examples than there are replicas, or cannot be split into micro-batches.
    """
    share = (batch_size or plan.batch_size) // replicas
    if not share:
        raise PlanError("batch_size", batch_size, f"must be at least {replicas}, one example per replica")
    if share % (plan.micro_batches or 1):
        raise PlanError("micro_batches", plan.micro_batches, f"must divide the per-replica batch of {share}")
    steps = plan.steps_per_epoch or batches or 0
    return StepCounts(
        replicas=replicas,
        per_replica_batch=share,
        steps_per_epoch=steps,
        total_steps=steps * plan.epochs,
        last_batch=0,
        dropped_examples=0,
        passes=steps / batches if batches else 0.0,
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
