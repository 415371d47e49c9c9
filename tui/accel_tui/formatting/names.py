"""Names of the user's own models and data, short enough for a line; and those of who trains."""

from pathlib import PurePath

CHIEF = "worker 0"
"""The worker that writes the run that people look at."""

COORDINATOR = "coordinator"
"""Who writes it where the workers are others."""


def brief(spec: str) -> str:
    """What a model or data is called where there is no room for its folder: ``net.py:build``, ``mine.npz``."""
    return PurePath(spec).name or spec


def end(text: str, width: int) -> str:
    """The end of a text that is too long, which tells more of a file than its beginning does.

    Args:
        text: The text.
        width: The most characters, at least 1.
    """
    return text if len(text) <= width else "…" + text[len(text) - width + 1 :]
