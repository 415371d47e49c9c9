"""Infers from an array of targets what is learned, and converts class labels; without TensorFlow."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.pixel_scaling import is_image
from accel_engine.data.standardization import Standardization
from accel_engine.errors import DataError

MAX_CLASSES = 10_000
"""Integer labels above this, and above the number of examples, are not accepted as classes."""

_MAX_FLOAT_CLASSES = 100
"""Numbers with a point are class labels only if they are 0, 1, 2 and so on, without gaps, and no more than this."""

_FEW_VALUES = 20
"""The most different integers that are classes, even where most of them occur once."""

_IMAGE_VALUES = 64
"""Arrays in the size and of the type of the images are images, not masks, if they have more different values."""


class Known(NamedTuple):
    """An array, of which only the first rows may be known."""

    shape: tuple[int, ...]
    """Shape with all rows."""
    dtype: np.dtype[Any]
    """Its type."""
    rows: npt.NDArray[Any]
    """All rows, or the first ones."""

    @classmethod
    def of(cls, array: npt.NDArray[Any]) -> Self:
        """All rows of an array."""
        return cls(array.shape, array.dtype, array)

    @property
    def whole(self) -> bool:
        """Whether all rows are known."""
        return len(self.rows) == self.shape[0]


@dataclass(frozen=True, slots=True)
class TargetForm:
    """The task and the classes of an array of targets."""

    task: str = "auto"
    """The task, one of :data:`accel_engine.data.data_options.TASKS`; ``auto`` if the targets suggest none."""
    classes: int = 0
    """Number of classes; 0 if there are none, or unknown."""
    labels: bool = False
    """Whether the targets are one class index per example."""
    names: tuple[str, ...] = ()
    """Names of the classes, where the labels are text, sorted."""
    counts: tuple[int, ...] = ()
    """Number of examples of each class; empty if not counted."""
    notes: tuple[str, ...] = ()
    """Notes for the user."""
    is_precise: bool = False
    """Whether numbers stay float64, to be standardised, as float32 would lose digits."""

    def convert(self, y: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
        """Convert targets: labels to int32 ``[n]``, numbers to predict or with a point to float32; others stay.

        Numbers to predict become float64 if :attr:`is_precise`.

        Raises:
            DataError: A label is not one of the classes, or the targets are neither numbers nor class names.
        """
        if self.names:
            return self._indices(y, name)
        if self.labels:
            labels, found = sparse_labels(y, name)
            if found > self.classes:
                raise DataError(
                    f"{name} has labels up to {found - 1}, but there are only classes 0 to {self.classes - 1}"
                )
            return labels
        if y.dtype.kind not in "buif":
            raise DataError(f"{name} holds {kind_text(y.dtype)}; targets must be numbers, or one text per example")
        if self.is_precise:
            return np.ascontiguousarray(y, np.float64)
        if y.dtype.kind == "f" or self.task == "regression":
            with np.errstate(over="ignore"):  # values too large for float32 become infinite, and are found later
                return np.ascontiguousarray(y, np.float32)
        return y

    def _indices(self, y: npt.NDArray[Any], name: str) -> npt.NDArray[np.int32]:
        texts = text_array(y).reshape(len(y))
        names = np.array(self.names)
        order = np.argsort(names)
        known = names[order]
        found = np.minimum(np.searchsorted(known, texts), len(known) - 1)
        if (wrong := np.flatnonzero(known[found] != texts)).size:
            raise DataError(f"{name}[{wrong[0]}] is {str(texts[wrong[0]])!r}, a class without training examples")
        return order[found].astype(np.int32)


def understand(y: Known | None, x: Known | None, task: str, name: str) -> TargetForm:
    """Infer the meaning of targets.

    Args:
        y: The training targets; ``None`` if there are none, or several.
        x: The inputs; ``None`` if there are several. Only shape, type and a few rows are used.
        task: A plan's task; ``auto`` to infer it.
        name: The targets' name, for messages.

    Raises:
        DataError: The targets do not fit the task.
    """
    if y is None or task == "custom":
        return TargetForm(task)
    if y.dtype.kind in "OUST" and task in ("auto", "classification"):
        return _text_labels(y, name)
    if y.dtype.kind not in "buif":
        raise DataError(f"{name} holds {kind_text(y.dtype)}; targets must be numbers, or one text per example")
    notes: tuple[str, ...] = ()
    if task == "auto":
        task, notes = _infer(y, x, name)
    form = _form(y, task, name)
    is_precise = task == "regression" and y.whole and len(y.shape) <= 2 and number_scaling(y.rows) is not None
    return replace(form, notes=(*form.notes, *notes), is_precise=is_precise)


def number_scaling(y: npt.NDArray[Any], train: npt.NDArray[np.integer[Any]] | None = None) -> Standardization | None:
    """How numbers to predict are standardised; ``None`` if float32 keeps their digits.

    Args:
        y: The numbers, ``[n]`` or ``[n, columns]``.
        train: The training rows; all by default.
    """
    rows = y if train is None else y[train]
    columns = list(rows.reshape(len(rows), -1).T)
    finite = [column[np.isfinite(column)] for column in columns]
    scaling = Standardization.of_columns(finite)
    return scaling if any(scaling.lost_by_float32(finite)) else None


def standardized_change(names: str) -> Change:
    """The note on targets that are standardised."""
    detail = "float32 would lose their digits; the loss is in standard deviations"
    return Change("standardized", f"values of {names}", detail=detail)


def _infer(y: Known, x: Known | None, name: str) -> tuple[str, tuple[str, ...]]:
    """The task, and notes about it."""
    integer = y.dtype.kind in "bui"
    if _is_flat(y.shape):
        return _infer_flat(y, name)
    if _same(y, x):
        return "reconstruction", ()
    if len(y.shape) == 2:
        if integer and x is not None and _is_sequence(x, y.shape[1]):
            return "sequence", ()
        if _zero_or_one(y.rows):
            return ("classification" if _one_hot(y.rows).all() else "multi-label"), ()
        return ("sequence" if integer else "regression"), ()
    if x is not None and _on_images(y, x):
        return _infer_on_images(y, x), ()
    on_steps = integer and x is not None and x.shape[1:2] == y.shape[1:2]
    return ("sequence" if on_steps else "regression"), ()


def _infer_flat(y: Known, name: str) -> tuple[str, tuple[str, ...]]:
    """Whether one number per example is a class."""
    values = np.unique(y.rows)
    if len(values) == 1:
        return "auto", (f"{name} has the same value in all examples: not used as classes",)
    low, high = values[0], values[-1]
    if y.dtype.kind == "f":
        whole = bool(np.isfinite(values).all()) and np.array_equal(values, np.arange(len(values)))
        return ("classification" if whole and len(values) <= _MAX_FLOAT_CLASSES else "regression"), ()
    classes = int(high) + 1
    several = len(values) <= max(_FEW_VALUES, len(y.rows) // 2)
    if low >= 0 and several and len(values) * 10 >= classes:
        many = f"{name} has integers from {low} to {high}: used as classes; set the task to regression for numbers"
        return "classification", (many,) if classes > _FEW_VALUES else ()
    return "regression", (
        f"{name} has integers from {low} to {high}: used as numbers, as they do not look like classes",
    )


def _infer_on_images(y: Known, x: Known) -> str:
    """Whether arrays in the size of the images are masks or images."""
    values = np.unique(y.rows[:_IMAGE_VALUES])
    classes_last = len(y.shape) == 4 and y.shape[3] > 1
    if classes_last:
        one_hot = _zero_or_one(y.rows[:8]) and bool((y.rows[:8].sum(axis=-1) == 1).all())
        return "segmentation" if one_hot else "reconstruction"
    whole = y.dtype.kind != "f" or np.array_equal(values, np.floor(values))
    like_images = y.dtype == x.dtype and len(values) > _IMAGE_VALUES
    return "segmentation" if whole and not like_images else "reconstruction"


def _form(y: Known, task: str, name: str) -> TargetForm:
    """The form of the targets of a task."""
    flat, dimensions = _is_flat(y.shape), len(y.shape)
    if task == "classification" and flat:
        labels, classes = sparse_labels(y.rows, name)
        if y.whole:
            check_classes(classes, name)
        counts = np.bincount(labels, minlength=classes)
        return TargetForm(task, classes, True, (), tuple(map(int, counts)), _absent(counts, name))
    if task in ("classification", "multi-label"):
        if dimensions != 2:
            raise DataError(f"{name} has the shape {y.shape}; {task} needs {_CLASS_SHAPES[task]}")
        valid = _one_hot(y.rows) if task == "classification" else ((y.rows == 0) | (y.rows == 1)).all(axis=1)
        if not valid.all():
            form = "not one-hot: one 1 and otherwise 0" if task == "classification" else "not all 0 or 1"
            raise DataError(f"{name} has the shape {y.shape}, but row {int(np.argmin(valid))} is {form}")
        counts = y.rows.sum(axis=0)
        notes = _absent(counts, name) if task == "classification" and y.whole else ()
        return TargetForm(task, y.shape[1], counts=tuple(map(int, counts)), notes=notes)
    if task in ("sequence", "segmentation"):
        least = 2 if task == "sequence" else 3
        if dimensions < least:
            of = "token" if task == "sequence" else "pixel"
            raise DataError(f"{name} has the shape {y.shape}; {task} needs a label per {of}")
        return TargetForm(task, _classes_per_position(y))
    return TargetForm(task)


_CLASS_SHAPES = {
    "classification": "labels [n] or [n, 1], or one-hot [n, classes]",
    "multi-label": "0 or 1 for each class, [n, classes]",
}


def _classes_per_position(y: Known) -> int:
    """Number of classes of a label per token or pixel; 0 if unknown."""
    if y.dtype.kind == "b":
        return 2
    if y.dtype.kind == "f" or not y.whole or y.rows.size == 0:
        return 0
    low, high = int(y.rows.min()), int(y.rows.max())
    return max(2, high + 1) if low >= 0 and high < MAX_CLASSES else 0


def _text_labels(y: Known, name: str) -> TargetForm:
    if not _is_flat(y.shape):
        raise DataError(f"{name} is text of the shape {y.shape}; class names must be [n]")
    values, counts = np.unique(text_array(y.rows), return_counts=True)
    if y.whole:
        check_classes(len(values), name)
    if y.whole and len(values) > max(_FEW_VALUES, len(y.rows) // 2):
        raise DataError(f"{name} has {len(values)} different texts in {len(y.rows)} examples: not class names")
    names = tuple(map(str, values))
    return TargetForm("classification", len(names), True, names, tuple(map(int, counts)))


def named_classes(y: npt.NDArray[Any], class_names: Sequence[str], name: str) -> TargetForm:
    """The classes of labels that are texts, in the order that the data gives or, by default, of the alphabet.

    Args:
        y: The training labels, text ``[n]``.
        class_names: The names of all classes; empty if only the labels tell.
        name: The targets' name, for messages.

    Raises:
        DataError: The labels have another shape, one text only, or too many different texts.
    """
    form = _text_labels(Known.of(y), name)
    return replace(form, names=tuple(class_names), classes=len(class_names)) if class_names else form


def sparse_labels(y: npt.NDArray[Any], name: str) -> tuple[npt.NDArray[np.int32], int]:
    """Convert labels ``[n]`` or ``[n, 1]`` to int32 ``[n]``, and count the classes.

    Raises:
        DataError: The labels are not integers from 0, are too large for classes, or have another shape.
    """
    if y.dtype.kind not in "buif":
        raise DataError(f"{name} holds {kind_text(y.dtype)}; labels must be integers from 0, or one-hot")
    if not _is_flat(y.shape):
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


def text_array(array: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    """An array of text or UTF-8 bytes as NumPy's text."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8", "replace")
    if array.dtype.kind == "O":
        texts = [item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item) for item in array.flat]
        return np.array(texts, dtype=np.str_).reshape(array.shape)
    return array.astype(np.str_)


