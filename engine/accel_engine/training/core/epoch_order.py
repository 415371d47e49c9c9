"""The order of training examples: a permutation that depends on the seed, the epoch and the pass over the data only.

So the examples of a step follow from its number, and a run that continues has the order of one that never stopped.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from accel_engine.plan.estimate import StepCounts
from accel_engine.training.core.uneven_batches import replica_positions

MAX_ROWS = 1 << 20
"""Row numbers that are generated at a time, unless one pass over the data has more."""


def epoch_orders(
    counts: StepCounts, examples: int, seed: int, epoch: int, *, first: int = 0, shuffle: bool = True
) -> Iterator[npt.NDArray[np.int32]]:
    """Yield the row numbers of an epoch's steps, int32 ``[steps, replicas, batch]``, in parts with one batch size.

    Every example comes once before any comes again. Passes over the data follow each other, each in another order: an
    epoch with other steps than the data has batches begins where the one before it ended, as in ``fit``. The last step
    of a pass may be smaller: it is a part of its own.

    Args:
        counts: Batch sizes and steps.
        examples: Number of examples.
        seed: The plan's seed.
        epoch: The epoch, from 0.
        first: The first step of the epoch to yield.
        shuffle: Whether the order is random; otherwise every pass has the order of the data.
    """
    replicas, batch = counts.replicas, counts.per_replica_batch
    whole = examples // (replicas * batch)
    per_pass = whole + (counts.last_batch > 0)
    together = max(1, MAX_ROWS // max(1, whole * replicas * batch)) if not counts.last_batch else 1
    whole_passes = max(1, counts.steps_per_epoch // per_pass) if not counts.steps_per_epoch % per_pass else 1

    def order_of(number: int) -> npt.NDArray[np.int32]:
        return _permutation(seed, *divmod(number, whole_passes), examples, shuffle=shuffle)

    step, end = epoch * counts.steps_per_epoch + first, (epoch + 1) * counts.steps_per_epoch
    while step < end:
        number, inside = divmod(step, per_pass)
        if inside >= whole:  # the last, smaller step of a pass
            rows = order_of(number)[whole * replicas * batch :]
            yield rows[replica_positions(counts.last_batch, replicas)][np.newaxis]
            step += 1
            continue
        passes = [
            order_of(each)[: whole * replicas * batch]
            for each in range(number, min(number + together, -(-end // per_pass)))
        ]
        order = np.concatenate(passes).reshape(-1, replicas, batch)[inside : inside + end - step]
        yield order
        step += len(order)


def _permutation(seed: int, epoch: int, number: int, examples: int, *, shuffle: bool) -> npt.NDArray[np.int32]:
    if not shuffle:
        return np.arange(examples, dtype=np.int32)
    return np.random.default_rng([seed, epoch, number]).permutation(examples).astype(np.int32)
