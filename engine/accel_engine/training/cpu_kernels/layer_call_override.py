"""Overrides the ``call`` of layers while a graph is traced."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def override_calls(calls: Mapping[Any, Callable[..., Any]]) -> Iterator[None]:
    """Replace the ``call`` of layers inside the ``with`` block."""
    before = {layer: vars(layer).get("call") for layer in calls}
    # Not with setattr: Keras tracks what is assigned to its layers.
    for layer, call in calls.items():
        vars(layer)["call"] = call
    try:
        yield
    finally:
        for layer, call in before.items():
            if call is None:
                del vars(layer)["call"]
            else:
                vars(layer)["call"] = call
