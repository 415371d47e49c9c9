"""Traces functions to graphs, one at a time."""

import functools
import threading
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from accel_engine.training.core.assembly import Assembly

_TRACING = threading.RLock()
"""Held while a graph is traced: tracing replaces the calls of layers, which all threads share."""


def graph_of(function: Callable[..., Any], assembly: Assembly, **options: Any) -> Any:
    """Wrap a function in ``tf.function``.

    Without AutoGraph, which takes three quarters of the time of tracing, unless a custom ``train_step`` or
    ``test_step`` may need it.
    """
    if assembly.has_custom_train_step:  # AutoGraph needs the function itself; nothing is traced in the background
        return tf.function(function, autograph=True, **options)

    @functools.wraps(function)
    def traced(*arguments: Any, **named: Any) -> Any:
        with _TRACING:
            return function(*arguments, **named)

    return tf.function(traced, autograph=False, **options)
