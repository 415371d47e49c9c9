"""Keeping what was learned: checkpoints to go on from, and a model to use."""

import math
import time

from accel_engine.events import CheckpointSaved, Phase, Warned
from accel_engine.models.user_code import reason
from accel_engine.run.paths import MODEL
from accel_engine.training.assembly import Assembly
from accel_engine.training.checkpoint import Checkpoints
from accel_engine.training.run_reporter import RunReporter

SHARE = 0.05
"""The share of a run's time that checkpoints at the ends of epochs may take; epochs too short for that go without."""


class Saving:
    """Saves one run's work, which is restored first where there is some to go on from.

    Args:
        assembly: What is trained.
        progress: Where the run stands.

    Raises:
        RunError: The checkpoint cannot be read, or fits neither the model nor the data.
    """

    def __init__(self, assembly: Assembly, progress: RunReporter) -> None:
        self._assembly = assembly
        self._progress = progress
        self._checkpoints = Checkpoints(assembly, progress.run.directory)
        if progress.step:
            self._checkpoints.restore(progress.step)
        self._saved = self._reached
        self._due = -math.inf

    @property
    def is_due(self) -> bool:
        """Whether the last one was so long ago that another keeps within :data:`SHARE`; the first always does."""
        return time.perf_counter() >= self._due

    def checkpoint(self) -> None:
        """Write a checkpoint, unless there is one of this step and learning rate."""
        progress = self._progress
        if self._saved == self._reached:
            return
        progress.enter(Phase.CHECKPOINTING)
        began = time.perf_counter()
        path = self._checkpoints.save(progress.step)
        self._saved = self._reached
        ended = time.perf_counter()
        seconds = ended - began
        self._due = ended + seconds / SHARE
        progress.say(CheckpointSaved, epoch=progress.epochs, step=progress.step, path=path, seconds=seconds)

    def model(self) -> None:
        """Write ``model.keras``, whole or not at all; of many workers the chief does."""
        if not self._assembly.chief:
            return
        written, final = (self._progress.run.directory / name for name in ("partial.keras", MODEL))
        try:
            self._assembly.model.save(written)
            written.replace(final)
        except Exception as error:  # noqa: BLE001 (a user's own layers may refuse; the checkpoints are there)
            written.unlink(missing_ok=True)
            self._progress.say(Warned, message=f"the model could not be saved as model.keras: {reason(error)}")

    @property
    def _reached(self) -> tuple[int, float | None]:
        """What tells two checkpoints apart: steps change all else, and a command the learning rate."""
        return self._progress.step, self._assembly.learning_rate
