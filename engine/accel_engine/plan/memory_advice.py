"""Finds the cheapest change of a plan with which its training fits in memory, by the estimate; without TensorFlow.

Remedies are tried in the order of what they cost, each also with those before it.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self

from accel_engine.errors import FieldValue, Words
from accel_engine.plan.memory_estimate import MemoryEstimate, Training, estimate_memory
from accel_engine.plan.memory_remedies import MIXED, REMEDIES, MemoryFacts


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
    values = _values(training)
    starts = [Change(training)]
    for name in ("remat", "precision"):
        starts += [start.with_field(name, value) for start in starts for value in values[name]]
    found = (_first_that_fits(start, values["micro_batches"], _in_micro_batches) for start in starts)
    smaller = (_first_that_fits(start, values["batch_size"], _with_batch) for start in starts)
    return next((change for change in chain(found, smaller) if change is not None), None)


def _values(training: Training) -> dict[str, Sequence[Any]]:
    """The values of fields that may help, without last resorts, from the mildest on."""
    plan, size = training.plan, training.size
    facts = MemoryFacts(
        batch=training.per_replica_batch,
        can_split=size.is_divisible,
        can_recompute=size.remat_share is not None and plan.strategy != "parameter-server",
        mixed=MIXED.get(training.kind, ""),
    )
    return {each.field: each.values(plan, facts) for each in REMEDIES if not each.is_last}


def _first_that_fits(start: Change, values: Sequence[int], make: Callable[[Change, int], Change]) -> Change | None:
    """The first change that fits, of ``start`` and of those made of it, which take less and less memory."""
    if start.values and start.fits:
        return start
    first = bisect_left(values, 1, key=lambda value: make(start, value).fits)
    return make(start, values[first]) if first < len(values) else None


def _in_micro_batches(start: Change, count: int) -> Change:
    return start.with_field("micro_batches", count)


def _with_batch(start: Change, batch: int) -> Change:
    """A smaller batch of all replicas, without micro-batches."""
    training = start.training
    replicas = max(1, training.plan.batch_size // training.per_replica_batch)
    whole = training.plan.replace(micro_batches=None)
    return start.with_field("batch_size", batch, plan=whole, per_replica_batch=batch // replicas)
