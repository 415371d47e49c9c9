"""Divides the rows of a time series into parts for training, validation and test, in order, and describes the windows.

An example spans some rows: its window, and the horizon that follows. All of them are in one part, so that training
never sees a row that validation uses, be it as an input or as a target.
"""

from dataclasses import replace
from typing import NamedTuple

from accel_engine.data.changes import Change
from accel_engine.data.data_options import DataOptions
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.roles import Roles
from accel_engine.data.source import DatasetEntry
from accel_engine.data.splits import choose_split, has_other_validation, split_counts, without_shares
from accel_engine.data.structure import ArraySpec, Batch
from accel_engine.errors import FieldValue, PlanError

STANDARDIZED = Change(
    "standardized", "all columns", detail="also those to predict, by mean and standard deviation of the training rows"
)
"""The note on windows that are standardised."""


class Counts(NamedTuple):
    """A number of rows, or of windows, in each part."""

    train: int
    validation: int
    test: int


def window_of(options: DataOptions) -> int:
    """Rows of a window.

    Raises:
        PlanError: The plan has no window.
    """
    if options.window is None:
        raise PlanError("window", "", "a time series needs a window, such as 24")
    return options.window


def span_of(options: DataOptions) -> int:
    """Rows of one example.

    Raises:
        PlanError: The plan has no window.
    """
    return window_of(options) + options.horizon


def parts_of(options: DataOptions) -> Counts:
    """Which parts there are, as 0 or 1.

    Raises:
        PlanError: The split does not fit a time series.
    """
    kind = choose_split(options, ordered=True)
    validation = kind != "none" and options.validation_split > 0 and not has_other_validation(options)
    return Counts(1, int(validation), int(options.test_split > 0))


def divide_rows(rows: int, options: DataOptions) -> Counts | None:
    """Number of rows in each part of a series. The shares of validation and test are shares of the windows.

    Args:
        rows: Rows of the series.
        options: The plan's window, horizon and split.

    Returns:
        ``None`` if the rows are too few for a window in each part.

    Raises:
        PlanError: The split does not fit a time series, or its shares leave nothing to train on.
    """
    span, parts = span_of(options), parts_of(options)
    windows = rows - sum(parts) * (span - 1)
    if windows < sum(parts):
        return None
    try:
        validation, test = split_counts(windows, options)
    except PlanError:
        if options.validation_split + options.test_split >= 1:
            raise
        return None  # by rounding up to 1
    counts = (windows - validation - test, validation, test)
    return Counts(*(count + span - 1 if count else 0 for count in counts))


def window_counts(rows: int, options: DataOptions) -> Counts:
    """Number of windows in each part of a series without groups and missing values.

    Raises:
        PlanError: The split does not fit the series.
    """
    divided = divide_rows(rows, options)
    if divided is None:
        raise too_few_rows(rows, options)
    return Counts(*(max(0, count - span_of(options) + 1) for count in divided))


def too_few_rows(rows: int, options: DataOptions) -> PlanError:
    """The error if no series has enough rows for a window in each part; the longest has ``rows``."""
    parts, span = sum(parts_of(options)), span_of(options)
    each = f"needs {options.window} rows and {options.horizon} to predict"
    if parts == 1:
        return PlanError("window", options.window, f"{each}, but the longest series has {rows:,} rows")
    least = f"in each of {parts} parts, {parts * span:,} rows at least, but the longest series has {rows:,}"
    return PlanError("window", options.window, f"{each} {least}; use fewer or ", FieldValue("split", "none"))


def example_shapes(roles: Roles, options: DataOptions) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of one example's inputs and targets.

    Inputs are ``[window, columns]``. Targets are ``[horizon]`` for one column, ``[columns]`` for several columns and a
    horizon of 1, and ``[horizon, columns]`` otherwise.
    """
    count, horizon = len(roles.targets), options.horizon
    targets = (horizon,) if count == 1 else (count,) if horizon == 1 else (horizon, count)
    return (window_of(options), len(roles.inputs)), targets


def describe_windows(
    entry: DatasetEntry,
    roles: Roles,
    rows: int | None,
    options: DataOptions,
    *,
    validation_rows: int = 0,
    test_rows: int = 0,
) -> DatasetEntry:
    """Complete an entry with shapes, and with numbers of windows where the number of rows tells them.

    Args:
        entry: The entry of the file.
        roles: What the columns are used for.
        rows: Number of rows; ``None`` if it is unknown.
        options: The plan's window, horizon and split.
        validation_rows: Number of rows of separate validation data; 0 if there is none.
        test_rows: Number of rows of separate test data; 0 if there is none.

    Raises:
        PlanError: The split does not fit a series, or there are too few rows.
    """
    options = without_shares(options, validation=validation_rows > 0, test=test_rows > 0)
    inputs, targets = example_shapes(roles, options)
    examples = validation_examples = test_examples = None
    if rows is not None and not options.group:  # otherwise only reading tells where each series ends
        examples, validation_examples, test_examples = window_counts(rows, options)
        if validation_rows:
            validation_examples = max(0, validation_rows - span_of(options) + 1)
        elif options.validation_data:
            validation_examples = None
        if test_rows:
            test_examples = max(0, test_rows - span_of(options) + 1)
    return replace(
        entry,
        kind="series",
        task="regression",
        shape=inputs,
        classes=0,
        spec=Batch(ArraySpec(inputs, "float32"), ArraySpec(targets, "float32")),
        value_range=ValueRange(),
        changes=(STANDARDIZED,) if options.scale == "auto" else (),
        examples=examples,
        validation_examples=validation_examples,
        test_examples=test_examples,
    )
