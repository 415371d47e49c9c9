"""Tells what a user's function returned: one split or several, as arrays or streams."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.data_options import SPLIT_NAMES, TASKS
from accel_engine.data.pixel_scaling import is_image
from accel_engine.data.structure import ArraySpec, Batch, Structure, flatten, named_leaves
from accel_engine.errors import DataError

_LISTS = ("class_names", "vocabulary", "feature_names", "target_names")
KEYS = (*SPLIT_NAMES, *_LISTS, "task")
"""Keys of a dictionary of splits."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The splits that a function returned."""

    splits: Mapping[str, Any]
    """A :class:`~accel_engine.data.structure.Batch` of arrays, or a stream's source, by name of the split."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Values of ``class_names`` and so on, as fields of a ``Dataset``."""


def understand_returned(value: Any) -> Returned:
    """Find the splits in what a function returned.

    - A dictionary with ``train`` has the splits, and what is known about them.
    - A tuple with a stream in it, or of tuples of the same form, is ``(train, validation)``, perhaps with ``test``.
    - Anything else is the training split: ``x``, ``(x, y)``, ``(x, y, sample_weight)`` or a stream.

    Raises:
        DataError: The value can be understood in two ways, or has a form that cannot be used.
    """
    if isinstance(value, Mapping) and ("train" in value or {"validation", "test"} & set(value)):
        return _dictionary(value)
    if isinstance(value, tuple | list) and _are_splits(value):
        return Returned(_named_splits(value))
    return Returned({"train": one_split(value)})


def one_split(value: Any) -> Any:
    """Convert arrays to a :class:`~accel_engine.data.structure.Batch`; return a stream's source unchanged.

    Raises:
        DataError: The value is neither arrays nor a stream.
    """
    if is_stream(value):
        return value
    if value is None:
        raise DataError("returned nothing; it must return the data")
    if inspect.isroutine(value) or inspect.isclass(value) or isinstance(value, str | bytes):
        raise DataError(f"returned {value!r}, which is not data")
    return as_batch(value)


def is_stream(value: Any) -> bool:
    """Whether a value gives batches one after another, unlike an array or a structure of arrays."""
    if isinstance(value, tf.data.Dataset | keras.utils.PyDataset | Iterator) or inspect.isgeneratorfunction(value):
        return True
    arrays = isinstance(value, list | tuple | Mapping | str | bytes | set | frozenset)
    like_array = any(hasattr(value, name) for name in ("__array__", "shape", "to_numpy"))
    return isinstance(value, Iterable) and not arrays and not like_array and not inspect.isclass(value)


def _dictionary(value: Mapping[Any, Any]) -> Returned:
    for key in value:
        if key not in KEYS:
            near = get_close_matches(str(key), KEYS, 1)
            hint = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(KEYS)}"
            raise DataError(f"returned a dictionary of splits with the unknown key {key!r}; {hint}")
    if value.get("train") is None:
        raise DataError("returned a dictionary of splits without train")
    splits = {name: one_split(value[name]) for name in SPLIT_NAMES if value.get(name) is not None}
    about: dict[str, Any] = {name: _texts(name, value[name]) for name in _LISTS if value.get(name) is not None}
    if (task := value.get("task")) is not None:
        if task not in TASKS:
            raise DataError(f"returned the task {task!r}; must be one of {', '.join(TASKS)}")
        about["task"] = task
    return Returned(splits, about)


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise DataError(f"returned {name} = {value!r}; must be a list of texts")
    return tuple(item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item) for item in value)


def _are_splits(value: Any) -> bool:
    """Whether the parts of a tuple are splits; otherwise they are inputs, targets and sample weights."""
    if any(map(is_stream, value)):
        for part in value:
            if not (is_stream(part) or part is None or is_tuple(part)):
                raise DataError(
                    "returned a stream beside an array: a stream gives inputs and targets together, as (x, y)"
                )
        if len(value) > len(SPLIT_NAMES):
            raise DataError(f"returned {len(value)} streams; return train, validation and test at most")
        return True
    if not (2 <= len(value) <= len(SPLIT_NAMES) and all(part is None or is_tuple(part) for part in value)):
        return False
    parts = [part for part in value if part is not None]
    if not 1 < len(parts) == len(value):
        raise DataError(f"returned a tuple and None, which may be inputs or a split; {_USE_NAMES}")
    if not all(1 <= len(part) <= 3 for part in parts):
        return False
    batches = [as_batch(tuple(part)) for part in parts]
    forms = [_form(batch) for batch in batches]
    if any(form != forms[0] for form in forms):
        return False
    lengths = {len(array) for batch in batches for array in flatten(batch) if np.ndim(array)}
    alike = len(set(_form(batches[0], with_part=False))) == 1 and len(parts[0]) > 1
    if len(lengths) == 1 and alike:
        raise DataError(f"returned tuples of arrays of one shape, which may be inputs or splits; {_USE_NAMES}")
    return True