def kind_text(dtype: np.dtype[Any]) -> str:
    """The name of values of a type, such as ``text``."""
    names = {"O": "Python objects", "U": "text", "S": "text", "T": "text", "c": "complex numbers", "M": "dates"}
    return {**names, "m": "durations", "V": "records"}.get(dtype.kind, str(dtype))


def _absent(counts: npt.NDArray[Any], name: str) -> tuple[str, ...]:
    absent = np.flatnonzero(counts == 0)
    if not len(absent):
        return ()
    return (f"{name} has no examples of {len(absent)} of its {len(counts)} classes, e.g. class {absent[0]}",)


def _is_flat(shape: tuple[int, ...]) -> bool:
    return len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)


def _zero_or_one(rows: npt.NDArray[Any]) -> bool:
    return bool(((rows == 0) | (rows == 1)).all())


def _one_hot(rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether each row ``[n, classes]`` is one-hot."""
    return ((rows == 0) | (rows == 1)).all(axis=1) & (rows.sum(axis=1) == 1)


def _is_sequence(x: Known, steps: int) -> bool:
    """Whether inputs are that many tokens, or steps of a series."""
    tokens = len(x.shape) == 2 and x.dtype.kind in "ui"
    return (tokens or len(x.shape) == 3) and x.shape[1] == steps


def _on_images(y: Known, x: Known) -> bool:
    example = x.shape[1:] if len(x.shape) == 4 else (*x.shape[1:], 1)
    return is_image(example) and y.shape[1:3] == x.shape[1:3] and len(y.shape) in (3, 4)


def _same(y: Known, x: Known | None) -> bool:
    """Whether the targets seem to be the inputs."""
    if x is None or x.shape != y.shape or x.dtype != y.dtype:
        return False
    rows = min(len(x.rows), len(y.rows), 100)
    return rows > 0 and np.array_equal(x.rows[:rows], y.rows[:rows])
