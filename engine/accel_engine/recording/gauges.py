"""What a model's metrics hold, beside what Keras says of them."""

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np

from accel_engine.recording.recovery import Point

OWN = "own"
"""Of a value that the model's own ``train_step`` gives and that no metric keeps: it is the batch's."""

Source = Point | str | None
"""What a value that Keras tells is: a running mean, :data:`OWN`, or neither."""


def sources(model: Any, logs: Mapping[str, float]) -> dict[str, Source]:
    """Read a model's metrics, and find in them what Keras told of the latest batch.

    A metric counts as a mean if that is what it is at this moment: some that keep a sum and a count give its root.
    """
    metrics = list(_flat(model.metrics))
    means = [(metric.name, point) for metric in metrics if (point := _point(metric)) and point.count]
    unused = {metric.name for metric in metrics if _point(metric) == Point()}
    names = {metric.name for metric in metrics} - unused
    own_step = type(model).train_step is not keras.Model.train_step
    return {name: _source(name, value, means, names, own_step) for name, value in logs.items()}


def learning_rate(model: Any) -> float | None:
    """The learning rate of the model's next step, or ``None`` where its optimizer has none that can be read."""
    try:
        return float(f"{_number(model.optimizer.learning_rate):.7g}")  # float32, so no more digits than it has
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return None


def _source(name: str, value: float, means: list[tuple[str, Point]], names: set[str], own_step: bool) -> Source:
    for metric, point in means:
        if _is_of(name, metric) and np.isclose(point.mean, value, rtol=1e-6, atol=0.0, equal_nan=True):
            return point
    return OWN if own_step and not any(_is_of(name, metric) for metric in names) else None


def _is_of(name: str, metric: str) -> bool:
    """Whether Keras may tell a metric by this name: where there are several outputs, it puts theirs before it."""
    return name == metric or name.endswith(f"_{metric}")


def _flat(metrics: Any) -> Iterator[Any]:
    for metric in metrics:
        if inner := getattr(metric, "metrics", None):
            yield from _flat(inner)
        else:
            yield metric


def _point(metric: Any) -> Point | None:
    if not isinstance(metric, keras.metrics.Mean):
        return None
    try:
        total, count = _number(metric.total), _number(metric.count)
    except (TypeError, ValueError, RuntimeError):  # JAX's may not be there between two batches
        return None
    # In float32, as Keras divides.
    return Point(float(np.float32(total) / np.float32(count)), count) if count else Point()


def _number(variable: Any) -> float:
    return float(keras.ops.convert_to_numpy(variable))
