"""Splits validation examples into batches that cover every example once, over all replicas.

Whole batches come first, then one partial batch of equal size on every replica. The last examples, fewer than replicas,
go to all of them with the weight ``1 / replicas`` (but with the weight 1 in the metrics of a model with a custom
``train_step``).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_engine.data.dataset import Stream
from accel_engine.data.structure import Batch, flatten, map_structure
from accel_engine.training.core.stream_feed import StreamFeed


@dataclass(frozen=True, slots=True)
class ValidationPart:
    """Some batches of one size."""

    order: Any
    """What the feed opens."""
    steps: int
    """Number of batches."""
    examples: int
    """Examples of each, over all replicas."""
    weight: float = 1.0
    """Weight of their sums: 1, or ``1 / replicas`` where all replicas have the same examples."""
    batch: Batch | None = None
    """The examples of a stream's batch."""


def row_parts(examples: int, replicas: int, size: int) -> Iterator[ValidationPart]:
    """Yield the batches of examples that are read by row.

    Args:
        examples: Number of examples.
        replicas: Number of replicas.
        size: The size of a whole batch on each of them.
    """
    rows = np.arange(examples, dtype=np.int32)
    steps = examples // (replicas * size)
    whole, rest = np.split(rows, [steps * replicas * size])
    if steps:
        yield ValidationPart(whole.reshape(steps, replicas, size), steps, replicas * size)
    shared, last = np.split(rest, [len(rest) // replicas * replicas])
    if len(shared):
        yield ValidationPart(shared.reshape(1, replicas, -1), 1, len(shared))
    if len(last):
        yield ValidationPart(np.repeat(last, replicas).reshape(-1, replicas, 1), len(last), 1, 1.0 / replicas)


def stream_parts(stream: Stream, feed: StreamFeed, replicas: int, limit: int | None = None) -> Iterator[ValidationPart]:
    """Yield the batches of a stream, each shared by all replicas.

    Args:
        stream: The examples.
        feed: Stacks what the replicas take.
        replicas: Number of replicas.
        limit: The most examples of a batch on each of them; by default as many as the stream's batches have.
    """
    for batch in _cut(stream.read(0, 0), limit and limit * replicas):
        examples = len(flatten(batch)[0])
        shared = examples // replicas * replicas
        if shared:
            part = map_structure(lambda array, end=shared: array[:end], batch)
            yield ValidationPart(feed.stacked(part), 1, shared, batch=part)
        for row in range(shared, examples):
            repeated = map_structure(
                lambda array, row=row: np.repeat(np.asarray(array)[row : row + 1], replicas, axis=0), batch
            )
            one = map_structure(lambda array: array[:1], repeated)
            yield ValidationPart(feed.stacked(repeated), 1, 1, 1.0 / replicas, one)


def _cut(batches: Iterable[Batch], most: int | None) -> Iterator[Batch]:
    """Cut batches into batches of at most ``most`` examples."""
    for batch in batches:
        examples = len(flatten(batch)[0])
        for first in range(0, examples, most or max(1, examples)):
            own = slice(first, first + (most or examples))
            yield map_structure(lambda array, own=own: array[own], batch)
