"""Records each ``fit`` of a script, without a change of the script.

Called at the script's start. It only waits for the import of Keras, and costs nothing before.
"""

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import ModuleSpec
from io import TextIOWrapper
from types import ModuleType
from typing import Any

import keras

from accel_engine.errors import format_error
from accel_engine.recording import supervised
from accel_engine.recording.error_guard import warn
from accel_engine.recording.fit_calls import Arguments
from accel_engine.recording.recorder import RunRecorder

SUPERVISOR = "_ACCEL_TUI_SUPERVISOR"
"""Environment variable with the address of the supervisor; removed at the script's start."""

PATH = "_ACCEL_TUI_PYTHONPATH"
"""Environment variable with the user's ``PYTHONPATH``; absent if there was none."""


def restore_path(startup: str) -> None:
    """Undo what started this: ``PYTHONPATH`` and ``sys.path`` become the user's."""
    original = os.environ.pop(PATH, None)
    if original is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = original
    sys.path[:] = [entry for entry in sys.path if entry != startup]
    sys.path_importer_cache.pop(startup, None)


def install(address: str) -> None:
    """Record the script's training from now on.

    Args:
        address: The supervisor's socket.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and not stream.line_buffering:
            stream.reconfigure(line_buffering=True)  # so that lines reach the log when they are printed
    supervised.address = address
    sys.meta_path.insert(0, _KerasFinder())


class _KerasFinder:
    """Calls :func:`_observe_fit` once Keras is imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find Keras as without this finder, and be called back when it is imported.

        TensorFlow only looks for Keras before it imports it, so this finder stays until then.
        """
        if name != "keras":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec and spec.loader:
            _call_after(spec.loader, self._observe)
        return spec

    def _observe(self) -> None:
        sys.meta_path.remove(self)
        _observe_fit()


def _call_after(loader: Any, observe: Callable[[], None]) -> None:
    """Call a function once a module is executed by a loader, which stays as it was."""
    execute = loader.exec_module

    def execute_and_call(module: ModuleType) -> None:
        del loader.exec_module
        execute(module)
        observe()

    loader.exec_module = execute_and_call


def _observe_fit() -> None:
    from accel_engine.recording.supervised import part

    try:
        from accel_engine.recording import fit_calls
        from accel_engine.recording.every_fit.hook import recorder_added

        fit_calls.observe(recorder_added)
    except Exception as error:  # noqa: BLE001 (whatever it is, the script runs)
        part.report(f"no fit is recorded: {type(error).__name__}: {error}")


class _FitRecorder(RunRecorder):
    """Records one ``fit``; what goes wrong is told in the log, without an exception."""

    def _give_up(self, error: Exception) -> None:
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
