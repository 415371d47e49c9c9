"""Time series in arrays, whose first axis is time: ``[rows]`` or ``[rows, columns]``."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy.typing as npt

from accel_engine.data.array_file import Header
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Dataset
from accel_engine.data.roles import Roles
from accel_engine.data.series.series import check_kind, choose_series_roles
from accel_engine.data.series.series_parts import describe_windows
from accel_engine.data.series.windowed import windowed
from accel_engine.data.source import DatasetEntry, EntryColumn
from accel_engine.data.splits import of_own_splits, split_names, validate_on_test
from accel_engine.errors import DataError, FieldValue, PlanError, join_words
from accel_engine.words import numbers

T = TypeVar("T")

_LISTED = 8
"""Maximum number of columns that a note lists."""


def windowed_arrays(
    name: str,
    arrays: Mapping[str, npt.NDArray[Any]],
    options: DataOptions,
    validation: Mapping[str, npt.NDArray[Any]] | None = None,
) -> Dataset:
    """Make a dataset of the windows of arrays.

    The columns of an array are named as in ``x[0]``; the only one of an array has the
    array's name. The plan names columns or whole arrays. By default, arrays ``x`` and ``y`` are inputs and targets.

    Args:
        name: The dataset's name, for titles.
        arrays: Arrays with the same number of rows; or such arrays for each split, with names that end with ``_train``,
            ``_val`` and ``_test``. Without ``_val``, ``_test`` is for validation, as in ``keras.datasets``.
        options: The plan's window, horizon, columns and split.
        validation: The arrays of a file with validation data.

    Raises:
        DataError: The arrays cannot be used.
        PlanError: An option does not fit the arrays.
    """
    own = of_own_splits(options, _in_one_file(arrays, options))
    return windowed_splits(name, _by_split(arrays, validation, options), own)


def windowed_splits(name: str, splits: Mapping[str, Mapping[str, npt.NDArray[Any]]], options: DataOptions) -> Dataset:
    """Make a dataset of the windows of arrays of ``train`` and perhaps ``validation`` and ``test``.

    Args:
        name: The dataset's name, for titles.
        splits: The arrays of each split, by name.
        options: As in :func:`windowed_arrays`.

    Raises:
        DataError: The arrays cannot be used.
        PlanError: An option does not fit the arrays.
    """
    names = {split: column_names({each: array.shape for each, array in own.items()}) for split, own in splits.items()}
    tables = {
        split: {
            column: own[each].reshape(len(own[each]), -1)[:, index]
            for each, columns in names[split].items()
            for index, column in enumerate(columns)
        }
        for split, own in splits.items()
    }
    chosen = _with_columns(names["train"], options)
    made = windowed(name, tables["train"], chosen, validation=tables.get("validation"), test=tables.get("test"))
    roles = choose_series_roles(tuple(tables["train"]), chosen)
    return replace(made, notes=(*_unused(tables["train"], roles, chosen), *made.notes))


def survey_arrays(
    entry: DatasetEntry,
    headers: Mapping[str, Header],
    options: DataOptions,
    validation: Mapping[str, Header] | None = None,
) -> DatasetEntry:
    """Complete an entry from the headers of arrays.

    Args:
        entry: The entry of the file.
        headers: Shape and type of each array.
        options: The plan's window, horizon, columns and split.
        validation: The headers of a file with validation data.

    Raises:
        DataError: The arrays cannot be used.
        PlanError: An option does not fit the arrays.
    """
    splits = _by_split(headers, validation, options)
    names = {split: column_names({each: shape for each, (shape, _) in own.items()}) for split, own in splits.items()}
    rows = {split: next(iter(own.values()))[0][0] for split, own in splits.items()}
    chosen = _with_columns(names["train"], options)
    dtypes = {column: splits["train"][each][1] for each, columns in names["train"].items() for column in columns}
    roles = choose_series_roles(tuple(dtypes), chosen)
    for name in roles.names:
        check_kind(name, dtypes[name], chosen)
    described = describe_windows(
        entry,
        roles,
        rows["train"],
        chosen,
        validation_rows=rows.get("validation", 0),
        test_rows=rows.get("test", 0),
    )
    known = roles.by_name()
    listed = (
        EntryColumn(each, "number" if dtype.kind in "buif" else "other", known.get(each, "unused"), None, str(dtype))
        for each, dtype in dtypes.items()
    )
    return replace(described, columns=tuple(listed), notes=_unused(dtypes, roles, chosen))


def _unused(names: Iterable[str], roles: Roles, options: DataOptions) -> tuple[str, ...]:
    """A note on columns that are not used although the plan neither ignores them nor chooses others."""
    known = {*roles.by_name(), *options.ignore}
    unused = [name for name in names if name not in known]
    return (f"columns that are not used: {numbers.listed(map(repr, unused), _LISTED)}",) if unused else ()


def _by_split(
    arrays: Mapping[str, T], validation: Mapping[str, T] | None, options: DataOptions
) -> dict[str, dict[str, T]]:
    """The arrays of each split, without the end of their names; those that the plan ignores are left out."""
    splits = _in_one_file(arrays, options)
    return splits if validation is None else {**splits, "validation": _in_one_file(validation, options)["train"]}


def _in_one_file(arrays: Mapping[str, T], options: DataOptions) -> dict[str, dict[str, T]]:
    if options.split_column:
        raise PlanError("split", options.split, "needs a table with this column")
    splits = split_names(name for name in arrays if name not in options.ignore)
    if not splits["train"]:
        raise DataError("there are no arrays")
    if len(splits) > 1:
        everywhere = set.intersection(*(set(own) for own in splits.values()))
        splits["train"] = {name: own for name, own in splits["train"].items() if name in everywhere}
    validate_on_test(splits, options, "the test arrays")
    return {split: {name: arrays[stored] for name, stored in own.items()} for split, own in splits.items()}


def column_names(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[str, ...]]:
    """The names of each array's columns.

    Raises:
        DataError: An array has another shape, or they have different numbers of rows.
    """
    names, rows = {}, next(iter(shapes.values()))[:1]
    for name, shape in shapes.items():
        if len(shape) not in (1, 2) or 0 in shape:
            words = (f"{name} has the shape {shape}; a time series is [rows] or [rows, columns]: leave it out with ",)
            raise DataError(join_words((*words, FieldValue("ignore", name))))
        if shape[:1] != rows:
            raise DataError(f"{name} has {shape[0]:,} rows, but {next(iter(shapes))} has {rows[0]:,}")
        several = len(shape) == 2 and shape[1] > 1
        names[name] = tuple(f"{name}[{index}]" for index in range(shape[1])) if several else (name,)
    return names


def _with_columns(names: Mapping[str, tuple[str, ...]], options: DataOptions) -> DataOptions:
    """Options that name columns where the plan names arrays, and inputs and targets by default."""

    def expand(chosen: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(column for name in chosen for column in names.get(name, (name,)))

    ignore = tuple(name for name in expand(options.ignore) if any(name in columns for columns in names.values()))
    unused = {*ignore, options.time, options.group}
    return replace(
        options,
        features=expand(options.features) or tuple(name for name in names.get("x", ()) if name not in unused),
        target=expand(options.target) or names.get("y", ()),
        ignore=ignore,
    )
