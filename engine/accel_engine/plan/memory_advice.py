"""Finds the cheapest change of a plan with which its training fits in memory; without TensorFlow.

Changes are tried in the order of what they cost. Micro-batches compute the same gradients, but batch normalization
sees one of them at a time. Rematerialization computes the same with more work. A mixed precision rounds more. A
smaller batch size is another training. Each is also tried with those before it.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self

from accel_engine.errors import FieldValue, Words
from accel_engine.plan.memory_estimate import MemoryEstimate, Training, estimate_memory

MIN_MICRO_BATCH = 8
"""Examples of a micro-batch at least: batch normalization needs several."""

_MIXED = {"gpu": "mixed_float16", "tpu": "mixed_bfloat16"}
"""The mixed precision of each kind of device; CPUs have none that is fast."""


@dataclass(frozen=True, slots=True)
class Change:
    """A changed training.

    Attributes:
        training: The training.
        values: The changed fields with their values; none of the training as it was.
    """

    training: Training
    values: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def words(self) -> Words:
        """The changed fields: options of the command line, or fields of the form."""
        words = [word for name, value in self.values.items() for word in (", ", FieldValue(name, str(value)))]
        return tuple(words[1:])

    @property
    def estimate(self) -> MemoryEstimate:
        """The memory of the changed training."""
        return estimate_memory(self.training)

    @property
    def fits(self) -> bool:
        """Whether it fits in its memory for certain, by the estimate."""
        return self.training.memory is not None and self.estimate.fits(self.training.memory) is True

    def with_field(self, name: str, value: str | int, **training: Any) -> Self:
        """Change a field of the plan, and attributes of the training."""
        plan = training.pop("plan", self.training.plan).replace(**{name: value})
        return replace(
            self, training=replace(self.training, plan=plan, **training), values={**self.values, name: value}
        )


def cheapest_change(training: Training) -> Change | None:
    """Find the cheapest change with which a training fits in its memory for certain, by the estimate.

    Args:
        training: A training that may not fit, with its memory.

    Returns:
        The change; ``None`` if none is known, or if the memory is unknown.
    """
    starts = _starts(training)
    found = (_first_that_fits(start, _micro_batch_counts(start.training), _in_micro_batches) for start in starts)
    smaller = (_first_that_fits(start, _smaller_batches(start.training), _with_batch) for start in starts)
    return next((change for change in chain(found, smaller) if change is not None), None)


def _starts(training: Training) -> list[Change]:
    """The training with neither, one or both of rematerialization and a mixed precision."""
    starts = [Change(training)]
    if (
        training.size.remat_share is not None
        and training.plan.remat == "auto"
        and training.plan.strategy != "parameter-server"
    ):
        starts.append(Change(training).with_field("remat", "on"))
    mixed = _MIXED.get(training.kind)
    if mixed and training.plan.policy == "float32":
        starts += [start.with_field("precision", mixed) for start in starts]
    return starts


def _first_that_fits(start: Change, values: Sequence[int], make: Callable[[Change, int], Change]) -> Change | None:
    """The first change that fits, of ``start`` and of those made of it, which take less and less memory."""
    if start.values and start.fits:
        return start
    first = bisect_left(values, 1, key=lambda value: make(start, value).fits)
    return make(start, values[first]) if first < len(values) else None


def _micro_batch_counts(training: Training) -> Sequence[int]:
    """Numbers of micro-batches that divide the batch evenly, from the smallest on."""
    now, batch = training.plan.micro_batches or 1, training.per_replica_batch
    counts = range(now + 1, batch // MIN_MICRO_BATCH + 1) if training.size.is_divisible else ()
    return [count for count in counts if batch % count == 0]


def _in_micro_batches(start: Change, count: int) -> Change:
    return start.with_field("micro_batches", count)


def _smaller_batches(training: Training) -> Sequence[int]:
    """Smaller per-replica batches, each half of the one before."""
    batch = training.per_replica_batch
    return [batch >> halvings for halvings in range(1, batch.bit_length())]


def _with_batch(start: Change, batch: int) -> Change:
    """A smaller batch, without micro-batches."""
    training = start.training
    replicas = max(1, training.plan.batch_size // training.per_replica_batch)
    whole = training.plan.replace(micro_batches=None)
    return start.with_field("batch_size", batch * replicas, plan=whole, per_replica_batch=batch)
