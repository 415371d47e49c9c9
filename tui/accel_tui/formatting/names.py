"""Shortens the names of user models and data; names of workers."""

from pathlib import PurePath

CHIEF = "worker 0"
"""The worker that writes the run."""

COORDINATOR = "coordinator"
"""The process that writes the run with parameter servers."""


def base_name(spec: str) -> str:
    """The name of a model or dataset without its folder: ``net.py:build``, ``mine.npz``."""
    return PurePath(spec).name or spec


def shorten_start(text: str, width: int) -> str:
    """Cut the start of a long text, since the end of a path matters more.

    Args:
        text: The text.
        width: The maximum number of characters, at least 1.
    """
    return text if len(text) <= width else "…" + text[len(text) - width + 1 :]
