"""Saves a run's checkpoints and its trained model."""

import math
import time

import keras

from accel_engine.events import CheckpointSaved, Phase, Warned
from accel_engine.models.user_code import reason
from accel_engine.run.run_paths import MODEL
from accel_engine.training.checkpoints.checkpoint import Checkpoints
from accel_engine.training.checkpoints.portable_model import averages_as_weights, portable_optimizer
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.progress.run_progress import RunProgress
from accel_engine.training.reporting.run_reporter import RunReporter

MAX_CHECKPOINT_TIME_SHARE = 0.05
"""The share of a run's time that checkpoints after epochs may take; after short epochs some are skipped."""


class RunSaver:
    """Saves the checkpoints and the model of one run.

    Args:
        assembly: Model, data and strategy.
        reporter: The run's step and phase.
        checkpoints: The run's checkpoints; the one that it continues from is restored.
        progress: Knows the step at which the monitored metric is at its best, whose checkpoint is kept.

    Attributes:
        model_step: The step whose weights ``model.keras`` has, if they are not the last ones.
    """

    def __init__(
        self, assembly: Assembly, reporter: RunReporter, checkpoints: Checkpoints, progress: RunProgress
    ) -> None:
        self._assembly = assembly
        self._reporter = reporter
        self._checkpoints = checkpoints
        self._progress = progress
        self._saved = self._current
        self._due = -math.inf
        self.model_step: int | None = None

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
        self._checkpoints.prune(self._progress.best_among(self._checkpoints.steps))
        self._due = ended + seconds / MAX_CHECKPOINT_TIME_SHARE
        is_best = reporter.step == self._progress.best_step
        reporter.emit(
            CheckpointSaved, epoch=reporter.epochs, step=reporter.step, path=path, seconds=seconds, best=is_best
        )

    def save_model(self) -> None:
        """Write ``model.keras`` atomically, at the end of training; only the chief does.

        With ``restore_best``, the weights are those of the best step, and with ``ema_momentum`` their averages.
        """
        if not self._assembly.chief:
            return
        self._restore_best()
        with averages_as_weights(self._assembly), portable_optimizer(self._assembly):
            self._save_model()

    def _restore_best(self) -> None:
        best, reporter = self._progress.best_step, self._reporter
        if self._assembly.plan.restore_best == "off" or best in (None, reporter.step):
            return
        restored = self._progress.best_among([*self._checkpoints.steps, reporter.step])
        if restored not in (None, reporter.step):
            self._checkpoints.restore_weights(restored)
            self.model_step = restored
        if restored == best:
            message = f"the model has the weights of its best step, {best:,}"
            reporter.emit(Warned, message=message, severity="information")
        else:
            message = f"the checkpoint of the best step, {best:,}, is missing: the model has the weights of step "
            reporter.emit(Warned, message=f"{message}{restored or reporter.step:,}")

    def _save_model(self) -> None:
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
