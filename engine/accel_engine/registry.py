"""What the catalogues of models, data and strategies have in common.

A catalogue is light: it names its builders as strings, so that listing what there is imports no
TensorFlow. Only the engine process loads a builder.
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
    """Say which known names are nearest to a wrong one, or all of them when none is near."""
    names = list(known)
    lowered = {candidate.lower(): candidate for candidate in names}
    near = [lowered[match] for match in get_close_matches(name.lower(), lowered, n=3, cutoff=0.55)]
    if near:
        return f"did you mean {' or '.join(near)}?"
    shown = ", ".join(names[:12])
    return f"known: {shown}{', ...' if len(names) > 12 else ''}"
