"""The Keras callback that records ``fit`` as a run."""

import time
from pathlib import Path
from typing import Any

import keras

from accel_engine.errors import RunError, format_error
from accel_engine.recording import fit_calls, model_description, script, watch_hint
from accel_engine.recording.error_guard import guarded, warn
from accel_engine.recording.fit_session import FitSession
from accel_engine.recording.run_link import RunLink

fit_calls.observe()


class RunRecorder(keras.callbacks.Callback):  # type: ignore[misc]
    """Records ``fit`` as a run that the dashboard can watch, list and compare.

    A run ends when ``fit`` returns or raises, also on Ctrl-C; another ``fit`` with the same recorder continues the
    run. The commands ``pause``, ``resume``, ``stop`` and ``learning_rate`` work.

    It never ends or alters training. If recording fails, it warns once and training continues; only at its start and
    end does ``fit`` wait for a hanging disk, for seconds.

    A series with the name of a metric (``loss``) has the value of each batch; ``mean_loss`` is the mean of the
    batches of an execution (``steps_per_execution``), and ``running_loss`` is Keras' running mean over the epoch. The
    latter is recorded if Keras gives no more: for metrics that are not means, with batches of different weights, and
    in very long epochs (see :mod:`accel_engine.recording.running_means`). ``learning_rate`` is the rate of each step
    (see :mod:`accel_engine.recording.learning_rates`): if a callback changes it within an epoch, or at the end of an
    epoch of unknown length, it is missing for the steps since the last update, at most half a second ago. Unknown
    values are missing.

    Args:
        name: A name for the run.

    Attributes:
        directory: The run's directory; ``None`` before the first ``fit``, or if no run could be created.
    """

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.directory: Path | None = None
        self._name = name
        self._fit: FitSession | None = None
        self._recorded: FitSession | None = None
        self._call: fit_calls.FitCall | None = None

    @guarded
    def on_train_begin(self, logs: Any = None) -> None:
        """Start or continue the run."""
        call = fit_calls.current()
        if self._recorded and self._call and self._call is not call and self._call.running:
            raise RunError("the recorder is already in use by another call of fit: give each call its own")
        self._recorded = None
        if self._fit and not self._fit.leave():  # an exception may have ended it a moment ago
            raise RunError("the previous recording is not written yet; the disk may be busy")
        model, params = self.model, self.params or {}
        epochs = params.get("epochs") or 1
        values = {
            "name": self._name,
            "model": model_description.name(model),
            "data": script.program_name(),
            "strategy": model_description.strategy(model),
            "epochs": epochs,
        }
        self._fit = FitSession(
            lambda: self.model,
            self._link(values),
            epochs,
            params.get("steps"),
            self._fit,
            is_fit_wrapped=call is not None,
        )
        self._recorded, self._call = self._fit, call
        if call:
            call.on_exception.append(self._on_exception)
        self._fit.begin(call.faults if call else ())

    @guarded
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Start an epoch."""
        if self._recorded:
            self._recorded.begin_epoch(epoch)

    @guarded
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Read the learning rate if it may have changed since the previous batch."""
        if (fit := self._recorded) and fit.rates.due:
            fit.begin_batch()

    @guarded
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Add the batch's logs; update the run a few times a second."""
        if fit := self._recorded:
            fit.batches.add(logs or {})
            # At an epoch's end, other callbacks may change the learning rate before the recorder is called.
            if time.monotonic() >= fit.due or fit.epoch_complete:
                fit.update()

    @guarded
    def on_test_begin(self, logs: Any = None) -> None:
        """Start a validation."""
        if self._recorded:  # not for a separate call of evaluate
            self._recorded.begin_validation()

    @guarded
    def on_test_end(self, logs: Any = None) -> None:
        """End a validation."""
        if self._recorded:
            self._recorded.end_validation()

    @guarded
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Record the end of an epoch, with its logs."""
        if self._recorded:
            self._recorded.end_epoch(logs or {})

    @guarded
    def on_train_end(self, logs: Any = None) -> None:
        """End the run."""
        if self._recorded:
            self._recorded.end()
        self._recorded = None

    @guarded
    def show(self) -> None:
        """Print where the run is and how to watch it."""
        watch_hint.print_hint(self.directory)

    def _on_error(self, error: Exception) -> None:
        """Stop recording this ``fit``, and warn the user."""
        fit, self._recorded = self._recorded, None
        warn(f"recording stopped, training continues: {format_error(error)}")
        if fit:
            fit.fail(error)

    @guarded
    def _on_exception(self, error: BaseException) -> None:
        fit, self._recorded = self._recorded, None
        if fit:
            fit.end_by_exception(error)

    def _link(self, values: dict[str, Any]) -> RunLink:
        before = self._fit
        position = (before.written, before.epochs) if before else (0, 0)
        link = RunLink(values, self.directory, *position)
        self.directory = link.directory
        return link
