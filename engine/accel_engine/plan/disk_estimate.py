"""Estimates the size of a plan's run on the disk, before the model is built."""

from accel_engine.plan import Plan
from accel_engine.plan.array_bytes import FLOAT32_BYTES, slot_bytes

_RUN_BYTES = 6 << 20
"""A run's database with its write-ahead log, and what it sets aside for its end."""

_STEP_BYTES = 18
"""A step in the database, with loss, one metric and learning rate, in chunks of ten steps."""

_EPOCH_BYTES = 600
"""The events of an epoch in the database."""


def estimate_disk(plan: Plan, steps: int, parameters: int = 0, trainable: int = 0) -> int:
    """Estimate the bytes that a run takes on the disk, without device samples (100 bytes each), media and logs.

    All checkpoints that the plan keeps, another one while it is written, and the model; each has all weights, the
    optimizer's slots, and their moving averages if the plan has any.

    Args:
        plan: The plan.
        steps: Number of steps; 0 while it is unknown.
        parameters: Number of weights; 0 while it is unknown.
        trainable: Number of trainable weights.
    """
    files = plan.keep_checkpoints + (plan.restore_best == "on") + 2
    state = FLOAT32_BYTES * parameters + slot_bytes(plan, trainable)
    return _RUN_BYTES + _STEP_BYTES * steps + _EPOCH_BYTES * plan.epochs + files * state
