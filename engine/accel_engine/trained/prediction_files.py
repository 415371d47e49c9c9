"""Checks before TensorFlow starts whether files can have examples for a run's model."""

from collections.abc import Sequence
from pathlib import Path

from accel_engine.data.file_kinds import AUDIO_SUFFIXES, IMAGE_SUFFIXES
from accel_engine.data.tables.table_file import SUFFIXES as TABLES
from accel_engine.data.tables.table_file import read_cells
from accel_engine.errors import UsageError
from accel_engine.run.diagnostics import DataFormat
from accel_engine.words import numbers

ARRAYS = (".npz", ".npy")

SUFFIXES = {
    "table": TABLES,
    "series": (*TABLES, *ARRAYS),
    "text": (".txt", *TABLES, *ARRAYS),
    "audio": (*AUDIO_SUFFIXES, *ARRAYS),
    "images": (*IMAGE_SUFFIXES, *ARRAYS),
}
"""The suffixes of files with examples, by the kind of an example; arrays for all others."""


def check_example_files(run: str, form: DataFormat, files: Sequence[Path]) -> None:
    """Check that each file has examples for a run's model.

    Args:
        run: The run's id.
        form: The form of its data.
        files: Existing files.

    Raises:
        UsageError: Another kind of file is needed, or a table lacks a column.
        DataError: A table cannot be read.
    """
    suffixes = SUFFIXES.get(form.kind, ARRAYS)
    for path in files:
        if path.suffix.lower() not in suffixes:
            raise UsageError(
                f"{path.name} has no examples for run {run}: its data is {form.kind} ({', '.join(suffixes)})"
            )
        needed = [column.name for column in form.table.columns] if form.table else []
        needed = list(form.feature_names) if form.kind == "text" else needed
        if path.suffix.lower() in TABLES and needed:
            given = read_cells(path, skip_invalid=True, limit=1).table.column_names
            lacking = [name for name in needed if name not in given]
            if lacking:
                noun = numbers.plural(len(lacking), "column")
                raise UsageError(
                    f"{path.name} has no {noun} {', '.join(lacking)}, which run {run} needs; it has {', '.join(given)}"
                )
