"""Which TensorFlow is installed here, found without importing it."""

import contextlib
from dataclasses import dataclass

DISTRIBUTIONS = {
    "tensorflow": "",
    "tensorflow-cpu": "cpu",
    "tensorflow-tpu": "tpu",
}
"""The distributions that bring the package ``tensorflow``, and what they are built for."""

INSTALL_COMMANDS = "pip install 'accel-tui[cpu]' (or [cuda], [tpu])"


@dataclass(frozen=True, slots=True)
class Installation:
    """The TensorFlow that an engine would import.

    Attributes:
        distribution: Name of the package that is installed; empty when there is none.
        version: Its version.
        problem: Why no engine can be started, in one line with what to do; empty when one can.
    """

    distribution: str = ""
    version: str = ""
    problem: str = ""


def find_installation() -> Installation:
    """Look which TensorFlow is installed, without importing it."""
    from importlib import metadata  # slow to import, and asked for in a thread

    found = {}
    for name in DISTRIBUTIONS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    if not found:
        return Installation(problem=f"No TensorFlow is installed, so nothing can be trained: {INSTALL_COMMANDS}")
    if len(found) > 1 and "tensorflow-tpu" in found:
        return Installation(
            problem=f"{' and '.join(found)} overwrite each other: keep one of them, in a fresh virtual environment"
        )
    name, version = next(iter(found.items()))
    return Installation(name, version)
