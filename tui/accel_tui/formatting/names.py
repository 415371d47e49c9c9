"""Names of user models and data, and of workers."""

from pathlib import PurePath

CHIEF = "worker 0"
"""The worker that writes the run."""

COORDINATOR = "coordinator"
"""The process that writes the run with parameter servers."""


def base_name(spec: str) -> str:
    """The name of a model or dataset without its folder: ``net.py:build``, ``mine.npz``."""
    return PurePath(spec).name or spec
