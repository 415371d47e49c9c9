"""Trains and measures: everything of accel-tui that is not the screen.

For scripts of the user's own there is :class:`RunRecorder`, a Keras callback that makes their training a run.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accel_engine.recording.recorder import RunRecorder as RunRecorder

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what needs Keras only for who asks for it."""
    if name == "RunRecorder":
        from importlib import import_module

        return import_module("accel_engine.recording.recorder").RunRecorder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
