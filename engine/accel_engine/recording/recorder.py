"""The callback that makes any ``fit`` a run."""

import atexit
import time
import weakref
from pathlib import Path
from typing import Any

import keras

from accel_engine.recording import describing, script
from accel_engine.recording.fit import Fit
from accel_engine.run.making import create_recorded


class RunRecorder(keras.callbacks.Callback):  # type: ignore[misc]
    """Records what ``fit`` does as a run that the dashboard can watch, list and compare.

    A run ends with ``fit``, also where an exception or Ctrl-C ends that; another ``fit`` with the same recorder goes on
    with the same run. Of what can be asked of a run, it obeys ``pause``, ``resume``, ``stop`` and ``learning_rate``.

    A series that is called as Keras calls it (``loss``) has what each batch measured; ``mean_loss`` is the mean of the
    batches of an execution (``steps_per_execution``), and ``running_loss`` is Keras' mean since the epoch began, where
    Keras gives no more: of metrics that are no means, where batches do not all count the same, and late in very long
    epochs (see :mod:`accel_engine.recording.recovery`).

    Args:
        name: A name for the run.

    Attributes:
        directory: Of the run; ``None`` before the first ``fit``.

    Raises:
        RunError: From ``fit``, when no run can be written.
    """

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.directory: Path | None = None
        self._name = name
        self._fit: Fit | None = None
        self._live = False
        _RECORDERS.add(self)

    def on_train_begin(self, logs: Any = None) -> None:
        """Begin the run, or go on with it."""
        del logs
        self._leave()  # a fit before this one may have been left by an exception a moment ago
        model, epochs = self.model, self.params["epochs"]
        values = {
            "name": self._name,
            "model": model.name,
            "data": script.name(),
            "strategy": describing.strategy(model),
            "epochs": epochs,
        }
        if self.directory is None:
            self.directory = create_recorded(values, script.command())
        self._fit = Fit(lambda: self.model, self.directory, values, epochs, self.params["steps"], self._fit)
        self._live = True
        self._add = self._fit.batches.add
        self._fit.begin()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Begin an epoch."""
        del logs
        if self._fit:
            self._fit.begin_epoch(epoch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Take what Keras tells of the batch; all else is done a few times a second."""
        del batch
        self._add(logs)
        if time.monotonic() >= self._fit.due:  # type: ignore[union-attr] # fit has begun
            self._fit.look()  # type: ignore[union-attr]

    def on_test_begin(self, logs: Any = None) -> None:
        """Begin a validation."""
        del logs
        if self._fit and self._live:  # not where evaluate is called by itself
            self._fit.begin_validation()

    def on_test_end(self, logs: Any = None) -> None:
        """End a validation."""
        del logs
        if self._fit and self._live:
            self._fit.end_validation()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """End an epoch."""
        del epoch
        if self._fit:
            self._fit.end_epoch(logs or {})

    def on_train_end(self, logs: Any = None) -> None:
        """End the run."""
        del logs
        if self._fit:
            self._fit.end()
        self._live = False

    def _leave(self) -> None:
        """End a run that an exception left."""
        if self._fit and self._live:
            self._fit.end_without_word()
        self._live = False


_RECORDERS: weakref.WeakSet[RunRecorder] = weakref.WeakSet()
"""Those that are still there: one that is done with is not kept for the end of the script, nor is its model."""


@atexit.register
def _leave_all() -> None:
    for recorder in list(_RECORDERS):
        recorder._leave()  # noqa: SLF001 (this is its own module)
