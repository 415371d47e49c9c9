"""Chooses the columns of a time series: its inputs, and what is predicted."""

from collections.abc import Iterable
from typing import NamedTuple

from accel_engine.data.data_options import DataOptions
from accel_engine.data.series.series_parts import window_of
from accel_engine.errors import PlanError
from accel_engine.text import suggestion


class SeriesColumns(NamedTuple):
    """Names of the columns of the inputs, and of those to predict."""

    inputs: tuple[str, ...]
    targets: tuple[str, ...]


def choose_columns(names: Iterable[str], options: DataOptions) -> SeriesColumns:
    """Choose columns as a plan says.

    By default, the inputs are all columns, those to predict included, as a forecast needs their past. Without a target,
    all columns of the inputs are predicted.

    Args:
        names: Names of all columns.
        options: The plan's target, features, ignored columns, time and group.

    Raises:
        PlanError: There is no such column, or none is left.
    """
    names = tuple(names)
    for field in ("time", "group", "target", "features", "ignore"):
        value = getattr(options, field)
        for name in (value,) if isinstance(value, str) else value:
            if name and name not in names:
                raise PlanError(field, value, f"no column {name!r}; {suggestion(name, names)}")
    unused = {options.time, options.group, *options.ignore}
    inputs = options.features or tuple(name for name in names if name not in unused)
    if not inputs:
        raise PlanError("features", options.features, "no column is left for the inputs")
    return SeriesColumns(inputs, options.target or inputs)


def role_of(name: str, columns: SeriesColumns, options: DataOptions) -> str:
    """The role of a column, for :class:`accel_engine.data.dataset_entry.EntryColumn`."""
    roles = {options.time: "time", options.group: "group", **dict.fromkeys(columns.inputs, "input")}
    return {**roles, **dict.fromkeys(columns.targets, "target")}.get(name, "unused")


def example_shapes(columns: SeriesColumns, options: DataOptions) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of one example's inputs and targets.

    Inputs are ``[window, columns]``. Targets are ``[horizon]`` for one column, ``[columns]`` for several columns and a
    horizon of 1, and ``[horizon, columns]`` otherwise.
    """
    count, horizon = len(columns.targets), options.horizon
    targets = (horizon,) if count == 1 else (count,) if horizon == 1 else (horizon, count)
    return (window_of(options), len(columns.inputs)), targets
