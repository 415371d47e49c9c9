"""The columns of time series: chosen, checked, and in the order of time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import DataOptions, or_skip
from accel_engine.data.roles import Roles, check_named_columns, choose_roles
from accel_engine.errors import DataError, FieldValue, join_words
from accel_engine.words import numbers

_LARGEST = float(np.finfo(np.float32).max)

_TOLERANCE = 0.1
"""Relative difference from the usual step up to which a step is regular, as months of 28 to 31 days are."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One or several time series, one after another."""

    values: Mapping[str, npt.NDArray[Any]]
    """The numbers of each column that is used, ``[rows]`` each."""
    roles: Roles
    """The roles of the columns."""
    lengths: npt.NDArray[np.intp]
    """Number of rows of each series, ``[series]``."""
    valid: npt.NDArray[np.bool_]
    """Whether all numbers of a row are finite as float32, ``[rows]``."""
    order: npt.NDArray[np.intp]
    """Place of each row in the table, ``[rows]``; rows that repeat a time are left out."""
    notes: tuple[str, ...]
    """Notes for the user."""
    changes: tuple[Change, ...]
    """What is changed."""


def order_series(table: Mapping[str, npt.NDArray[Any]], options: DataOptions) -> Series:
    """Choose columns of a table, check them, and put their rows in order.

    Args:
        table: Arrays ``[rows]`` by name. Missing numbers are NaN.
        options: The plan's columns, and what is done with invalid rows.

    Raises:
        DataError: A column cannot be used, or a row is invalid and the plan does not skip such rows.
        PlanError: There is no such column.
    """
    roles = choose_series_roles(tuple(table), options)
    for name in roles.names:
        check_kind(name, table[name].dtype, options)
    rows = len(table[roles.inputs[0]])
    group = np.zeros(rows, np.intp)
    if options.group:
        names = table[options.group]
        # None and NaN cannot be sorted.
        group = np.unique(names.astype(str) if names.dtype.kind == "O" else names, return_inverse=True)[1]
    order, repeated, problems, notes = np.argsort(group, kind="stable"), [], [], []
    if options.time:
        times = convert_times(table[options.time], options.time)
        order = np.lexsort((times, group))
        if not options.group and (np.diff(order) != 1).any():
            notes.append(f"rows were put in the order of {options.time!r}")
        same = np.diff(group[order]) == 0
        notes += _describe_steps(times[order], same, options.time)
        first = np.append(True, ~(same & (times[order][1:] == times[order][:-1])))
        hint = "" if options.group else f" ({FieldValue('group')} names the column that tells series apart)"
        repeated = _count(~first, order, f"{options.time!r} repeats a time{hint}")
        order = order[first]
    values = {name: table[name][order] for name in roles.names}
    valid = np.ones(len(order), bool)
    for name, column in values.items():
        finite = _finite(column)
        problems += _count(~finite, order, f"{name!r} has no finite number")
        valid &= finite
    left_out = {"rows that repeat a time": repeated, "windows with invalid rows": problems}
    changes = tuple(Change("left out", what, detail="; ".join(why)) for what, why in left_out.items() if why)
    if changes and options.invalid_examples != "skip":
        raise or_skip(DataError("; ".join(repeated + problems)), " and ".join(each.what for each in changes))
    return Series(values, roles, np.bincount(group[order]), valid, order, tuple(notes), changes)


def choose_series_roles(names: Sequence[str], options: DataOptions) -> Roles:
    """Choose columns as a plan says.

    By default, the inputs are all columns but the ignored ones, times, groups, weights and splits. The
    columns to predict are inputs, too, as a forecast needs their past; without a target, all inputs are predicted.

    Args:
        names: Names of all columns.
        options: The plan's target, features, ignored columns, time and group.

    Raises:
        PlanError: There is no such column.
        DataError: No column is left for the inputs.
    """
    check_named_columns(options, names)
    roles = choose_roles(names, replace(options, target=()), (), weight="")
    return replace(roles, targets=options.target or roles.inputs)


