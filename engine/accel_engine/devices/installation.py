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


def installed_versions(*distributions: str) -> dict[str, str]:
    """The versions of those distributions that are installed, by name, without importing them."""
    from importlib import metadata  # slow to import; used in a thread

    found = {}
    for name in distributions:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def find_installation() -> Installation:
    """Find the installed TensorFlow without importing it."""
    found = installed_versions(*DISTRIBUTIONS)
    if not found:
        return Installation(problem=f"TensorFlow is not installed: {INSTALL_COMMANDS}")
    if len(found) > 1 and "tensorflow-tpu" in found:
        return Installation(
            problem=f"{' and '.join(found)} overwrite each other: install one of them in a fresh virtual environment"
        )
    name, version = next(iter(found.items()))
    return Installation(name, version)
