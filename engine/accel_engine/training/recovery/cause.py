"""Finds the step, the batch and the layer with which a loss or weights became not a number, or a loss exploded."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import format_error
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.recovery.batch_at_fault import BatchAtFault, look_at
from accel_engine.training.recovery.checked_step import CheckedStep
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
        found = [self.first] if self.first else []
        if self.batch:
            found.append(f"{self.batch} ({self.examples})")
        elif self.examples:
            found.append(f"the batch of step {self.step:,} has {self.examples}")
        if self.file:
            found.append(f"the batch is in {self.file}")
        if self.unknown:
            found.append(f"more is unknown: {self.unknown}")
        return "; ".join(found)


def find_cause(
    trouble: Trouble, assembly: Assembly, directory: Path, first: int, interrupted: Callable[[], bool]
) -> Cause:
    """Take the steps since a checkpoint again, and look for the cause of a trouble.

    A loss that is not finite comes from its own step, or from the update of the step before.

    Args:
        trouble: What was seen.
        assembly: As it was built: without a restored checkpoint.
        directory: The run's directory.
        first: The step of the checkpoint; 0 for the start.
        interrupted: Whether to end the search.
    """
    try:
        return _search(trouble, assembly, directory, first, interrupted)
    except ReplayEnded as ended:
        return Cause(unknown=str(ended))
    except Exception as error:  # noqa: BLE001 (the search must not hide what was seen)
        return Cause(unknown=f"the steps could not be taken again: {format_error(error)}")


def _search(
    trouble: Trouble, assembly: Assembly, directory: Path, first: int, interrupted: Callable[[], bool]
) -> Cause:
    replay, checked = Replay(assembly, directory, first, interrupted), CheckedStep(assembly)
    before: BatchAtFault | None = None
    steps = sorted({max(first, trouble.step - 1), max(first, trouble.step)})
    for batch, rows in replay.before(steps):
        if weight := replay.not_finite():
            if before is None:
                return Cause(unknown=f"{weight} was not finite even before step {replay.step:,}")
            return _cause(before, _by_update(before, weight), "", directory, assembly)
        seen = look_at(replay.step, batch, rows, assembly.dataset)
        found = checked.first_not_finite(batch)
        if found or seen.text or (trouble.explodes and before is None and trouble.step > first):
            return _cause(seen, found, checked.reason, directory, assembly)
        before = seen
    weight = replay.not_finite()
    if before is not None and (weight or checked.reason):
        found = _by_update(before, weight) if weight else ""
        return _cause(before, found, "" if weight else checked.reason, directory, assembly)
    return Cause(unknown=f"the same steps, taken again from step {first:,}, gave values that are finite")


def _by_update(batch: BatchAtFault, weight: str) -> str:
    return f"the update of step {batch.step:,} makes {weight} not finite"


def _cause(batch: BatchAtFault, first: str, reason: str, directory: Path, assembly: Assembly) -> Cause:
    try:
        file = batch.save(directory)
    except OSError as error:
        file, reason = "", "; ".join(filter(None, (reason, f"the batch could not be kept: {error.strerror}")))
    return Cause(batch.step, first, reason, batch.text, batch.named(assembly.dataset), file)
