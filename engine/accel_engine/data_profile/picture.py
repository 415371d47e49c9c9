"""Shows what some examples of a dataset are like before training: histograms, pictures, sounds, a baseline."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.baseline import LAST, MEAN, frequent_class, mean_target, name_of_class, past_columns
from accel_engine.data.dataset import Dataset, Split, take_rows
from accel_engine.data.structure import ArraySpec
from accel_engine.data_profile.equal_rows import EqualRows, compare_rows
from accel_engine.data_profile.values import in_memory, labels_of, some_rows
from accel_engine.errors import PlanError
from accel_engine.models.choose import default_model
from accel_engine.models.loaded_data import describe_data
from accel_engine.run.media.from_arrays import histogram_of

EXAMPLES = 2000
"""Examples whose values are looked at."""

BINS = 16
"""Bins of a histogram."""

MAX_COLUMNS = 200
"""Columns of which histograms are made."""

SHOWN = 6
"""Pictures or sounds that are shown."""

SIDE = 32
"""Pixels of a shown picture's longer side at most."""

POINTS = 60
"""Parts of a sound whose largest absolute sample is shown."""

NEARLY_UNIQUE = 0.95
"""Share of different texts from which a column tells examples apart rather than what they have in common."""

_FREQUENT = 3

_Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """The values of a column, or of all numbers of the examples, in the units and words of the user's data."""

    name: str
    count: int
    """Number of values that were looked at."""
    distinct: int
    """Number of different ones."""
    counts: tuple[int, ...] = ()
    """Number of values in each of :data:`BINS` equal bins from ``low`` to ``high``; empty for texts."""
    low: float | None = None
    """The smallest number; ``None`` for texts."""
    high: float | None = None
    """The largest number."""
    frequent: tuple[tuple[str, int], ...] = ()
    """The most frequent texts with their numbers."""

    @property
    def is_constant(self) -> bool:
        """Whether all values are the same, so that nothing can be learned from them."""
        return self.distinct == 1 < self.count

    @property
    def is_nearly_unique(self) -> bool:
        """Whether nearly all examples have different texts."""
        return not self.counts and self.count > _FREQUENT and self.distinct >= NEARLY_UNIQUE * self.count


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """A picture, reduced to :data:`SIDE` pixels."""

    label: str
    """Its class; empty if unknown."""
    shape: tuple[int, int, int]
    """Height, width and channels."""
    pixels: bytes
    """uint8, row by row."""


@dataclass(frozen=True, slots=True)
class ShownSound:
    """A sound in :data:`POINTS` parts."""

    label: str
    """Its class; empty if unknown."""
    peaks: tuple[float, ...]
    """The largest absolute sample of each part, 0 to 1."""


@dataclass(frozen=True, slots=True)
class DataPicture:
    """Examples, columns and baselines that show what data is like."""

    columns: tuple[ColumnValues, ...] = ()
    """The values of each column."""
    equal: EqualRows = EqualRows()  # noqa: RUF009 (it is frozen)
    """Equal examples, and examples that stand in the training and the validation split."""
    pictures: tuple[ShownPicture, ...] = ()
    sounds: tuple[ShownSound, ...] = ()
    baseline: str = ""
    """The baseline, which predicts without having learned; empty if there is none."""
    metrics: tuple[tuple[str, float], ...] = ()
    """Its metrics on the validation split, or on the training split without one, by metric."""
    model: str = ""
    """The model that ``auto`` takes; empty if there is none."""

    def to_json(self) -> dict[str, Any]:
        """All of it in types of JSON, without pixels and samples."""
        return {
            "columns": [asdict(column) for column in self.columns],
            "baseline": self.baseline,
            "model": self.model,
            **self.equal._asdict(),
            "baseline_metrics": dict(self.metrics),
        }


def data_picture(dataset: Dataset, task: str) -> DataPicture | None:
    """Look at some examples; ``None`` for a stream, which could be read only once.

    Args:
        dataset: The data.
        task: The plan's task.

    Raises:
        DataError: An example cannot be read.
    """
    train, validation = dataset.train, dataset.validation
    if not isinstance(train, Split) or not len(train):
        return None
    compared = validation if isinstance(validation, Split) else None
    labels = labels_of(train.targets, dataset.classes)
    baseline, metrics = _baseline(dataset, train, compared, labels)
    is_image = dataset.kind == "images" and dataset.shape is not None and len(dataset.shape) == 3
    return DataPicture(
        (*_columns(dataset, train), *_target_columns(dataset, train)),
        compare_rows(train, compared, has_classes=labels is not None),
        tuple(_pictures(dataset, train, labels)) if is_image else (),
        tuple(_sounds(dataset, train, labels)) if dataset.kind == "audio" else (),
        baseline,
        metrics,
        _default_model(dataset, task),
    )


def _default_model(dataset: Dataset, task: str) -> str:
    try:
        return default_model(describe_data(dataset, task)).name
    except PlanError:
        return ""


def _columns(dataset: Dataset, train: Split) -> Iterator[ColumnValues]:
    """Columns of a table in the user's units and words; of other data, all numbers together."""
    inputs = train.inputs
    if not isinstance(dataset.spec.inputs, ArraySpec) or dataset.kind in ("text", "tokens"):
        return
    values = take_rows(inputs, some_rows(len(train), EXAMPLES if dataset.kind in ("table", "arrays") else 64))
    if dataset.original is not None and values.ndim == 2:
        for name, column in list(dataset.original(values).items())[:MAX_COLUMNS]:
            yield _column(name, column)
    elif values.ndim == 2 and values.shape[1] <= MAX_COLUMNS and values.dtype.kind in "fiub":
        names = dataset.feature_names or [f"column {index}" for index in range(values.shape[1])]
        yield from (_column(name, column) for name, column in zip(names, values.T, strict=True))
    elif values.dtype.kind in "fiub":
        yield _column("values", values.reshape(-1))


