"""The training batches of a run: which segment comes next, and where in the data a step is."""

from collections.abc import Callable, Generator, Iterator
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Split
from accel_engine.data.structure import map_structure
from accel_engine.errors import DataError
from accel_engine.plan.step_counts import StepCounts
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.stream_feed import StreamFeed
from accel_engine.training.core.uneven_batches import replica_positions

EXACT_STEPS = 16
"""Steps of a segment of a stream that several workers read, each for itself."""

MAX_ROWS = 1 << 20
"""Row numbers that are generated at a time, unless one pass over the data has more."""


class RowBatches:
    """Batches of examples that are read by row, in an order that follows from the step.

    Gives the segments of every epoch, and knows the position, which belongs to a checkpoint, as
    :class:`StreamBatches` does.

    Args:
        assembly: Data and step counts.

    Attributes:
        position: What a checkpoint stores, four integers; zeros, as the position follows from the step.
    """

    spans_epochs = True
    """Whether segments go on with the next epoch; otherwise they end with one."""

    def __init__(self, assembly: Assembly) -> None:
        assert isinstance(assembly.dataset.train, Split)  # noqa: S101 (the caller chose by it)
        self._assembly = assembly
        self._examples = len(assembly.dataset.train)
        self.position = [0, 0, 0, 0]
        self._step = 0

    @property
    def epoch_ended(self) -> bool:
        """Whether the last step that was counted is the last one of its epoch; also before the first step."""
        return not self._step % self._assembly.step_counts.steps_per_epoch

    def divide(self, steps: int) -> list[int]:
        """How many of the next steps belong to each epoch."""
        each = self._assembly.step_counts.steps_per_epoch
        ends = range(self._step - self._step % each + each, self._step + steps, each)
        edges = [self._step, *ends, self._step + steps]
        return [after - before for before, after in pairwise(edges)]

    def restore(self, step: int) -> tuple[int, int]:
        """The epoch, from 0, and the steps done in it after some steps."""
        return divmod(step, self._assembly.step_counts.steps_per_epoch)

    def segments(
        self, epoch: int, done: int, chunk_steps: Callable[[], int], epochs: int = 1
    ) -> Generator[Segment, None, None]:
        """Yield the segments of an epoch after some of its steps, and of the ones after it.

        Args:
            epoch: The epoch, from 0.
            done: The steps done in it.
            chunk_steps: Returns the number of steps of the next chunk.
            epochs: Number of epochs, if segments span several.
        """
        counts, plan = self._assembly.step_counts, self._assembly.plan
        shuffle = plan.shuffle == "on"
        step = self._step = epoch * counts.steps_per_epoch + done
        for order in epoch_orders(counts, self._examples, plan.seed, epoch, epochs, first=done, shuffle=shuffle):
            yield Segment(order, len(order), counts.step_sizes(step, step + 1)[0])
            step += len(order)

    def count(self, steps: int) -> None:
        """Note that steps were taken."""
        self._step += steps

    def first_segment(self) -> Segment:
        """A segment of whole batches, to trace the step with."""
        counts = self._assembly.step_counts
        order = np.zeros((1, counts.replicas, counts.per_replica_batch), np.int32)
        return Segment(order, 1, counts.global_batch)

    def close(self) -> None:
        """Nothing is read ahead."""


