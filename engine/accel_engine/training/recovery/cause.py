"""Finds the step, the batch and the layer with which a loss or weights became not a number, or a loss exploded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import format_error
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.recovery.batch_at_fault import BatchAtFault, look_at
from accel_engine.training.recovery.checked_step import INPUTS, CheckedStep
from accel_engine.training.recovery.loss_watch import Trouble
from accel_engine.training.recovery.replay import Replay, ReplayEnded


@dataclass(frozen=True, slots=True)
class Cause:
    """What was found.

    Attributes:
        step: The step at fault, counted from 0; ``None`` if it is unknown.
        first: What is not finite first, in words; empty if unknown.
        unknown: Why not all could be found; empty if it could.
        batch: What is wrong with the batch of the step, in words; empty if nothing is.
        examples: The examples at fault, or all of the batch, in words.
        file: The file in the run's directory with the batch; empty if it could not be kept.
    """

    step: int | None = None
    first: str = ""
    unknown: str = ""
    batch: str = ""
    examples: str = ""
    file: str = ""

    @property
    def text(self) -> str:
        """What was found, in one line for the user."""
        found = [self.first] if self.first and not (self.batch and self.first == INPUTS) else []
        if self.batch:
            found.append(f"{self.batch} ({self.examples})")
        elif self.examples:
            found.append(f"the batch of step {self.step:,} has {self.examples}")
        if self.file:
            found.append(f"the batch is in {self.file} in the run's directory")
        if self.unknown:
            found.append(f"more is unknown: {self.unknown}")
        return "; ".join(found)


def find_cause(
    trouble: Trouble,
    assemble_again: Callable[[], Assembly],
    directory: Path,
    first: int,
    interrupted: Callable[[], bool],
) -> Cause:
    """Take the steps since a checkpoint again, and look for the cause of a trouble.

    Args:
        trouble: What was seen.
        assemble_again: Assembles the run, without restoring a checkpoint.
        directory: The run's directory.
        first: The step of the checkpoint; 0 for the start.
        interrupted: Whether to end the search.
    """

    def replayed() -> tuple[Assembly, Replay]:
        assembly = assemble_again()
        return assembly, Replay(assembly, directory, first, interrupted)

    try:
        # A loss that is not finite comes from its own step, or from the update of the step before.
        steps = sorted({max(first, trouble.step - 1), max(first, trouble.step)})
        return _Search(trouble, directory, *replayed()).among(steps)
    except _NotFiniteBefore:
        pass
    except Exception as error:  # noqa: BLE001 (the search must not hide what was seen)
        return _unknown(error)
    try:
        # Some layers turn NaN to 0, so that losses stay finite for long.
        start, end = replayed()[1].failing_chunk(trouble.step)
        return _Search(trouble, directory, *replayed()).among(range(start, end + 1))
    except Exception as error:  # noqa: BLE001 (see above)
        return _unknown(error)


def _unknown(error: Exception) -> Cause:
    if isinstance(error, ReplayEnded):
        return Cause(unknown=str(error))
    return Cause(unknown=f"the steps could not be taken again: {format_error(error)}")


class _NotFiniteBefore(Exception):  # noqa: N818 (an answer, not an error)
    """Weights were not finite before the first step that was looked at."""

    def __str__(self) -> str:
        return "weights were not finite before"


class _Search:
    """Looks for a cause in some steps."""

    def __init__(self, trouble: Trouble, directory: Path, assembly: Assembly, replay: Replay) -> None:
        self._trouble, self._directory = trouble, directory
        self._assembly, self._replay = assembly, replay
        self._checked = CheckedStep(assembly)

    def among(self, steps: Sequence[int]) -> Cause:
        """The cause, in one of some steps that follow each other.

        Raises:
            ReplayEnded: The steps could not be taken again.
        """
        before: BatchAtFault | None = None
        for batch, rows in self._replay.before(steps):
            if weight := self._replay.not_finite():
                return self._by_update(before, weight)
            seen = look_at(self._replay.step, batch, rows, self._assembly.dataset)
            found = self._checked.first_not_finite(batch)
            explodes = self._trouble.explodes and self._replay.step < self._trouble.step
            if found or seen.text or explodes:
                return self._cause(seen, found, self._checked.reason)
            before = seen
        if weight := self._replay.not_finite():  # after the last step of the run
            return self._by_update(before, weight)
        if before is not None and self._checked.reason:
            return self._cause(before, "", self._checked.reason)
        return Cause(unknown="the same steps, taken again from the checkpoint, gave values that are finite")

    def _by_update(self, batch: BatchAtFault | None, weight: str) -> Cause:
        if batch is None:
            raise _NotFiniteBefore
        return self._cause(batch, f"the update of step {batch.step:,} makes {weight} not finite", "")

    def _cause(self, batch: BatchAtFault, first: str, unknown: str) -> Cause:
        try:
            file = batch.save(self._directory)
        except OSError as error:
            file, unknown = "", "; ".join(filter(None, (unknown, f"the batch could not be kept: {error.strerror}")))
        return Cause(batch.step, first, unknown, batch.text, batch.named(self._assembly.dataset), file)
