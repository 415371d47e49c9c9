"""Validates arrays and converts them to examples and sparse labels."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Dataset, Split, split_rows
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.errors import DataError
from accel_engine.models.model_entry import shape_text

MAX_CLASSES = 10_000
"""Integer labels above this, and above the number of examples, are not accepted as classes."""

_CHUNK = 1 << 24
"""Values checked at a time, so that checking large data takes little memory."""


def from_arrays(
    name: str,
    arrays: Mapping[str, npt.NDArray[Any]],
    seed: int,
    class_names: Sequence[str] = (),
    *,
    images: bool = False,
) -> Dataset:
    """Make a dataset of arrays named as in ``keras.datasets``.

    Args:
        name: The dataset's name, for titles.
        arrays: ``x_train``, ``y_train`` and optionally ``x_test``, ``y_test``; without these, a tenth of the
            examples is the validation split. Examples are numeric ``[n, ...]``; images without a channel axis
            get one. Labels are integers ``[n]`` or ``[n, 1]``, or one-hot ``[n, classes]``.
        seed: Seed of the validation split.
        class_names: One per class; the class indices by default.
        images: Whether the source declares the examples to be images.

    Raises:
        DataError: The arrays cannot be trained on.
    """
    check_lengths(arrays["x_train"].shape, arrays["y_train"].shape, "x_train", "y_train")
    x, notes = _examples(arrays["x_train"], "x_train")
    values = replace(value_range(arrays["x_train"].dtype, arrays["x_train"].shape), declared=images)
    y, classes = sparse_labels(arrays["y_train"], "y_train")
    check_classes(classes, "y_train")
    absent = np.setdiff1d(np.arange(classes), y)
    if len(absent):
        notes.append(f"y_train has no examples of {len(absent)} of its {classes} classes, e.g. class {absent[0]}")
    if "x_test" in arrays:
        train = Split(x, y)
        validation: Split | None = _validation(arrays, x, classes)
    else:
        train_rows, validation_rows = split_rows(len(y), seed)
        train = Split(x[train_rows], y[train_rows])
        validation = Split(x[validation_rows], y[validation_rows]) if len(validation_rows) else None
        notes.append(f"validation split: {len(validation_rows)} of {len(y)} examples")
    names = tuple(class_names) or tuple(map(str, range(classes)))
    return Dataset(name, train, validation, classes, names, values, tuple(notes))


def _validation(arrays: Mapping[str, npt.NDArray[Any]], x_train: npt.NDArray[Any], classes: int) -> Split:
    x, y = arrays["x_test"], arrays["y_test"]
    check_lengths(x.shape, y.shape, "x_test", "y_test")
    trained = arrays["x_train"]
    ranges = {(each.dtype.kind == "f", value_range(each.dtype, each.shape).largest) for each in (x, trained)}
    if len(ranges) > 1:
        raise DataError(f"x_train is {trained.dtype} but x_test is {x.dtype}: both must have the same value range")
    examples, _ = _examples(x, "x_test")
    if examples.shape[1:] != x_train.shape[1:]:
        raise DataError(
            f"examples are {shape_text(x_train.shape[1:])} in x_train but {shape_text(examples.shape[1:])} in x_test"
        )
    labels, found = sparse_labels(y, "y_test")
    if found > classes:
        raise DataError(f"y_test has labels up to {found - 1}, but y_train only has classes 0 to {classes - 1}")
    return Split(examples, labels)


def check_lengths(x: tuple[int, ...], y: tuple[int, ...], x_name: str, y_name: str) -> None:
    """Check the shapes of examples and labels: not empty, and equally many of each.

    Raises:
        DataError: They do not match.
    """
    if not x or not y:
        raise DataError(f"{x_name if not x else y_name} is a single value, not an array of examples")
    if not x[0]:
        raise DataError(f"{x_name} has no examples")
    if x[0] != y[0]:
        raise DataError(f"{x_name} has {x[0]} examples but {y_name} has {y[0]} labels")
    if 0 in x:
        raise DataError(f"{x_name} has the shape {x}: its examples are empty")


def example_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of one example of an array, after adding a channel axis to images without one."""
    return (*shape[1:], 1) if len(shape) == 3 else shape[1:]


