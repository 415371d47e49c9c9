"""Saves a run's checkpoints and its trained model."""

import math
import time

import keras

from accel_engine.events import CheckpointSaved, Phase, Warned
from accel_engine.models.user_code import reason
from accel_engine.run.run_paths import MODEL
from accel_engine.training.checkpoints.checkpoint import Checkpoints
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.batches import Batches
from accel_engine.training.reporting.run_reporter import RunReporter

MAX_CHECKPOINT_TIME_SHARE = 0.05
"""The share of a run's time that checkpoints after epochs may take; after short epochs some are skipped."""


class RunSaver:
    """Saves the checkpoints and the model of one run; first restores the checkpoint that it continues from.

    Args:
        assembly: Model, data and strategy.
        reporter: The run's step and phase.
        batches: The position in the data.

    Raises:
        RunError: The checkpoint cannot be read, or does not fit the model or the data.
    """

    def __init__(self, assembly: Assembly, reporter: RunReporter, batches: Batches) -> None:
        self._assembly = assembly
        self._reporter = reporter
        self._checkpoints = Checkpoints(assembly, reporter.run.directory, batches)
        if reporter.step:
            self._checkpoints.restore(reporter.step)
        self._saved = self._current
        self._due = -math.inf

    @property
    def is_due(self) -> bool:
        """Whether another checkpoint keeps within :data:`MAX_CHECKPOINT_TIME_SHARE`; the first always does."""
        return time.perf_counter() >= self._due

    def save_checkpoint(self) -> None:
        """Write a checkpoint, unless there is already one of this step and learning rate."""
        reporter = self._reporter
        if self._saved == self._current:
            return
        reporter.enter_phase(Phase.CHECKPOINTING)
        began = time.perf_counter()
        path = self._checkpoints.save(reporter.step)
        self._saved = self._current
        ended = time.perf_counter()
        seconds = ended - began
        self._due = ended + seconds / MAX_CHECKPOINT_TIME_SHARE
        reporter.emit(CheckpointSaved, epoch=reporter.epochs, step=reporter.step, path=path, seconds=seconds)

    def save_model(self) -> None:
        """Write ``model.keras`` atomically; only the chief does."""
        if not self._assembly.chief:
            return
        # One name for all processes, so that a killed one does not leave a large file for good.
        temporary, final = (self._reporter.run.directory / name for name in ("partial.keras", MODEL))
        try:
            _complete(self._assembly).save(temporary)
            temporary.replace(final)
        except Exception as error:  # noqa: BLE001 (custom layers may not be serializable; the checkpoints remain)
            temporary.unlink(missing_ok=True)
            self._reporter.emit(Warned, message=f"the model could not be saved as model.keras: {reason(error)}")

    @property
    def _current(self) -> tuple[int, float | None]:
        """The step and learning rate, which identify a checkpoint's content."""
        return self._reporter.step, self._assembly.learning_rate


def _complete(assembly: Assembly) -> keras.Model:
    """The trained model, after the preprocessing of raw columns if the data has one."""
    if assembly.dataset.preprocess is None:
        return assembly.model
    preprocessing = assembly.dataset.preprocess()
    return keras.Model(preprocessing.inputs, assembly.model(preprocessing.outputs[0]), name=assembly.model.name)