def check_kind(name: str, dtype: np.dtype[Any], options: DataOptions) -> None:
    """Check that a column has numbers.

    Raises:
        DataError: The column has dates, durations, complex numbers or texts.
    """
    if dtype.kind in "buif":
        return
    kind = {"M": "dates", "m": "durations", "c": "complex numbers"}.get(dtype.kind, "text")
    has = f"column {name!r} has {kind}, but a time series has numbers: "
    for field in ("target", "features"):
        if name in getattr(options, field):
            raise DataError(join_words((f"{has}choose others with ", FieldValue(field))))
    words: list[str | FieldValue] = [
        f"{has}leave it out with ",
        FieldValue("ignore", ",".join((*options.ignore, name))),
    ]
    if not options.time:
        words += [", or order the rows by it with ", FieldValue("time", name)]
    if not options.group and kind == "text":
        words += [", or tell series apart by it with ", FieldValue("group", name)]
    raise DataError(join_words(words))


def _finite(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether numbers are finite as float32."""
    if values.dtype.kind != "f":
        return np.ones(len(values), bool)
    return np.abs(values) <= _LARGEST


def _count(invalid: npt.NDArray[np.bool_], order: npt.NDArray[np.intp], problem: str) -> list[str]:
    """A problem with the number of rows that have it; empty if none has."""
    rows = order[invalid]
    return [f"{problem} in {len(rows):,} of {len(order):,} rows, first in row {rows.min() + 1:,}"] if len(rows) else []


def convert_times(values: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Check a column of times, and convert texts with dates.

    Args:
        values: Dates, numbers, or texts with dates in ISO 8601, ``[rows]``.
        name: The column's name.

    Returns:
        ``datetime64`` or numbers, ``[rows]``.

    Raises:
        DataError: A value is missing, or is neither a date nor a number.
    """
    if values.dtype.kind not in "Mbuif":
        try:
            values = values.astype("datetime64[us]")
        except (ValueError, TypeError) as error:
            wrong = next(str(value) for value in values if not _is_date(value))
            texts = f"column {name!r} has values such as {wrong!r}, which are not dates in ISO 8601"
            remedy = (
                "; if the rows are in order, replace ",
                FieldValue("time", name),
                " by ",
                FieldValue("ignore", name),
            )
            raise DataError(join_words((texts, *remedy))) from error
    missing = np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values)
    if missing.any():
        first = int(np.argmax(missing)) + 1
        raise DataError(f"column {name!r} has no time in {missing.sum():,} rows, first in row {first:,}")
    return values


def _is_date(value: Any) -> bool:
    """Whether NumPy can convert a single value to a date."""
    try:
        np.array([value]).astype("datetime64[us]")
    except (ValueError, TypeError):
        return False
    return True


def _describe_steps(times: npt.NDArray[Any], follows: npt.NDArray[np.bool_], name: str) -> tuple[str, ...]:
    """A note on steps of time that differ from the usual one, if there are any.

    Args:
        times: Result of :func:`convert_times`, in order, ``[rows]``.
        follows: Whether each row but the first is of the same series as the one before, ``[rows - 1]``.
        name: The column's name.
    """
    dates = times.dtype.kind == "M"
    # Numbers are subtracted as float64, as unsigned ones and bool have no negative differences.
    steps = np.diff(times) / np.timedelta64(1, "s") if dates else np.diff(times.astype(np.float64))
    steps = steps[follows & (steps > 0)]
    usual = float(np.median(steps)) if len(steps) else 0.0
    odd = steps[np.abs(steps - usual) > _TOLERANCE * usual]
    if not len(odd):
        return ()
    typical, least, most = (
        numbers.span(value, 3) if dates else f"{value:g}" for value in (usual, odd.min(), odd.max())
    )
    count = f"{len(odd):,} of {len(steps):,} steps of {name!r} differ from the usual {typical} ({least} to {most})"
    return (f"{count}; windows count rows, whatever the steps",)
