"""Records each ``fit`` of a script, without a change of the script.

Called at the script's start. It only waits for the import of Keras, and costs nothing before.
"""

import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from io import TextIOWrapper
from types import ModuleType
from typing import Any

from accel_engine.recording import supervisor_address

SUPERVISOR = "_ACCEL_TUI_SUPERVISOR"
"""Environment variable with the address of the supervisor."""

PATH = "_ACCEL_TUI_PYTHONPATH"
"""Environment variable with the user's ``PYTHONPATH``; absent if there was none."""


def hide_variables(startup: str) -> str:
    """Show the script its own ``os.environ`` and ``sys.path``; the processes that it starts inherit what started this.

    Returns:
        The address of the supervisor; empty if there is none.
    """
    inherited = {name: os.environ.pop(name) for name in (SUPERVISOR, PATH, "PYTHONPATH") if name in os.environ}
    if PATH in inherited:
        os.environ["PYTHONPATH"] = inherited[PATH]
    for name, value in inherited.items():
        os.putenv(name, value)  # not in os.environ
    sys.path[:] = [entry for entry in sys.path if entry != startup]
    sys.path_importer_cache.pop(startup, None)
    return inherited.get(SUPERVISOR, "")


def install_hook(address: str) -> None:
    """Record the script's training from now on.

    Args:
        address: The supervisor's socket.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and not stream.line_buffering:
            stream.reconfigure(line_buffering=True)  # so that lines reach the log when they are printed
    supervisor_address.given_address = address
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
    from accel_engine.recording import run_link

    try:
        from accel_engine.recording import fit_calls
        from accel_engine.recording.every_fit.added_recorder import recorder_added

        fit_calls.observe(recorder_added)
    except Exception as error:  # noqa: BLE001 (whatever it is, the script runs)
        run_link.report_to_run(f"no fit is recorded: {type(error).__name__}: {error}")