def sparse_labels(y: npt.NDArray[Any], name: str) -> tuple[npt.NDArray[np.int32], int]:
    """Convert labels to int32 ``[n]``, and count the classes.

    Raises:
        DataError: They are not class labels.
    """
    if y.dtype.kind not in "buif":
        raise DataError(f"{name} holds {_kind(y.dtype)}; labels must be integers from 0, or one-hot")
    if y.ndim == 2 and y.shape[1] > 1:
        return _from_one_hot(y, name), y.shape[1]
    if y.ndim > 2 or y.size != len(y):
        raise DataError(f"{name} has the shape {y.shape}; labels must be [n], [n, 1] or one-hot [n, classes]")
    flat = y.reshape(-1)
    # NaN fails both comparisons.
    valid = (flat >= 0) & (flat == np.floor(flat)) & np.isfinite(flat) if flat.dtype.kind == "f" else flat >= 0
    if not valid.all():
        index = int(np.argmin(valid))
        raise DataError(f"{name}[{index}] is {flat[index]}: labels must be integers from 0")
    classes = int(flat.max()) + 1
    if classes > max(MAX_CLASSES, len(flat)):
        raise DataError(f"{name} has values up to {classes - 1}, more than there are examples: not class labels")
    return flat.astype(np.int32), classes


def check_classes(classes: int, name: str) -> None:
    """Check that there are at least two classes.

    Raises:
        DataError: There is only one.
    """
    if classes < 2:
        raise DataError(f"{name} has only one class; classification needs at least two")


def _from_one_hot(y: npt.NDArray[Any], name: str) -> npt.NDArray[np.int32]:
    valid = (y.sum(axis=1) == 1) & (y.max(axis=1) == 1) & (y.min(axis=1) == 0)
    if not valid.all():
        index = int(np.argmin(valid))
        raise DataError(f"{name} has the shape {y.shape}, but row {index} is not one-hot: one 1 and otherwise 0")
    labels: npt.NDArray[np.int32] = y.argmax(axis=1).astype(np.int32)
    return labels


def value_range(dtype: np.dtype[Any], shape: tuple[int, ...]) -> ValueRange:
    """The value range of an array of examples, from its dtype and shape ``(examples, ...)`` alone."""
    return ValueRange.of_array(dtype.name, example_shape(shape))


def _examples(x: npt.NDArray[Any], name: str) -> tuple[npt.NDArray[Any], list[str]]:
    if x.dtype.kind not in "buif":
        raise DataError(f"{name} holds {_kind(x.dtype)}; examples must be numbers")
    notes = []
    if x.ndim == 4 and x.shape[1] in (1, 3) and x.shape[3] > 4:
        notes.append(f"{name} of the shape {x.shape} looks channels-first; the last axis is used as channels")
    if x.ndim == 3:
        notes.append(f"{name} has no channel axis: added one (1 channel)")
    x = x.reshape(len(x), *example_shape(x.shape))
    notes += _range_notes(x, name)
    if x.dtype.kind == "f":
        with np.errstate(over="ignore"):  # values too large for float32 become infinite, and are found below
            x = np.ascontiguousarray(x, np.float32)
        if (index := _first_not_finite(x)) is not None:
            raise DataError(f"{name}[{index}] has values that are NaN or infinite")
        return x, notes
    fits_a_byte = x.dtype == np.bool_ or (x.min() >= 0 and x.max() <= 255)
    return np.ascontiguousarray(x, np.uint8 if fits_a_byte else np.float32), notes


def _range_notes(x: npt.NDArray[Any], name: str) -> list[str]:
    """Notes on values that do not fit the decision, by dtype and shape, whether examples are pixels."""
    values = value_range(x.dtype, x.shape)
    high = max(float(x.max()), -float(x.min())) if x.dtype.kind == "f" else int(x.max())
    if values.pixels:
        dark = 0 < high < 0.1 * (values.largest or 0)
        return [f"{name} has values only up to {high}, although {x.dtype} goes up to {values.largest}"] if dark else []
    if x.ndim == 4 and high > 10:
        return [
            f"{name} has {x.dtype} values up to {high:g}: not scaled, as only uint8 and uint16 with 1, 3 or 4 channels "
            "are treated as pixels"
        ]
    if x.ndim == 2 and values.largest and high > max(1, values.largest / 2):
        return [f"{name} is {x.dtype} but not in the shape of images: not scaled (--scale 0-1 divides by its range)"]
    return []


def _first_not_finite(x: npt.NDArray[Any]) -> int | None:
    rows = max(1, _CHUNK // max(1, x[0].size))
    for first in range(0, len(x), rows):
        finite = np.isfinite(x[first : first + rows]).reshape(len(x[first : first + rows]), -1).all(axis=1)
        if not finite.all():
            return first + int(np.argmin(finite))
    return None


def _kind(dtype: np.dtype[Any]) -> str:
    return {"O": "Python objects", "U": "text", "S": "text", "c": "complex numbers", "M": "dates", "V": "records"}.get(
        dtype.kind, str(dtype)
    )
