"""Describes the windows of time series before they are read; without TensorFlow."""

from dataclasses import replace

from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.series.series_columns import SeriesColumns, example_shapes
from accel_engine.data.series.series_parts import span_of, window_counts
from accel_engine.data.splits import without_shares
from accel_engine.data.structure import ArraySpec, Batch


def describe_windows(
    entry: DatasetEntry,
    columns: SeriesColumns,
    rows: int | None,
    options: DataOptions,
    *,
    validation_rows: int = 0,
    test_rows: int = 0,
) -> DatasetEntry:
    """Complete an entry with shapes, and with numbers of windows where the number of rows tells them.

    Args:
        entry: The entry of the file.
        columns: What the columns are used for.
        rows: Number of rows; ``None`` if it is unknown.
        options: The plan's window, horizon and split.
        validation_rows: Number of rows of separate validation data; 0 if there is none.
        test_rows: Number of rows of separate test data; 0 if there is none.

    Raises:
        PlanError: The split does not fit a series, or there are too few rows.
    """
    options = without_shares(options, validation=validation_rows > 0, test=test_rows > 0)
    inputs, targets = example_shapes(columns, options)
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
        examples=examples,
        validation_examples=validation_examples,
        test_examples=test_examples,
    )
