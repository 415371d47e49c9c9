"""Inspects the layers and weights of models, and overrides the ``call`` of layers."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import keras


def has_custom_train_step(model: Any) -> bool:
    """Whether a model has a custom ``train_step``."""
    return "train_step" in vars(model) or getattr(type(model), "train_step", None) is not keras.Model.train_step


def fixed_batch(model: Any) -> int | None:
    """The only batch size that a model takes, such as a stateful one; ``None`` for any size."""
    inputs = getattr(model, "inputs", None) or () if getattr(model, "built", False) else ()
    sizes = {each.shape[0] for each in inputs} - {None}
    return min(sizes, default=None)


def metrics_of(model: keras.Model) -> list[keras.Metric]:
    """The metrics of a compiled model, one by one."""
    return [leaf for metric in model.metrics for leaf in getattr(metric, "metrics", None) or [metric]]


def model_input(model: Any) -> Any:
    """The inputs of a model: its symbolic tensor, or a structure of them; ``None`` if unknown.

    A sequential model tells its ``input`` only after a call, which a loaded one has not had.
    """
    if isinstance(model, keras.Sequential):
        return model.inputs[0] if model.inputs else None
    return model.input if getattr(model, "inputs", None) else None


def model_output(model: Any) -> Any:
    """The outputs of a model; see :func:`model_input`."""
    if isinstance(model, keras.Sequential):
        return model.outputs[0] if model.outputs else None
    return model.output if getattr(model, "outputs", None) else None


def parameter_count(weights: Iterable[Any]) -> int:
    """The number of parameters in some weights."""
    return sum(math.prod(weight.shape) for weight in weights)


def walk(model: Any, depth: int = 0) -> Iterator[tuple[Any, int]]:
    """Yield the layers of a model with their depth of nesting; a nested model before its layers."""
    for layer in model.layers:
        if not isinstance(layer, keras.layers.InputLayer):
            yield layer, depth
            yield from walk_inside(layer, depth + 1)


def walk_inside(layer: Any, depth: int = 0) -> Iterator[tuple[Any, int]]:
    """Walk a layer that is a model; yields nothing for others."""
    return walk(layer, depth) if isinstance(layer, keras.Model) else iter(())


@contextmanager
def override_calls(calls: Mapping[Any, Callable[..., Any]], method: str = "call") -> Iterator[None]:
    """Replace the ``call`` of layers, or another method, inside the ``with`` block."""
    before = {layer: vars(layer).get(method) for layer in calls}
    # Not with setattr: Keras tracks what is assigned to its layers.
    for layer, call in calls.items():
        vars(layer)[method] = call
    try:
        yield
    finally:
        for layer, call in before.items():
            if call is None:
                del vars(layer)[method]
            else:
                vars(layer)[method] = call
