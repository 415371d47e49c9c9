"""Baselines that predict without having learned anything: a model that is no better has learned nothing of use.

The most frequent class of the training data for classes, the mean of its targets for numbers, and for time series the
last known value.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Dataset, Split, spread_rows, take_rows
from accel_engine.data.structure import ArraySpec, Structure, flatten

LAST, MEAN = "last known value", "mean of the training targets"
"""Names of the predictions of numbers."""

MAX_TARGETS = 1 << 24
"""Values of the training targets that are looked at; of more, the values of examples at equal distances."""

MAX_READ = 1000
"""Examples whose targets are read from files."""


def frequent_class(labels: npt.NDArray[np.integer[Any]], classes: int) -> int | None:
    """The most frequent class of some labels, counting only 0 to ``classes - 1``; ``None`` without one."""
    counts = np.bincount(labels[(labels >= 0) & (labels < classes)], minlength=1)
    return int(counts.argmax()) if counts.any() else None


def name_of_class(frequent: int, names: Sequence[str], of: str = "") -> str:
    """The name of the prediction of a class.

    Args:
        frequent: The class.
        names: The names of the classes.
        of: Of which examples it is the most frequent class, unless they are the training examples.
    """
    name = names[frequent] if frequent < len(names) else str(frequent)
    return f"most frequent class{of}: {name if name.strip() else repr(name)}"  # a space, as a token


def training_targets(dataset: Dataset) -> npt.NDArray[Any] | None:
    """The training targets, or of many some examples at equal distances; ``None`` for a stream or several arrays."""
    targets = flatten(dataset.train.targets) if isinstance(dataset.train, Split) else []
    if len(targets) != 1 or not len(targets[0]):
        return None
    array = targets[0]
    most = min(len(array), MAX_TARGETS // max(1, math.prod(array.shape[1:])))
    rows = max(1, most if isinstance(array, np.ndarray) else min(most, MAX_READ))
    return take_rows(array, spread_rows(len(array), rows))


def mean_target(dataset: Dataset) -> npt.NDArray[np.float64] | None:
    """The mean of each column of the training targets, as they reach the loss; ``None`` if that is not known.

    Returns:
        float64 ``[columns]``.
    """
    if dataset.target_scaling is not None:
        return np.zeros(len(dataset.target_scaling.mean))
    targets = training_targets(dataset)
    if targets is None or targets.dtype.kind not in "biuf":
        return None
    columns = targets.reshape(-1, targets.shape[-1] if targets.ndim > 1 else 1)
    means: npt.NDArray[np.float64] = columns.mean(axis=0, dtype=np.float64)
    return means if np.isfinite(means).all() else None


def past_columns(inputs: Structure, features: Sequence[str], names: Sequence[str]) -> list[int]:
    """The columns of a window with the past of each series that is forecast; empty if any is missing.

    Args:
        inputs: The spec of the inputs.
        features: The names of their columns.
        names: The names of the series.
    """
    is_window = isinstance(inputs, ArraySpec) and len(inputs.shape) == 2 and inputs.shape[1] == len(features)
    if not is_window or not names or not set(names) <= set(features):
        return []
    return [features.index(name) for name in names]
