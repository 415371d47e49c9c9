"""The order of training examples: a permutation that depends on the seed, the epoch and the pass over the data only.

So the examples of a step follow from its number, and a run that continues has the order of one that never stopped.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from accel_engine.plan.estimate import StepCounts

MAX_ROWS = 1 << 20
"""Row numbers that are generated at a time, unless one pass over the data has more."""


def epoch_orders(
    counts: StepCounts, examples: int, seed: int, epoch: int, *, first: int = 0, shuffle: bool = True
) -> Iterator[npt.NDArray[np.int32]]:
    """Yield the row numbers of an epoch's steps, int32 ``[steps, replicas, batch]``, in parts with one batch size.

    Every example comes once before any comes again. An epoch with more steps than the data has batches starts another
    pass over the data, in another order. The last step of a pass may be smaller: it is a part of its own.

    Args:
        counts: Batch sizes and steps.
        examples: Number of examples.
        seed: The plan's seed.
        epoch: The epoch, from 0.
        first: The first step of the epoch to yield.
        shuffle: Whether the order is random; otherwise every pass has the order of the data.
    """
    replicas, batch = counts.replicas, counts.per_replica_batch
    whole = examples // counts.global_batch
    per_pass = whole + (counts.last_batch > 0)
    together = max(1, MAX_ROWS // max(1, whole * counts.global_batch)) if not counts.last_batch else 1
    step = first
    while step < counts.steps_per_epoch:
        number, inside = divmod(step, per_pass)
        left = counts.steps_per_epoch - step
        if inside >= whole:  # the last, smaller step of a pass
            rows = _permutation(seed, epoch, number, examples, shuffle=shuffle)[whole * counts.global_batch :]
            yield rows[: counts.last_batch * replicas].reshape(1, replicas, counts.last_batch)
            step += 1
            continue
        passes = [
            _permutation(seed, epoch, each, examples, shuffle=shuffle)[: whole * counts.global_batch]
            for each in range(number, min(number + together, -(-(step + left) // per_pass)))
        ]
        order = np.concatenate(passes).reshape(-1, replicas, batch)[inside : inside + left]
        yield order
        step += len(order)


def _permutation(seed: int, epoch: int, number: int, examples: int, *, shuffle: bool) -> npt.NDArray[np.int32]:
    if not shuffle:
        return np.arange(examples, dtype=np.int32)
    return np.random.default_rng([seed, epoch, number]).permutation(examples).astype(np.int32)
