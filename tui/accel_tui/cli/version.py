"""Versions for a bug report, found without importing the packages."""

import platform

from accel_engine.doctor.machine import installed_version
from accel_engine.doctor.tensorflow_checks import installed_packages
from accel_engine.version import __version__
from accel_tui.cli.terminal_checks import Terminal


def versions() -> str:
    """Return the version of accel-tui and a line for each dependency."""
    tensorflow = ", ".join(f"{name} {version}" for name, version in installed_packages().items())
    rows = {
        "python": f"{platform.python_version()}, {platform.python_implementation()}",
        "system": platform.platform(),
        "tensorflow": tensorflow or "not installed",
        **{name: installed_version(name) or "not installed" for name in ("keras", "textual")},
        "terminal": str(Terminal.here()),
    }
    return "\n".join([f"accel-tui {__version__}", *(f"{name:12}{value}" for name, value in rows.items())])