class StreamBatches:
    """Batches of a stream, pass after pass.

    A plan's steps per epoch end an epoch anywhere in the stream; without them, an epoch is one pass.

    Args:
        assembly: Data and plan.
    """

    spans_epochs = False

    def __init__(self, assembly: Assembly) -> None:
        assert isinstance(assembly.feed, StreamFeed)  # noqa: S101 (the caller chose by it)
        assert not isinstance(assembly.dataset.train, Split)  # noqa: S101
        self._feed: StreamFeed = assembly.feed
        self._assembly = assembly
        self._limit = assembly.plan.steps_per_epoch or assembly.dataset.train.batches
        self._ends_pass = assembly.plan.steps_per_epoch is None
        self._reader: Generator[Segment, None, None] | None = None
        self._peeked: Segment | None = None
        self._pass_over = False  # and the reader reads the next one
        self._wanted = 1
        self._pass, self._pass_step, self._epoch, self._done = 0, 0, 0, 0

    @property
    def position(self) -> list[int]:
        """The pass over the stream, the batches consumed of it, the epoch and the steps done in it."""
        return [self._pass, self._pass_step, self._epoch, self._done]

    @position.setter
    def position(self, position: list[int]) -> None:
        self._pass, self._pass_step, self._epoch, self._done = position

    @property
    def epoch_ended(self) -> bool:
        """Whether all steps of the epoch were counted; ``False`` where their number is unknown."""
        return self._limit is not None and self._done >= self._limit

    def divide(self, steps: int) -> list[int]:
        """All of the next steps: the steps of a segment belong to one epoch."""
        return [steps]

    def restore(self, step: int) -> tuple[int, int]:
        """The epoch, from 0, and the steps done in it, as the restored :attr:`position` says."""
        return self._epoch, self._done

    def segments(
        self, epoch: int, done: int, chunk_steps: Callable[[], int], epochs: int = 1
    ) -> Generator[Segment, None, None]:
        """Yield the segments of one epoch after some of its steps.

        Raises:
            DataError: A pass over the stream has no batches.
        """
        self._epoch, self._done = epoch, done
        while self._ends_pass or not self.epoch_ended:
            self._wanted = chunk_steps()
            segment = None if self._pass_over else self._next()
            if segment is not None:
                yield self._end_at(segment)
                continue
            if not self._pass_step:
                raise DataError(f"the data gave no batches in pass {self._pass + 1} over it")
            if not self._pass_over:
                self._reader = None
            self._pass_over, self._pass, self._pass_step = False, self._pass + 1, 0
            if self._ends_pass:
                break
        self._epoch, self._done = epoch + 1, 0

    def count(self, steps: int) -> None:
        """Note that steps were taken."""
        self._pass_step += steps
        self._done += steps

    def first_segment(self) -> Segment:
        """The first segment, to trace the step with; it is trained on later.

        Raises:
            DataError: There are no batches.
        """
        self._peeked = self._next()
        if self._peeked is None and self._pass_step:  # the checkpoint is at the end of a pass
            self._pass_over, self._reader = True, self._read(self._pass + 1, 0)
            self._peeked = next(self._reader, None)
        if self._peeked is None:
            raise DataError("the data gives no batches")
        return self._peeked

    def _next(self) -> Segment | None:
        """The next segment of this pass over the stream; ``None`` at its end."""
        if self._peeked is not None:
            segment, self._peeked = self._peeked, None
            return segment
        if self._reader is None:
            self._reader = self._read(self._pass, self._pass_step)
        return next(self._reader, None)

    def _read(self, number: int, pass_step: int) -> Generator[Segment, None, None]:
        exact = not self._assembly.single_process
        wanted = (lambda: EXACT_STEPS) if exact else (lambda: self._wanted)
        return self._feed.segments(number, pass_step, wanted, exact=exact)

    def close(self) -> None:
        """Stop reading ahead."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _end_at(self, segment: Segment) -> Segment:
        """The part of a segment that belongs to the epoch; the rest comes first in the next one."""
        left = self._limit - self._done if self._limit is not None and not self._ends_pass else segment.steps
        if left >= segment.steps:
            return segment
        parts = [
            map_structure(lambda stack, own=own: stack[own], segment.order) for own in (slice(left), slice(left, None))
        ]
        self._peeked = Segment(parts[1], segment.steps - left, segment.examples)
        return Segment(parts[0], left, segment.examples)


Batches: TypeAlias = RowBatches | StreamBatches
"""The training batches of a run."""


def training_batches(assembly: Assembly) -> Batches:
    """The training batches of an assembly."""
    if isinstance(assembly.dataset.train, Split):
        return RowBatches(assembly)
    return StreamBatches(assembly)


def epoch_orders(
    counts: StepCounts, examples: int, seed: int, epoch: int, epochs: int = 1, *, first: int = 0, shuffle: bool = True
) -> Iterator[npt.NDArray[np.int32]]:
    """Yield the row numbers of the steps of epochs, int32 ``[steps, replicas, batch]``, in parts with one batch size.

    The order depends on the seed, the epoch and the pass over the data only. So the examples of a step follow from its
    number, and a run that continues has the order of one that never stopped.

    Every example comes once before any comes again. Passes over the data follow each other, each in another order: an
    epoch with other steps than the data has batches begins where the one before it ended, as in ``fit``. The last step
    of a pass may be smaller: it is a separate part.

    Args:
        counts: Batch sizes and steps.
        examples: Number of examples.
        seed: The plan's seed.
        epoch: The first epoch, from 0.
        epochs: Number of epochs.
        first: The first step to yield of the first epoch.
        shuffle: Whether the order is random; otherwise every pass has the order of the data.
    """
    replicas, batch = counts.replicas, counts.per_replica_batch
    whole = examples // (replicas * batch)
    per_pass = whole + (counts.last_batch > 0)
    together = max(1, MAX_ROWS // max(1, whole * replicas * batch)) if not counts.last_batch else 1
    whole_passes = max(1, counts.steps_per_epoch // per_pass) if not counts.steps_per_epoch % per_pass else 1

    def order_of(number: int) -> npt.NDArray[np.int32]:
        return _permutation(seed, *divmod(number, whole_passes), examples, shuffle=shuffle)

    step, end = epoch * counts.steps_per_epoch + first, (epoch + epochs) * counts.steps_per_epoch
    while step < end:
        number, pass_step = divmod(step, per_pass)
        if pass_step >= whole:  # the last, smaller step of a pass
            rows = order_of(number)[whole * replicas * batch :]
            yield rows[replica_positions(counts.last_batch, replicas)][np.newaxis]
            step += 1
            continue
        passes = [
            order_of(each)[: whole * replicas * batch]
            for each in range(number, min(number + together, -(-end // per_pass)))
        ]
        order = np.concatenate(passes).reshape(-1, replicas, batch)[pass_step : pass_step + end - step]
        yield order
        step += len(order)


def _permutation(seed: int, epoch: int, number: int, examples: int, *, shuffle: bool) -> npt.NDArray[np.int32]:
    if not shuffle:
        return np.arange(examples, dtype=np.int32)
    return np.random.default_rng([seed, epoch, number]).permutation(examples).astype(np.int32)
