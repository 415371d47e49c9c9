"""Takes the steps of a run again from a checkpoint, to look at the model and the batch before one of them."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Split
from accel_engine.data.structure import Batch, map_structure
from accel_engine.keras_support.optimizers import every_optimizer
from accel_engine.private_names.keras_names import iterations_of
from accel_engine.run.history.history import skipped_steps
from accel_engine.training.autotuning.mode_choice import plan_mode
from accel_engine.training.checkpoints.checkpoint import Checkpoints
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.batches import training_batches
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import Loop
from accel_engine.training.recovery.batch_at_fault import Rows

MAX_SECONDS = 300.0
"""The longest time of one replay; a search for a cause has up to three."""


class ReplayEnded(Exception):  # noqa: N818 (an answer, not an error)
    """The steps were not taken again up to the step that was asked for."""


class _FoundChunk(Exception):  # noqa: N818 (an answer, not an error)
    """Weights are not finite after a chunk."""

    def __init__(self, before: int) -> None:
        super().__init__()
        self.before = before


class Replay:
    """Takes the steps of an assembled run again, with the learning rate of the checkpoint or the plan.

    Args:
        assembly: As it was built: without a restored checkpoint.
        directory: The run's directory, with its checkpoints.
        first: The step of the checkpoint to begin with; 0 for the start.
        interrupted: Whether to end; asked after each chunk.

    Attributes:
        step: Steps taken.
    """

    def __init__(self, assembly: Assembly, directory: Path, first: int, interrupted: Callable[[], bool]) -> None:
        self._assembly, self._interrupted = assembly, interrupted
        self._batches = training_batches(assembly)
        self._checkpoints = Checkpoints(assembly, directory, self._batches)
        self._began = time.monotonic()
        self._until_not_finite = False
        self.step = first
        if first:
            self._checkpoints.restore(first)

    def not_finite(self) -> str:
        """The first weight, or variable of the optimizer, that is not finite now; empty if all are finite."""
        variables = self._checkpoints.not_finite()
        return variables[0].path if variables else ""

    def failing_chunk(self, last: int) -> tuple[int, int]:
        """Take steps until weights are not finite after a chunk; returns the steps taken before it and after it.

        Args:
            last: The step to end with at most.

        Raises:
            ReplayEnded: The weights stay finite; or the replay took too long, or was interrupted.
        """
        self._until_not_finite = True
        try:
            for _ in self.batches_before([last]):
                pass
        except _FoundChunk as found:
            return found.before, self.step
        raise ReplayEnded("the same steps, taken again, gave weights that are finite")

    def batches_before(self, steps: Collection[int]) -> Iterator[tuple[Batch, Rows | None]]:
        """Yield before each of some steps, with its batch: NumPy arrays ``[examples, ...]``, and their rows.

        Raises:
            ReplayEnded: The replay took too long, or was interrupted.
        """
        try:
            yield from self._batches_before(frozenset(steps))
        finally:
            self._batches.close()

    def _batches_before(self, steps: frozenset[int]) -> Iterator[tuple[Batch, Rows | None]]:
        assembly, skipped = self._assembly, skipped_steps(self._assembly.plan.skip_steps)
        epoch, done = self._batches.restore(self.step)
        if assembly.freezing.is_due(epoch + (done > 0)):
            assembly.freezing.end()
        loop: Loop | None = None
        while epoch < assembly.plan.epochs and self.step <= max(steps):
            if assembly.freezing.is_due(epoch + 1):
                assembly.freezing.end()
                loop = None
            if loop is None:
                loop = Loop(assembly, plan_mode(assembly))
                loop.trace(self._batches.first_segment())
            segments = self._batches.segments(epoch, done, self._chunk_steps(loop))
            for segment, is_alone in separated(segments, steps | skipped, lambda: self.step):
                if is_alone and self.step in skipped:
                    advance_optimizers(assembly)
                    self._count(1)
                    continue
                if is_alone:
                    yield self._batch_of(segment)
                    if self.step == max(steps):
                        return
                for chunk in loop.run(segment, 0):
                    self._count(chunk.count)
            epoch, done = epoch + 1, 0

    @staticmethod
    def _chunk_steps(loop: Loop) -> Callable[[], int]:
        return lambda: loop.chunk_steps

    def _count(self, steps: int) -> None:
        self._batches.count(steps)
        self.step += steps
        if self._until_not_finite and self.not_finite():
            raise _FoundChunk(self.step - steps)
        if self._interrupted():
            raise ReplayEnded("a command to stop has ended the search")
        if time.monotonic() - self._began > MAX_SECONDS:
            raise ReplayEnded(f"the steps since the checkpoint take more than {MAX_SECONDS:g} s")

    def _batch_of(self, segment: Segment) -> tuple[Batch, Rows | None]:
        """The batch of a segment of one step."""
        train = self._assembly.dataset.train
        if isinstance(train, Split):
            every, first = np.unique(np.asarray(segment.order).reshape(-1), return_index=True)
            rows = every[np.argsort(first)]  # several replicas may have the same ones
            return train.take(rows), rows

        def examples(stack: Any) -> npt.NDArray[Any]:
            array: npt.NDArray[Any] = np.asarray(stack)[0]
            return array if self._assembly.replicas == 1 else array.reshape(-1, *array.shape[2:])

        batch: Batch = map_structure(examples, segment.order)
        return batch, None


def separated(
    segments: Iterable[Segment], alone: Collection[int], step: Callable[[], int]
) -> Iterator[tuple[Segment, bool]]:
    """Divide segments so that each of some steps has its own segment; yields each with whether it is such a step.

    Args:
        segments: The segments of an epoch.
        alone: The steps, counted from 0.
        step: Returns the steps taken, which must be all before a segment when it is asked for.
    """
    for segment in segments:
        first = step()
        cuts = sorted(each - first for each in alone if first <= each < first + segment.steps)
        done = 0
        for cut in cuts:
            if done < cut:
                yield _part(segment, done, cut), False
            yield _part(segment, cut, cut + 1), True
            done = cut + 1
        if done < segment.steps:
            yield _part(segment, done, segment.steps), False


def advance_optimizers(assembly: Assembly) -> None:
    """Count a step that has no update, so that schedules stay as planned."""
    for optimizer in every_optimizer(assembly.model):
        iterations = iterations_of(optimizer)
        iterations.assign(iterations + 1)


def _part(segment: Segment, first: int, last: int) -> Segment:
    if (first, last) == (0, segment.steps):
        return segment
    order = map_structure(lambda each: each[first:last], segment.order)
    return Segment(order, last - first, segment.examples)
