"""Checks arrays: their shapes and types, and that their values are finite."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import DataOptions, or_skip
from accel_engine.data.dataset import nonfinite_rows, spec_of
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.structure import ArraySpec, Batch, map_structure, named_leaves
from accel_engine.errors import DataError


def check_parts(parts: Mapping[str, Batch], names: Mapping[str, Batch]) -> None:
    """Check the shapes and types of all splits: equally many rows, and the same arrays as the training split.

    Raises:
        DataError: An array is empty, or has another number of rows, shape or type than it must have.
    """
    for split, part in parts.items():
        _check_lengths(part, names[split])
        check_like(map_structure(spec_of, part), map_structure(spec_of, parts["train"]), names[split], names["train"])


def _check_lengths(part: Batch, names: Batch) -> None:
    """Check that no array is empty, and that all have equally many rows."""
    first: tuple[str, int] | None = None
    for structure, name in zip(part, names, strict=True):
        for path, array in named_leaves(structure, name):
            if not array.ndim:
                raise DataError(f"{path} is a single value, not an array of examples")
            if not len(array):
                raise DataError(f"{path} has no examples")
            if 0 in array.shape:
                raise DataError(f"{path} has the shape {array.shape}: its examples are empty")
            first = first or (path, len(array))
            if len(array) != first[1]:
                raise DataError(f"{first[0]} has {first[1]} rows but {path} has {len(array)}: one row per example")
    if first is None:
        raise DataError(f"{names.inputs} is None: there are no inputs")


def check_like(part: Batch, train: Batch, names: Batch, train_names: Batch) -> None:
    """Check that a split has the arrays of the training split, in the same shapes, and inputs in the same value range.

    Args:
        part: The specs of the split.
        train: The specs of the training split.
        names: Names of the split's parts, for messages.
        train_names: Names of the training split's parts.

    Raises:
        DataError: The arrays, their shapes or their value ranges differ.
    """
    for structure, expected, name, other in zip(part[:2], train[:2], names[:2], train_names[:2], strict=True):
        own, like = dict(named_leaves(structure)), dict(named_leaves(expected))
        if list(own) != list(like):
            needs, has = (_listed(list(each)) for each in (like, own))
            raise DataError(f"{other} and {name} differ, {needs} and {has}: all splits must have the same arrays")
        for path in own:
            mine, others = (f"{each}/{path}" if path else each for each in (name, other))
            if not _has_shape(own[path], like[path]):
                raise DataError(f"examples are {like[path]} in {others} but {own[path]} in {mine}")
            is_text = [each.dtype == "string" for each in (own[path], like[path])]
            if is_text[0] != is_text[1] or (name == names.inputs and _range(own[path]) != _range(like[path])):
                types = f"{like[path].dtype} in {others} but {own[path].dtype} in {mine}"
                raise DataError(f"examples are {types}: both must have the same value range")


def _has_shape(spec: ArraySpec, like: ArraySpec) -> bool:
    sides = zip(spec.shape, like.shape, strict=False)
    return len(spec.shape) == len(like.shape) and all(None in pair or pair[0] == pair[1] for pair in sides)


def _range(spec: ArraySpec) -> tuple[bool, int | None]:
    """Whether values have a point, and what ``--scale 0-1`` divides them by."""
    return "float" in spec.dtype, ValueRange.of_array(spec.dtype, ()).largest


def _listed(paths: list[str]) -> str:
    return "one array" if paths == [""] else ", ".join(paths) or "nothing"


def finite_rows(part: Batch, names: Batch, options: DataOptions) -> tuple[Batch, list[Change]]:
    """Leave examples out that have values which are not finite, if the plan says so.

    Args:
        part: Arrays ``[n, ...]``.
        names: Names of the parts, for messages.
        options: ``invalid_examples`` says whether to fail or to skip them.

    Returns:
        The examples that are left, and a note on the others.

    Raises:
        DataError: There are such examples and the plan does not skip them, or none are left.
    """
    keep: npt.NDArray[np.bool_] | None = None
    first = ""
    for structure, name in zip(part, names, strict=True):
        for path, array in named_leaves(structure, name):
            wrong = nonfinite_rows(array)
            if not wrong.any():
                continue
            place = f"{path}[{int(np.argmax(wrong))}]"
            if options.invalid_examples != "skip":
                raise or_skip(DataError(f"{place} has values that are NaN or infinite"))
            first = first or place
            keep = ~wrong if keep is None else keep & ~wrong
    if keep is None:
        return part, []
    if not keep.any():
        raise DataError(f"all examples have values that are NaN or infinite, the first one in {first}")
    skipped = int((~keep).sum())
    kept: Batch = map_structure(lambda array: array[keep], part)
    what = "examples with values that are NaN or infinite"
    return kept, [Change("left out", what, skipped, len(keep), f"the first is {first}")]
