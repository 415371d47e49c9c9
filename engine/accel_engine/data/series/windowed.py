"""Makes a dataset of the windows of time series, split in order and standardised by the training rows."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Dataset, LazyRows, Split, make_if_small
from accel_engine.data.roles import Roles
from accel_engine.data.series import series_parts
from accel_engine.data.series.series import Series, order_series
from accel_engine.data.splits import without_shares
from accel_engine.data.standardization import Standardization, WindowNormalization
from accel_engine.errors import AccelError, DataError

TRAIN, VALIDATION, TEST = range(3)
"""The parts that a row can be in."""

_NAMES = ("training", "validation", "test")

Table: TypeAlias = Mapping[str, npt.NDArray[Any]]
"""Arrays ``[rows]`` by name. Missing numbers are NaN."""


def windowed(
    name: str,
    table: Table,
    options: DataOptions,
    *,
    validation: Table | None = None,
    test: Table | None = None,
    parts: npt.NDArray[np.integer[Any]] | None = None,
) -> Dataset:
    """Make a dataset of the windows of a table.

    An example is a window of consecutive rows; its targets are in the rows that follow the window. Their shapes are
    the ones of :func:`accel_engine.data.series.series_parts.example_shapes`.

    Args:
        name: The dataset's name, for titles.
        table: The rows to train on, and those for validation and test unless they are elsewhere.
        options: The plan's window, horizon, columns and split.
        validation: The validation rows, if they are in a separate table.
        test: The test rows, if they are in a separate table.
        parts: :data:`TRAIN`, :data:`VALIDATION` or :data:`TEST` for each row of ``table``, ``[rows]``, if a column
            says so. Without it, every series is divided in order.

    Raises:
        DataError: A column or row cannot be used.
        PlanError: An option does not fit the table, or there are too few rows.
    """
    others = {number: each for number, each in ((VALIDATION, validation), (TEST, test)) if each is not None}
    options = without_shares(options, validation=VALIDATION in others, test=TEST in others)
    series = order_series(table, options)
    part, notes = _divide(series, options) if parts is None else (parts[series.order], ())
    starts = _window_starts(series, part, options)
    of_part = [starts[part[starts] == each] for each in (TRAIN, VALIDATION, TEST)]
    for each in np.union1d(part, TRAIN):
        _check_count(len(of_part[each]), f"the {_NAMES[each]} data", series, options)
    scalings = _scalings(series, series.valid & (part == TRAIN)) if options.scale == "auto" else None
    splits = list(map(_reader(series, scalings, options), of_part))
    changes = list(series.changes)
    for number, own_table in others.items():
        named = Path(options.validation_data).name if number == VALIDATION else ""
        named = named or f"{_NAMES[number]} data"
        other = _other_series(own_table, named, series.roles, options)
        starts = _window_starts(other, np.zeros_like(other.order), options)
        _check_count(len(starts), named, other, options)
        splits[number] = _reader(other, scalings, options)(starts)
        notes += tuple(f"{named}: {note}" for note in other.notes)
        changes += [replace(each, what=f"{each.what} of {named}") for each in other.changes]
    splits = make_if_small(splits)
    return Dataset(
        name,
        splits[TRAIN],
        splits[VALIDATION] if len(splits[VALIDATION]) else None,
        splits[TEST] if len(splits[TEST]) else None,
        task="regression",
        kind="series",
        feature_names=series.roles.inputs,
        target_names=series.roles.targets,
        preprocess=scalings and _normalization(series, part == TRAIN, scalings, options),
        target_scaling=scalings and scalings.targets,
        notes=(*series.notes, *notes, *_notes(splits, options)),
        changes=(*changes, *([series_parts.STANDARDIZED] if scalings else [])),
    )


class _Scalings(NamedTuple):
    """The statistics of the columns of the inputs and of the targets."""

    inputs: Standardization
    targets: Standardization


def _scalings(series: Series, rows: npt.NDArray[np.bool_]) -> _Scalings:
    """The statistics of some rows."""
    return _Scalings(
        *(
            Standardization.of_columns([series.values[name][rows] for name in names])
            for names in (series.roles.inputs, series.roles.targets)
        )
    )


def _normalization(
    series: Series, rows: npt.NDArray[np.bool_], scalings: _Scalings, options: DataOptions
) -> WindowNormalization:
    """Standardises raw windows, in float64 where float32 would lose digits of the training rows."""
    columns = [series.values[name][series.valid & rows] for name in series.roles.inputs]
    return WindowNormalization(
        series_parts.window_of(options), scalings.inputs, is_precise=any(scalings.inputs.lost_by_float32(columns))
    )


def _divide(series: Series, options: DataOptions) -> tuple[npt.NDArray[np.intp], tuple[str, ...]]:
    """The part of each row, in the order of the series, and notes. A series that is too short is for training only."""
    parts, undivided = [], 0
    for length in series.lengths.tolist():
        counts = series_parts.divide_rows(length, options)
        undivided += counts is None
        parts.append(np.repeat(np.arange(3), counts or (length, 0, 0)))
    part = np.concatenate(parts)
    if undivided == len(series.lengths):
        raise series_parts.too_few_rows(int(series.lengths.max()), options)
    words = "series are too short to be divided: their windows, if any, are for training"
    return part, (f"{undivided:,} of {len(series.lengths):,} {words}",) if undivided else ()


def _window_starts(series: Series, part: npt.NDArray[np.integer[Any]], options: DataOptions) -> npt.NDArray[np.intp]:
    """First rows of all windows whose rows are valid, of one series and of one part."""
    new = np.zeros(len(part), bool)
    new[1:] = (np.diff(part) != 0) | (np.diff(series.valid) != 0)
    new[np.cumsum(series.lengths)[:-1]] = True
    run = np.cumsum(new)
    run[~series.valid] = -1
    return window_starts(run, series_parts.span_of(options))


def _reader(
    series: Series, scalings: _Scalings | None, options: DataOptions
) -> Callable[[npt.NDArray[np.intp]], Split]:
    """A function that makes the examples whose windows start at some rows."""
    inputs, targets = (
        _matrix([series.values[name] for name in names], scaling)
        for names, scaling in zip((series.roles.inputs, series.roles.targets), scalings or (None, None), strict=True)
    )
    input_shape, target_shape = series_parts.example_shapes(series.roles, options)

    def examples_at(starts: npt.NDArray[np.intp]) -> Split:
        return Split(
            _Windows(inputs, starts, input_shape),
            _Windows(targets, starts + series_parts.window_of(options), target_shape),
        )

    return examples_at


def _matrix(columns: list[npt.NDArray[Any]], scaling: Standardization | None) -> npt.NDArray[np.float32]:
    """Columns as float32 ``[rows, columns]``, standardised."""
    matrix = np.empty((len(columns[0]), len(columns)), np.float32)
    with np.errstate(over="ignore"):  # of rows that are not valid
        for index, values in enumerate(columns):
            matrix[:, index] = (
                values if scaling is None else (values.astype(np.float64) - scaling.mean[index]) / scaling.scale[index]
            )
    return matrix


def _other_series(table: Table, name: str, roles: Roles, options: DataOptions) -> Series:
    """The rows of another table, with the columns of the training rows."""
    try:
        free = replace(options, ignore=(), kinds=(), split="auto")
        return order_series(table, replace(free, features=roles.inputs, target=roles.targets))
    except AccelError as error:
        raise DataError(f"{name}: {error}") from error


def _check_count(windows: int, name: str, series: Series, options: DataOptions) -> None:
    if not windows:
        words = f"windows of {options.window} rows and {options.horizon} to predict"
        longest = f"{series.lengths.max():,} rows"
        raise DataError(
            f"{name} has no {words}: the longest series has {longest}, {(~series.valid).sum():,} rows are invalid"
        )


def _notes(splits: list[Split], options: DataOptions) -> Iterator[str]:
    counts = ", ".join(f"{len(split):,} {name}" for split, name in zip(splits, _NAMES, strict=True) if len(split))
    yield f"windows of {options.window} rows, and {options.horizon} to predict: {counts}; no row is in two splits"
    if not options.target:
        yield "no target is given: all columns of the inputs are predicted"


class _Windows(LazyRows):
    """Consecutive rows of a matrix, one window for each example.

    Args:
        values: Rows of the series, ``[rows, columns]``.
        starts: First row of each example's window, ``[examples]``.
        shape: Shape of an example: a window, ``[length, columns]``, or another array of the same values.
    """

    def __init__(self, values: npt.NDArray[Any], starts: npt.NDArray[np.integer[Any]], shape: tuple[int, ...]) -> None:
        self.shape = (len(starts), *shape)
        self.dtype = values.dtype
        # Copying windows of the flat matrix is several times as fast as indexing each of their rows.
        self._windows = np.lib.stride_tricks.sliding_window_view(values.reshape(-1), int(np.prod(shape)))
        self._starts = starts * values.shape[1]

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
        """Copy some examples, ``[len(rows), *shape]``."""
        windows: npt.NDArray[Any] = self._windows[self._starts[rows]]
        return windows.reshape(len(rows), *self.shape[1:])


def window_starts(run: npt.NDArray[np.integer[Any]], span: int) -> npt.NDArray[np.intp]:
    """First rows of all windows that are within one run of rows.

    Args:
        run: Number of the run that each row belongs to, ascending; negative for rows that no window may have.
        span: Rows of an example, its horizon included.
    """
    last = run[span - 1 :]
    return np.flatnonzero((run[: len(last)] == last) & (last >= 0))