_USE_NAMES = "return {'train': (x, y), 'validation': (x, y)}, or {'train': ((a, b), (c, d))}"


def _form(batch: Batch, *, with_part: bool = True) -> list[Any]:
    """Name, shape of an example and kind of type of each array, equal in all splits of the same data."""
    leaves = named_leaves(batch._asdict())
    return [(path if with_part else "", array.shape[1:], array.dtype.kind) for path, array in leaves]


def _named_splits(value: Any) -> dict[str, Any]:
    splits = {name: one_split(part) for name, part in zip(SPLIT_NAMES, value, strict=False) if part is not None}
    if "train" not in splits:
        raise DataError("returned None for the training split")
    return splits


def suggest_task(inputs: Structure, targets: Structure, class_names: tuple[str, ...]) -> str:
    """The task that specs suggest; ``auto`` where only values would tell.

    Args:
        inputs: The specs of the inputs.
        targets: The specs of the targets.
        class_names: Names of the classes; empty if there are none.
    """
    if not isinstance(targets, ArraySpec) or targets.dtype == "string":
        return "auto"
    shape, integer = targets.shape, not targets.dtype.startswith(("float", "bfloat"))
    image = isinstance(inputs, ArraySpec) and is_image(tuple(side or 8 for side in inputs.shape))
    if image and isinstance(inputs, ArraySpec) and len(shape) in (2, 3) and shape[:2] == inputs.shape[:2]:
        mask = integer and (len(shape) == 2 or shape[2] == 1) and targets != inputs
        return "segmentation" if mask else "reconstruction"
    if shape in ((), (1,)):
        if class_names:
            return "classification"
        return "auto" if integer else "regression"
    if class_names and shape == (len(class_names),):
        return "classification"
    if integer:
        return "sequence" if len(shape) == 1 else "auto"
    return "regression" if not class_names else "auto"


PARTS = Batch("inputs", "targets", "sample weights")
"""Names of the parts in messages."""


def as_batch(value: Any) -> Batch:
    """Convert ``x``, ``(x,)``, ``(x, y)`` or ``(x, y, sample_weight)``; a list of arrays is like a tuple.

    Raises:
        DataError: The value has another form, or an array cannot be used.
    """
    parts = tuple(value) if isinstance(value, tuple) or is_tuple(value) else (value,)
    if not 1 <= len(parts) <= 3:
        raise DataError(f"expected x, (x, y) or (x, y, sample_weight), not {len(parts)} parts")
    return Batch(*(as_structure(part, name) for part, name in zip(parts, PARTS, strict=False)))


def as_structure(value: Any, name: str) -> Structure:
    """Convert an array, or a tuple, list or dictionary of arrays; lists become tuples.

    Raises:
        DataError: An array cannot be used, for example because it is ragged.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {str(key): as_structure(part, f"{name}/{key}") for key, part in value.items()}
    if is_tuple(value):
        return tuple(as_structure(part, f"{name}/{index}") for index, part in enumerate(value))
    return _as_array(value, name)


def is_tuple(value: Any) -> bool:
    """Whether a tuple or list has parts; otherwise, one of numbers or texts is an array."""
    return isinstance(value, tuple | list) and any(map(_is_part, value))


def _is_part(value: Any) -> bool:
    if isinstance(value, Mapping) or is_tuple(value):
        return True
    return not isinstance(value, list | tuple | str | bytes) and getattr(value, "shape", ()) != ()


def _as_array(value: Any, name: str) -> npt.NDArray[Any]:
    if isinstance(value, tf.RaggedTensor | tf.SparseTensor):
        kind = "ragged" if isinstance(value, tf.RaggedTensor) else "sparse"
        raise DataError(f"{name}: a {kind} tensor; make it dense, e.g. with to_tensor() or tf.sparse.to_dense()")
    if hasattr(value, "detach"):  # a PyTorch tensor, perhaps on a GPU
        value = value.detach().cpu()
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        raise DataError(f"{name}: a sparse matrix; make it dense with toarray()")
    if hasattr(value, "to_numpy"):  # pandas and others
        value = value.to_numpy()
    if np.ma.is_masked(value):
        value = value.astype(np.float64).filled(np.nan)  # which are found later
    try:
        array = np.asarray(value)
    except ValueError as error:  # lists of different lengths
        raise DataError(f"{name}: {_RAGGED}") from error
    except (TypeError, RuntimeError) as error:  # such as PyTorch's bfloat16
        raise DataError(f"{name}: {type(value).__name__} cannot be an array of NumPy: {error}") from error
    if array.dtype == object and any(isinstance(item, list | tuple | np.ndarray) for item in array.flat):
        raise DataError(f"{name}: {_RAGGED}")
    with np.errstate(over="ignore"):  # values too large for float32 become infinite, and are found later
        dtype = np.float32 if "float" in array.dtype.name else array.dtype.newbyteorder("=")
        return array.astype(dtype, copy=False)


_RAGGED = "examples of different lengths; pad them to one length, e.g. with keras.utils.pad_sequences"
