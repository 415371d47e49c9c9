"""The learning rate and the number of steps that fit another batch size; without TensorFlow."""

import math
from dataclasses import dataclass
from pathlib import Path

from accel_engine.advice import read_recorded
from accel_engine.advice.quality.batch_rules import noise_scale
from accel_engine.advice.quality.learning import learning_of
from accel_engine.plan import Plan
from accel_engine.plan.step_counts import StepCounts, count_steps

LINEAR = "linear"
"""The rate grows with the batch: Goyal et al., Accurate, Large Minibatch SGD, 2017, for SGD with momentum."""

SQUARE_ROOT = "square root"
"""The rate grows with the square root of the batch: Malladi et al., On the SDEs and Scaling Rules for Adaptive Gradient
Algorithms, 2022, for Adam and its like."""

_LINEAR_OPTIMIZERS = ("SGD",)


@dataclass(frozen=True, slots=True)
class BatchEffects:
    """The learning rate and the steps for a batch size, compared with the plan's."""

    factor: float
    """The batch size as a multiple of the plan's."""
    rule: str
    """How learning rates scale with it: :data:`LINEAR` or :data:`SQUARE_ROOT`."""
    rate_factor: float
    """By how much to multiply the learning rate."""
    learning_rate: float | None
    """The plan's learning rate after that; ``None`` if the rate before is unknown."""
    steps_per_epoch: int
    """Steps of an epoch; 0 if unknown."""
    total_steps: int
    """Steps of all epochs; 0 if unknown."""
    steps_before: int
    """Steps of all epochs with the plan's batch size; 0 if unknown."""
    noise_scale: float | None = None
    """Examples from which on a larger batch saves few steps; ``None`` if no run has recorded it."""

    @property
    def quality(self) -> str:
        """The effect of the batch on the quality of the model, in words; empty if that is unknown."""
        if self.noise_scale is None:
            return ""
        found = f"about {self.noise_scale:,.0f} examples" if math.isfinite(self.noise_scale) else "very large"
        return f"the noise scale of the gradients is {found}: up to it, a larger batch needs about as many fewer steps"


def batch_effects(
    plan: Plan,
    batch_size: int,
    replicas: int,
    *,
    optimizer: str,
    rate: float | None,
    examples: int | None,
    noise_scale: float | None = None,
) -> BatchEffects:
    """The effects of a batch size on a plan's learning rate and steps.

    Args:
        plan: The plan, with its own batch size.
        batch_size: The global batch instead.
        replicas: Number of replicas.
        optimizer: Class of the optimizer; empty if unknown.
        rate: The plan's learning rate, without its scaling by replicas; ``None`` if unknown.
        examples: Number of training examples; ``None`` if unknown.
        noise_scale: What a run of this plan has recorded of its gradients, in examples.
    """
    factor = batch_size / plan.batch_size
    rule = LINEAR if optimizer in _LINEAR_OPTIMIZERS else SQUARE_ROOT
    rate_factor = factor if rule == LINEAR else math.sqrt(factor)
    scaled = None if rate is None else float(f"{rate * rate_factor:.3g}")
    before, after = (
        _counts(plan.replace(batch_size=size), examples, replicas) for size in (plan.batch_size, batch_size)
    )
    return BatchEffects(
        factor,
        rule,
        rate_factor,
        scaled,
        after.steps_per_epoch if after else 0,
        after.total_steps if after else 0,
        before.total_steps if before else 0,
        noise_scale,
    )


def _counts(plan: Plan, examples: int | None, replicas: int) -> StepCounts | None:
    return None if examples is None else count_steps(plan, examples, replicas)


def recorded_noise_scale(directory: Path) -> float | None:
    """The batch whose noise is as large as its gradient, in examples; infinite if there is only noise.

    McCandlish et al., An Empirical Model of Large-Batch Training, 2018: up to it, a larger batch needs about as many
    fewer steps. ``None`` if the run has not recorded the norms that it follows from.

    Args:
        directory: The run's directory.

    Raises:
        RunError: There is no run, or this program cannot read it.
    """
    return noise_scale(learning_of(read_recorded(directory)))
