"""What a bug report needs to know of the place where the program runs; nothing is imported for it."""

import platform

from accel_engine import __version__
from accel_engine.doctor.machine import installed_version
from accel_engine.doctor.tensorflow_checks import installed_packages
from accel_tui.cli.terminal_checks import Terminal


def versions() -> str:
    """The program's version, and below it a line for each thing that it depends on."""
    tensorflow = ", ".join(f"{name} {version}" for name, version in installed_packages().items())
    facts = {
        "python": f"{platform.python_version()}, {platform.python_implementation()}",
        "system": platform.platform(),
        "tensorflow": tensorflow or "not installed",
        **{name: installed_version(name) or "not installed" for name in ("keras", "textual")},
        "terminal": str(Terminal.here()),
    }
    return "\n".join([f"accel-tui {__version__}", *(f"{name:12}{value}" for name, value in facts.items())])
