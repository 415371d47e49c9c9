"""From arrays as people keep them to examples and labels as training takes them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Dataset, Split, split_off
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.errors import DataError
from accel_engine.models.model_entry import shape_text

MOST_CLASSES = 10_000
"""Beyond this, and beyond the number of examples, integer labels are taken to be something else than classes."""

_CHUNK = 1 << 24
"""Numbers looked at at a time, so that checking large data takes little memory."""


def from_arrays(
    name: str,
    arrays: Mapping[str, npt.NDArray[Any]],
    seed: int,
    class_names: Sequence[str] = (),
    *,
    images: bool = False,
) -> Dataset:
    """Make a dataset of arrays in Keras' form.

    Args:
        name: The dataset's, for titles.
        arrays: ``x_train``, ``y_train`` and perhaps ``x_test``, ``y_test``; without these a tenth of the
            examples is split off. Examples are ``[n, ...]`` of any kind of number; images without an axis
            of channels get one. Labels are whole numbers ``[n]`` or ``[n, 1]``, or one-hot ``[n, classes]``.
        seed: Decides what is split off.
        class_names: One for each class; their numbers when left out.
        images: Whether the source of the arrays declares the examples to be images.

    Raises:
        DataError: They cannot be trained on.
    """
    check_lengths(arrays["x_train"].shape, arrays["y_train"].shape, "x_train", "y_train")
    x, notes = _examples(arrays["x_train"], "x_train")
    numbers = replace(value_range(arrays["x_train"].dtype, arrays["x_train"].shape), declared=images)
    y, classes = sparse_labels(arrays["y_train"], "y_train")
    check_classes(classes, "y_train")
    absent = np.setdiff1d(np.arange(classes), y)
    if len(absent):
        notes.append(f"y_train has no example of {len(absent)} of its {classes} classes, such as {absent[0]}")
    if "x_test" in arrays:
        train = Split(x, y)
        validation: Split | None = _validation(arrays, x, classes)
    else:
        chosen, apart = split_off(len(y), seed)
        train = Split(x[chosen], y[chosen])
        validation = Split(x[apart], y[apart]) if len(apart) else None
        notes.append(f"{len(apart)} of {len(y)} examples are split off for validation")
    names = tuple(class_names) or tuple(map(str, range(classes)))
    return Dataset(name, train, validation, classes, names, numbers, tuple(notes))


def _validation(arrays: Mapping[str, npt.NDArray[Any]], x_train: npt.NDArray[Any], classes: int) -> Split:
    x, y = arrays["x_test"], arrays["y_test"]
    check_lengths(x.shape, y.shape, "x_test", "y_test")
    trained = arrays["x_train"]
    ranges = {(each.dtype.kind == "f", value_range(each.dtype, each.shape).largest) for each in (x, trained)}
    if len(ranges) > 1:
        raise DataError(f"x_train holds {trained.dtype} but x_test {x.dtype}: both must be of one range")
    examples, _ = _examples(x, "x_test")
    if examples.shape[1:] != x_train.shape[1:]:
        raise DataError(
            f"x_train has examples of {shape_text(x_train.shape[1:])} but x_test of {shape_text(examples.shape[1:])}"
        )
    labels, found = sparse_labels(y, "y_test")
    if found > classes:
        raise DataError(f"y_test has labels up to {found - 1}, but y_train has classes 0 to {classes - 1} only")
    return Split(examples, labels)


def check_lengths(x: tuple[int, ...], y: tuple[int, ...], x_name: str, y_name: str) -> None:
    """Check from the shapes of examples and labels that there are some, and as many of each.

    Raises:
        DataError: There are not.
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
    """Shape of one example of an array of this shape, once images have an axis of channels."""
    return (*shape[1:], 1) if len(shape) == 3 else shape[1:]


