"""When ``--remat auto`` computes activations again: where a step may not fit in memory; without TensorFlow."""

from accel_engine.plan import Plan
from accel_engine.plan.array_bytes import FLOAT32_BYTES, activation_bytes, gradient_bytes, slot_bytes, weight_bytes

WORTHWHILE = 0.7
"""Share of the activations that may still be saved, for ``auto`` to use rematerialization: it costs a forward pass."""


def step_bytes(plan: Plan, parameters: int, trainable: int, activations: int, batch: int) -> int:
    """Bytes that a step needs on a replica without rematerialization.

    Args:
        plan: The plan.
        parameters: Number of weights.
        trainable: Number of trainable weights.
        activations: Values that are saved for one example.
        batch: Examples per step on a replica.
    """
    return (
        weight_bytes(plan, parameters)
        + gradient_bytes(plan, trainable)
        + slot_bytes(plan, trainable)
        + activation_bytes(plan, FLOAT32_BYTES * activations, batch)
    )


def saves_enough(activations: int | None, share: float | None) -> bool:
    """Whether rematerialization is known to save enough of a model's activations.

    Args:
        activations: Values that are saved for one example; ``None`` or 0 if unknown.
        share: The share of them that is still saved with it; ``None`` if unknown.
    """
    return bool(activations) and share is not None and share <= WORTHWHILE
