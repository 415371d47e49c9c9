"""Reads the state of a model's metrics, to find out what the values in Keras' logs are."""

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np

from accel_engine.keras_support.model_structure import has_custom_train_step
from accel_engine.recording.error_guard import value_or_none
from accel_engine.recording.keras_logs import as_array
from accel_engine.recording.running_means import RunningMean
from accel_engine.run.store.series_names import series_name

BATCH_VALUE = "own"
"""Marks a batch's own value: a custom ``train_step`` returns it, and no metric holds it."""

Source = RunningMean | str | None
"""What a logged value is: a running mean, :data:`BATCH_VALUE`, or neither."""


class LoggedValues:
    """Matches the values in the logs of one ``fit`` to the model's metrics.

    Only a mean counts as one: some metrics with a total and a count return its root. A value of a custom
    ``train_step`` that matches no metric is the batch's own value.
    """

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self._own: set[str] = set()

    def identify(self, model: Any, logs: Mapping[str, float], *, permanent: bool) -> dict[str, Source]:
        """Find out what each logged value is.

        Args:
            model: The model in training.
            logs: The latest batch's numbers, by series name.
            permanent: Whether to remember matches, so that only the metric's count is read from then on (a read takes
                0.1 ms or more). After one batch of an epoch, a match may be a coincidence.
        """
        found: dict[str, Source] = dict.fromkeys(self._own, BATCH_VALUE)
        for name, metric in self._known.items():
            mean = _running_mean(metric, logs.get(name))
            found[name] = mean if mean and mean.count else None
        unknown = {name: value for name, value in logs.items() if name not in found}
        if unknown:
            custom_step = has_custom_train_step(model)
            metrics = {
                metric: _running_mean(metric) for metric in value_or_none(lambda: list(_flat(model.metrics))) or ()
            }
            used = [metric for metric, mean in metrics.items() if mean != RunningMean()]
            for name, value in unknown.items():
                named = [metric for metric in used if _is_of(name, series_name(metric.name))]
                # A custom train step may return a metric by any name.
                for metric in [*named, *(used if custom_step else ())]:
                    mean = metrics[metric]
                    if mean and np.isclose(mean.mean, value, rtol=1e-6, atol=0.0, equal_nan=True):
                        found[name] = mean
                        if permanent:
                            self._known[name] = metric
                        break
                else:
                    found[name] = (
                        BATCH_VALUE if custom_step and not any(_may_report(each, value) for each in used) else None
                    )
                    if permanent and found[name] == BATCH_VALUE:
                        self._own.add(name)
        return found


def _is_of(name: str, metric: str) -> bool:
    """Whether Keras may log a metric by this name; with several outputs, it prefixes the output's name."""
    return name == metric or name.endswith(f"_{metric}")


def _flat(metrics: Any) -> Iterator[Any]:
    for metric in metrics:
        if inner := getattr(metric, "metrics", None):
            yield from _flat(inner)
        else:
            yield metric


def _running_mean(metric: Any, mean: float | None = None) -> RunningMean | None:
    """The state of a ``Mean`` metric; ``None`` for another metric, or if it cannot be read."""
    if not isinstance(metric, keras.metrics.Mean):
        return None
    try:
        count = _number(metric.count)
        if count and mean is None:
            mean = float(np.float32(_number(metric.total)) / np.float32(count))  # in float32, as Keras divides
    except Exception:  # noqa: BLE001 (JAX's may be unavailable between two batches; a user's may raise anything)
        return None
    return RunningMean(mean or 0.0, count) if count else RunningMean()


def _may_report(metric: Any, value: float) -> bool:
    """Whether a value may be a metric's result, or one of its elements; means are matched by value before."""
    if type(metric).result is keras.metrics.Mean.result:
        return False
    result = value_or_none(lambda: as_array(keras.ops.convert_to_numpy(metric.result())))
    return result is None or bool(np.isclose(result, value, rtol=1e-6, atol=0.0, equal_nan=True).any())


def _number(variable: Any) -> float:
    return float(keras.ops.convert_to_numpy(variable))
