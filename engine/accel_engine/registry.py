"""Shared functions of the catalogues of models, datasets and strategies.

A catalogue names its builders as strings, so that listing its entries does not import TensorFlow. Only the engine
process loads builders.
"""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any


def load(reference: str) -> Callable[..., Any]:
    """Import the object that ``"package.module:name"`` refers to."""
    module, _, name = reference.partition(":")
    loaded: Callable[..., Any] = getattr(import_module(module), name)
    return loaded


def suggestion(name: str, known: Iterable[str]) -> str:
    """Suggest the known names closest to an unknown one, or list them if none is close."""
    names = list(known)
    lowered = {candidate.lower(): candidate for candidate in names}
    close = [lowered[match] for match in get_close_matches(name.lower(), lowered, n=3, cutoff=0.55)]
    if close:
        return f"did you mean {' or '.join(close)}?"
    shown = ", ".join(names[:12])
    return f"known: {shown}{', ...' if len(names) > 12 else ''}"
