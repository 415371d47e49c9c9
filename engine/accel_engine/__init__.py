"""The engine of accel-tui: training, measurement and recording, without the user interface.

:class:`RunRecorder` is a Keras callback that records a script's training as a run.
"""

from typing import TYPE_CHECKING, Any

from accel_engine.version import __version__ as __version__

if TYPE_CHECKING:
    from accel_engine.recording.recorder import RunRecorder as RunRecorder


def __getattr__(name: str) -> Any:
    """Import :class:`RunRecorder`, which needs Keras, on first use."""
    if name == "RunRecorder":
        from importlib import import_module

        return import_module("accel_engine.recording.recorder").RunRecorder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
