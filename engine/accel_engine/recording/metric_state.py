"""What a model's metrics hold, beside what Keras says of them."""

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np

from accel_engine.recording.error_guard import value_or_none
from accel_engine.recording.logs import as_array
from accel_engine.recording.running_means import Point
from accel_engine.run.schema import series_name

OWN = "own"
"""Of a value that the model's own ``train_step`` gives and that no metric keeps: it is the batch's."""

Source = Point | str | None
"""What a value that Keras tells is: a running mean, :data:`OWN`, or neither."""


class MetricState:
    """Finds in a model's metrics what Keras tells of batches; for one ``fit``.

    A metric counts as a mean if that is what it is: some that keep a sum and a count give its root. What a
    ``train_step`` of the user's gives is the batch's own value if it is the value of no metric.
    """

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self._own: set[str] = set()

    def read(self, model: Any, logs: Mapping[str, float], *, sure: bool) -> dict[str, Source]:
        """Tell what each value is.

        Args:
            model: In training.
            logs: What Keras told of the latest batch, by the names of series.
            sure: Whether a mean that is found now is one for good, so that only its count has to be read from then on,
                which takes a tenth of a millisecond or more; not where the epoch has had one batch only.
        """
        found: dict[str, Source] = dict.fromkeys(self._own, OWN)
        for name, metric in self._known.items():
            point = _point(metric, logs.get(name))
            found[name] = point if point and point.count else None
        unknown = {name: value for name, value in logs.items() if name not in found}
        if unknown:
            own_step = has_own_step(model)
            metrics = {metric: _point(metric) for metric in value_or_none(lambda: list(_flat(model.metrics))) or ()}
            used = [metric for metric, point in metrics.items() if point != Point()]
            for name, value in unknown.items():
                named = [metric for metric in used if _is_of(name, series_name(metric.name))]
                # A step of the user's may tell a metric by any name.
                for metric in [*named, *(used if own_step else ())]:
                    point = metrics[metric]
                    if point and np.isclose(point.mean, value, rtol=1e-6, atol=0.0, equal_nan=True):
                        found[name] = point
                        if sure:
                            self._known[name] = metric
                        break
                else:
                    found[name] = OWN if own_step and not any(_may_tell(each, value) for each in used) else None
                    if sure and found[name] == OWN:
                        self._own.add(name)
        return found


def has_own_step(model: Any) -> bool:
    """Whether a model has a ``train_step`` of the user's."""
    return getattr(type(model), "train_step", None) is not keras.Model.train_step


def _is_of(name: str, metric: str) -> bool:
    """Whether Keras may tell a metric by this name: where there are several outputs, it puts theirs before it."""
    return name == metric or name.endswith(f"_{metric}")


def _flat(metrics: Any) -> Iterator[Any]:
    for metric in metrics:
        if inner := getattr(metric, "metrics", None):
            yield from _flat(inner)
        else:
            yield metric


def _point(metric: Any, mean: float | None = None) -> Point | None:
    """How far a mean is; ``None`` for another metric, and where it cannot be read."""
    if not isinstance(metric, keras.metrics.Mean):
        return None
    try:
        count = _number(metric.count)
        if count and mean is None:
            mean = float(np.float32(_number(metric.total)) / np.float32(count))  # in float32, as Keras divides
    except Exception:  # noqa: BLE001 (JAX's may not be there between two batches; a user's own may raise anything)
        return None
    return Point(mean or 0.0, count) if count else Point()


def _may_tell(metric: Any, value: float) -> bool:
    """Whether a value may be that of a metric, or of one of its elements; a mean would be known by its value."""
    if type(metric).result is keras.metrics.Mean.result:
        return False
    told = value_or_none(lambda: as_array(keras.ops.convert_to_numpy(metric.result())))
    return told is None or bool(np.isclose(told, value, rtol=1e-6, atol=0.0, equal_nan=True).any())


def _number(variable: Any) -> float:
    return float(keras.ops.convert_to_numpy(variable))