def _target_columns(dataset: Dataset, train: Split) -> Iterator[ColumnValues]:
    """The numbers to predict, in their units."""
    targets = in_memory(train.targets)
    if targets is None or len(targets) > 1 or targets[0].dtype.kind != "f" or not dataset.target_names:
        return
    rows = some_rows(len(train), EXAMPLES)
    values = targets[0][rows].astype(np.float64).reshape(len(rows), -1, len(dataset.target_names))[:, 0]
    restored = values if dataset.target_scaling is None else dataset.target_scaling.restore_to_show(values)
    yield from (_column(name, column) for name, column in zip(dataset.target_names, restored.T, strict=True))


def _column(name: str, values: npt.NDArray[Any]) -> ColumnValues:
    if values.dtype.kind == "O":  # numbers, and one word for what is missing
        known = [value for value in values.tolist() if isinstance(value, float)]
        if known and len({value for value in values.tolist() if not isinstance(value, float)}) <= 1:
            values = np.array(known)
    if values.dtype.kind not in "fiub":
        found = Counter(map(str, values.tolist()))
        return ColumnValues(name, len(values), len(found), frequent=tuple(found.most_common(_FREQUENT)))
    histogram = histogram_of(values, BINS)
    if not len(histogram.counts):
        return ColumnValues(name, 0, 0)
    finite = values[np.isfinite(values)]
    counts = tuple(int(count) for count in histogram.counts)
    return ColumnValues(name, len(finite), len(np.unique(finite)), counts, float(finite.min()), float(finite.max()))


def _shown(dataset: Dataset, train: Split, labels: _Labels | None) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Some examples with their classes: of each class one first."""
    rows = np.arange(min(SHOWN, len(train)))
    if labels is not None:
        order = np.argsort(labels, kind="stable")
        firsts = order[np.unique(labels[order], return_index=True)[1]][:SHOWN]
        rows = np.concatenate([firsts, np.setdiff1d(rows, firsts)])[:SHOWN]
    for row, example in zip(rows, take_rows(train.inputs, rows), strict=True):
        label = int(labels[row]) if labels is not None else -1
        yield dataset.class_names[label] if 0 <= label < dataset.classes else "", example


def _pictures(dataset: Dataset, train: Split, labels: _Labels | None) -> Iterator[ShownPicture]:
    for label, example in _shown(dataset, train, labels):
        step = max(1, -(-max(example.shape[:2]) // SIDE))
        small = example[::step, ::step]
        if small.shape[-1] not in (1, 3, 4):
            return
        levels = _levels(small, dataset.value_range.largest)
        height, width, channels = levels.shape
        yield ShownPicture(label, (height, width, channels), levels.tobytes())


def _levels(pixels: npt.NDArray[Any], largest: int | None) -> npt.NDArray[np.uint8]:
    """Pixels from 0 to 255; of a type that does not tell its range, from the smallest to the largest value."""
    values = np.nan_to_num(pixels.astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = (0.0, float(largest)) if largest else (float(values.min()), float(values.max()))
    return np.rint(255 * (values - low) / max(high - low, 1e-30)).astype(np.uint8)


def _sounds(dataset: Dataset, train: Split, labels: _Labels | None) -> Iterator[ShownSound]:
    for label, example in _shown(dataset, train, labels):
        parts = np.array_split(np.abs(example.reshape(-1).astype(np.float64)), POINTS)
        yield ShownSound(label, tuple(float(part.max(initial=0.0)) for part in parts))


def _baseline(
    dataset: Dataset, train: Split, validation: Split | None, labels: _Labels | None
) -> tuple[str, tuple[tuple[str, float], ...]]:
    """The baseline, which predicts without having learned, and its metrics on the validation or training split."""
    judged = validation or train
    others = labels_of(judged.targets, dataset.classes) if validation else labels
    if labels is not None and others is not None:
        frequent = frequent_class(labels, dataset.classes)
        if frequent is None:
            return "", ()
        return name_of_class(frequent, dataset.class_names), (("accuracy", float(np.mean(others == frequent))),)
    targets = in_memory(judged.targets)
    if dataset.classes or targets is None or len(targets) > 1 or targets[0].dtype.kind != "f":
        return "", ()
    is_series = dataset.kind == "series"
    past = past_columns(dataset.spec.inputs, dataset.feature_names, dataset.target_names) if is_series else []
    predicted = mean_target(dataset)
    columns, rows = len(past) or (0 if predicted is None else predicted.size), np.arange(len(judged))
    if not columns or (targets[0].ndim > 2 and not is_series):
        return "", ()
    if past:
        rows = some_rows(len(judged), EXAMPLES)
        predicted = take_rows(judged.inputs, rows)[:, -1:, past].astype(np.float64)
    scale = 1.0 if dataset.target_scaling is None else dataset.target_scaling.scale
    errors = np.abs(targets[0][rows].reshape(len(rows), -1, columns) - predicted) * scale
    return LAST if past else MEAN, (("mean_absolute_error", float(np.nanmean(errors))),)
