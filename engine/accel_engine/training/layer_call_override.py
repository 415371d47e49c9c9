"""Other calls for a model's layers while a graph is traced."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(calls: Mapping[Any, Callable[..., Any]]) -> Iterator[None]:
    """Have layers called by others' functions than their own ``call``, and leave them as they were."""
    own = {layer: vars(layer).get("call") for layer in calls}
    # Not as attributes are set: Keras looks into whatever its layers are given.
    for layer, call in calls.items():
        vars(layer)["call"] = call
    try:
        yield
    finally:
        for layer, call in own.items():
            if call is None:
                del vars(layer)["call"]
            else:
                vars(layer)["call"] = call