def sparse_labels(y: npt.NDArray[Any], name: str) -> tuple[npt.NDArray[np.int32], int]:
    """Bring labels to int32 ``[n]``, and count the classes.

    Raises:
        DataError: They are no labels of classes.
    """
    if y.dtype.kind not in "buif":
        raise DataError(f"{name} holds {_kind(y.dtype)}; labels must be whole numbers from 0, or one-hot")
    if y.ndim == 2 and y.shape[1] > 1:
        return _from_one_hot(y, name), y.shape[1]
    if y.ndim > 2 or y.size != len(y):
        raise DataError(f"{name} has the shape {y.shape}; labels must be [n], [n, 1] or one-hot [n, classes]")
    flat = y.reshape(-1)
    # Not-a-number is neither at least 0 nor equal to itself.
    right = (flat >= 0) & (flat == np.floor(flat)) & np.isfinite(flat) if flat.dtype.kind == "f" else flat >= 0
    if not right.all():
        index = int(np.argmin(right))
        raise DataError(f"{name}[{index}] is {flat[index]}: labels must be whole numbers from 0")
    classes = int(flat.max()) + 1
    if classes > max(MOST_CLASSES, len(flat)):
        raise DataError(f"{name} reaches {classes - 1}, more than there are examples: these are no labels of classes")
    return flat.astype(np.int32), classes


def check_classes(classes: int, name: str) -> None:
    """Check that there is something to tell apart.

    Raises:
        DataError: There is one class only.
    """
    if classes < 2:
        raise DataError(f"{name} has one class only: there is nothing to tell apart")


def _from_one_hot(y: npt.NDArray[Any], name: str) -> npt.NDArray[np.int32]:
    right = (y.sum(axis=1) == 1) & (y.max(axis=1) == 1) & (y.min(axis=1) == 0)
    if not right.all():
        index = int(np.argmin(right))
        raise DataError(f"{name} has the shape {y.shape}, but row {index} is not one-hot: one 1 and otherwise 0")
    labels: npt.NDArray[np.int32] = y.argmax(axis=1).astype(np.int32)
    return labels


def value_range(dtype: np.dtype[Any], shape: tuple[int, ...]) -> ValueRange:
    """What is known of the numbers of an array of examples from its type and shape ``(examples, ...)`` alone."""
    return ValueRange.of_array(dtype.name, example_shape(shape))


def _examples(x: npt.NDArray[Any], name: str) -> tuple[npt.NDArray[Any], list[str]]:
    if x.dtype.kind not in "buif":
        raise DataError(f"{name} holds {_kind(x.dtype)}; examples must be numbers")
    notes = []
    if x.ndim == 4 and x.shape[1] in (1, 3) and x.shape[3] > 4:
        notes.append(f"{name} of the shape {x.shape} looks channels-first; the last axis is taken as channels")
    if x.ndim == 3:
        notes.append(f"{name} has no axis of channels: taken as images with one channel")
    x = x.reshape(len(x), *example_shape(x.shape))
    notes += _notes_of_range(x, name)
    if x.dtype.kind == "f":
        with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and is found below
            x = np.ascontiguousarray(x, np.float32)
        if (index := _first_not_finite(x)) is not None:
            raise DataError(f"{name}[{index}] holds values that are not finite numbers")
        return x, notes
    fits_a_byte = x.dtype == np.bool_ or (x.min() >= 0 and x.max() <= 255)
    return np.ascontiguousarray(x, np.uint8 if fits_a_byte else np.float32), notes


def _notes_of_range(x: npt.NDArray[Any], name: str) -> list[str]:
    """What is odd about the numbers of examples, where their type and shape decide that they are pixels or not."""
    numbers = value_range(x.dtype, x.shape)
    high = max(float(x.max()), -float(x.min())) if x.dtype.kind == "f" else int(x.max())
    if numbers.pixels:
        dark = 0 < high < 0.1 * (numbers.largest or 0)
        return [f"{name} holds numbers up to {high} only, in a type of up to {numbers.largest}"] if dark else []
    if x.ndim == 4 and high > 10:
        return [
            f"{name} holds {x.dtype} numbers up to {high:g}: left as they are, since only uint8 and uint16 of "
            "1, 3 or 4 channels are taken as pixels"
        ]
    if x.ndim == 2 and numbers.largest and high > max(1, numbers.largest / 2):
        return [f"{name} holds {x.dtype} in no shape of images: not taken as pixels (--scale 0-1 divides by its range)"]
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
