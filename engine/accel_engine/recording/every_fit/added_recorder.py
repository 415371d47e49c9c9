"""Adds a recorder to each call of ``fit`` in a script that ``accel-tui run`` has started."""

import inspect
from collections.abc import Iterable
from typing import Any

import keras

from accel_engine.errors import format_error
from accel_engine.recording.error_guard import warn
from accel_engine.recording.fit_calls import Arguments
from accel_engine.recording.recorder import RunRecorder


class _FitRecorder(RunRecorder):
    """Records one ``fit``; writes errors to the log instead of raising them."""

    def _on_error(self, error: Exception) -> None:
        """Stop recording this ``fit``."""
        fit, self._recorded = self._recorded, None
        warn(f"this fit is not recorded{' any more' if fit else ''}: {format_error(error)}")
        if fit:
            fit.fail(error)


def recorder_added(signature: inspect.Signature, arguments: Arguments) -> Arguments:
    """The arguments of a ``fit`` with a recorder after the user's callbacks, unless one of these is a recorder.

    Args:
        signature: The signature of ``fit``.
        arguments: The user's arguments; they stay unchanged, and are returned if they do not fit the signature.
    """
    try:
        bound = signature.bind(*arguments[0], **arguments[1])
    except TypeError:  # Keras says so itself
        return arguments
    try:
        epochs = bound.arguments.get("epochs", 1)
        bound.arguments["callbacks"] = _with_recorder(bound.arguments.get("callbacks"), epochs)
    except Exception as error:  # noqa: BLE001 (whatever it is, fit runs)
        warn(f"this fit is not recorded: {format_error(error)}")
        return arguments
    return bound.args, bound.kwargs


def _with_recorder(callbacks: Any, epochs: int) -> Any:
    if isinstance(callbacks, keras.callbacks.CallbackList):  # Keras uses the user's own, so it gets the recorder
        if not _has_recorder(callbacks.callbacks):
            recorder = _FitRecorder()
            recorder.set_model(callbacks.model)
            recorder.set_params({"epochs": epochs, **(callbacks.params or {})})
            callbacks.callbacks.append(recorder)
        return callbacks
    given = [callbacks] if isinstance(callbacks, keras.callbacks.Callback) else callbacks or []
    if not isinstance(given, list | tuple) or _has_recorder(given):
        return callbacks
    return [*given, _FitRecorder()]


def _has_recorder(callbacks: Iterable[Any]) -> bool:
    return any(isinstance(each, RunRecorder) for each in callbacks)
