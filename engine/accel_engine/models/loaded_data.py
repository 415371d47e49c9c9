"""Describes a loaded dataset for a model's builder; without TensorFlow."""

from collections.abc import Iterable

import numpy as np

from accel_engine.data.dataset import Dataset, Examples, Split, take_rows
from accel_engine.data.standardization import WindowNormalization
from accel_engine.data.structure import ArraySpec
from accel_engine.models.data_description import DataDescription

_MOST_TEXTS = 100_000
"""Training texts from which a model's builder learns its words."""


def describe_data(dataset: Dataset, task: str) -> DataDescription:
    """Describe a dataset for a model's builder.

    Args:
        dataset: The data.
        task: The plan's task.
    """
    spec, task = dataset.spec, dataset.task if task == "auto" else task
    mean, variance = _moments(dataset.train) if task == "regression" else ((), ())
    train, is_text = dataset.train, isinstance(spec.inputs, ArraySpec) and spec.inputs.dtype == "string"
    return DataDescription(
        spec.inputs,
        spec.targets,
        dataset.class_names,
        dataset.vocabulary,
        task,
        mean,
        variance,
        dataset.kind,
        dataset.sample_rate,
        texts=_texts(train) if is_text and isinstance(train, Split) else None,
        has_standard_targets=dataset.target_scaling is not None,
        has_standard_windows=isinstance(dataset.preprocess, WindowNormalization),
    )


def _texts(examples: Split) -> Iterable[str | bytes]:
    """The texts of examples, the first :data:`_MOST_TEXTS`."""
    return take_rows(examples.inputs, np.arange(min(len(examples), _MOST_TEXTS))).ravel().tolist()


def _moments(examples: Examples) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Means and variances of the values of each target, flattened; empty if there is no array of numbers in memory."""
    targets = examples.targets if isinstance(examples, Split) else None
    if not isinstance(targets, np.ndarray) or targets.dtype.kind not in "fiu" or not len(targets):
        return (), ()
    values = targets.reshape(len(targets), -1).astype(np.float64)
    variance = np.where(values.std(axis=0) > 0, values.var(axis=0), 1.0)
    return tuple(values.mean(axis=0).tolist()), tuple(variance.tolist())
