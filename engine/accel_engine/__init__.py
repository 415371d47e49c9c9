"""The engine of accel-tui: training, measurement and recording, without the user interface.

:class:`Recorder` records a script's own training loop as a run. :class:`RunRecorder` is a Keras callback that records
``fit``.
"""

from typing import Any

from accel_engine.version import __version__ as __version__

_MODULES = {"Recorder": "loop_recorder", "RunRecorder": "recorder"}


def __getattr__(name: str) -> Any:
    """Import a recorder on first use, as :class:`RunRecorder` needs Keras; type checkers read ``__init__.pyi``."""
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(f"accel_engine.recording.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
