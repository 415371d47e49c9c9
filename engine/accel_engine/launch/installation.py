"""Finds the installed TensorFlow without importing it."""

import contextlib
from dataclasses import dataclass

DISTRIBUTIONS = {
    "tensorflow": "",
    "tensorflow-cpu": "cpu",
    "tensorflow-tpu": "tpu",
}
"""The distributions that contain the package ``tensorflow``, and what they are built for."""

INSTALL_COMMANDS = "pip install 'accel-tui[cpu]' (or [cuda], [tpu])"


@dataclass(frozen=True, slots=True)
class Installation:
    """The installed TensorFlow.

    Attributes:
        distribution: Name of the installed distribution; empty if there is none.
        version: Its version.
        problem: Why no engine can start, with a fix, in one line; empty if one can.
    """

    distribution: str = ""
    version: str = ""
    problem: str = ""


def find_installation() -> Installation:
    """Find the installed TensorFlow without importing it."""
    from importlib import metadata  # slow to import; used in a thread

    found = {}
    for name in DISTRIBUTIONS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    if not found:
        return Installation(problem=f"TensorFlow is not installed: {INSTALL_COMMANDS}")
    if len(found) > 1 and "tensorflow-tpu" in found:
        return Installation(
            problem=f"{' and '.join(found)} overwrite each other: install one of them in a fresh virtual environment"
        )
    name, version = next(iter(found.items()))
    return Installation(name, version)
