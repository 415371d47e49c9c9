"""Reads arrays to predict from ``.npz`` and ``.npy`` files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.array_file import ArrayFile, Header, opened
from accel_engine.data.structure import ArraySpec, Structure, named_leaves
from accel_engine.errors import DataError
from accel_engine.trained.prediction.examples import Examples, without_problems

_SUFFIXES = ("", "_test", "_val", "_train")
"""What may follow an input's name in a file, by preference."""


def read_arrays(path: Path, specs: Structure, features: Sequence[str] = ()) -> Examples:
    """Read the inputs of a model.

    Args:
        path: An ``.npz`` or ``.npy`` file.
        specs: The specs of an example's inputs: one, or a dictionary by the names of arrays.
        features: The arrays that the run's plan names as inputs.

    Raises:
        DataError: The file cannot be read, or lacks an array of an input's shape and type.
    """
    with opened(path) as file:
        if isinstance(specs, ArraySpec):
            inputs: Structure = _read(file, _single(file.headers, specs, features), specs)
        elif isinstance(specs, dict) and all(isinstance(spec, ArraySpec) for spec in specs.values()):
            inputs = {name: _read(file, _named(file.headers, name), spec) for name, spec in specs.items()}
        else:
            raise DataError("the model's inputs have no names, by which arrays could be given")
    leaves = dict(named_leaves(inputs))
    counts = {len(array) for array in leaves.values()}
    if len(counts) > 1:
        raise DataError(f"the inputs of {path.name} have different numbers of rows: {sorted(counts)}")
    problems: dict[int, str] = {}
    for name, array in leaves.items():
        for row in _not_finite(array):
            problems.setdefault(row, f"row {row + 1:,} of {name or 'the array'} in {path.name} is not finite")
    names = tuple(str(row + 1) for row in range(counts.pop()))
    return Examples(names, without_problems(inputs, problems), problems)


def _single(headers: Mapping[str, Header], spec: ArraySpec, features: Sequence[str]) -> str:
    """The array of the only input."""
    for name in (*features, "x"):
        for suffix in _SUFFIXES:
            if f"{name}{suffix}" in headers:
                return f"{name}{suffix}"
    if len(headers) == 1:
        return next(iter(headers))
    fitting = [name for name, header in headers.items() if _fits(header.shape[1:], spec)]
    if len(fitting) == 1:
        return fitting[0]
    raise DataError(f"no array is called {' or '.join(features or ('x',))}; there are {_listed(headers)}")


def _named(headers: Mapping[str, Header], name: str) -> str:
    for suffix in _SUFFIXES:
        if f"{name}{suffix}" in headers:
            return f"{name}{suffix}"
    raise DataError(f"there is no array {name!r}, which the model needs; there are {_listed(headers)}")


def _listed(headers: Mapping[str, Header]) -> str:
    return ", ".join(map(repr, headers)) or "none"


def _read(file: ArrayFile, name: str, spec: ArraySpec) -> npt.NDArray[Any]:
    """Read an array in the shape and type of an input, ``[examples, ...]``."""
    shape, _ = file.headers[name]
    for rows in (shape, (1, *shape)):  # of many examples, or a single one
        for given in (rows, (*rows, 1)):  # a channel may be missing
            if (len(given) > 1 or not spec.shape) and _fits(given[1:], spec):
                return _typed(file.read(name).reshape(given), name, spec)
    raise DataError(f"the array {name} has the shape {list(shape)}; the model takes examples of {spec}")


def _fits(shape: Sequence[int], spec: ArraySpec) -> bool:
    return len(shape) == len(spec.shape) and all(
        want in (None, side) for side, want in zip(shape, spec.shape, strict=True)
    )


def _typed(array: npt.NDArray[Any], name: str, spec: ArraySpec) -> npt.NDArray[Any]:
    """The array in an input's type.

    Raises:
        DataError: Its values would change.
    """
    if spec.dtype == "string":
        if array.dtype.kind not in "US":
            raise DataError(f"the array {name} is {array.dtype}; the model takes texts")
        return array.astype(str).astype(object)
    wanted = np.dtype(spec.dtype)
    if array.dtype.kind not in "biuf":
        raise DataError(f"the array {name} is {array.dtype}; the model takes {wanted}")
    with np.errstate(invalid="ignore", over="ignore"):
        typed = array.astype(wanted)
    if wanted.kind in "biu" and not np.array_equal(typed, array):
        raise DataError(f"the array {name} has values that are no {wanted}, which the run's data has")
    return typed


def _not_finite(array: npt.NDArray[Any]) -> list[int]:
    if array.dtype.kind != "f" or not array.size:
        return []
    wrong = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)
    return np.flatnonzero(wrong).tolist()
