"""Reads what other tools recorded, and writes it as runs: TensorBoard's event files, W&B's offline runs, CSV files."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from accel_engine.errors import DataError, RunError, UsageError
from accel_engine.imported_runs import csv_files, tensorboard_logs, wandb_runs
from accel_engine.imported_runs.csv_files import ColumnNames
from accel_engine.imported_runs.source_run import RunSource, SourceRun
from accel_engine.imported_runs.write_run import valid_tag, write_imported
from accel_engine.run.runs.listing import list_runs
from accel_engine.run.store.meta import ImportSource
from accel_engine.user_paths import exists, is_directory, is_file, resolved_path, user_path

_LOOKED_FOR = "TensorBoard event files (*tfevents*) and W&B offline runs (*.wandb)"


def find(path: Path, columns: ColumnNames | None = None) -> list[RunSource]:
    """Find the runs of other tools in a directory, or in a file.

    Args:
        path: The directory or file.
        columns: The columns of a CSV file that the user names.

    Raises:
        UsageError: There is nothing to import, or columns are named of what is not a CSV file.
    """
    path = resolved_path(user_path(path))
    if not exists(path):
        raise UsageError(f"{path} does not exist")
    if path.suffix.lower() in csv_files.SUFFIXES and is_file(path):
        return csv_files.find(path, columns or ColumnNames())
    if columns and columns != ColumnNames():
        raise UsageError(f"--step and --epoch name columns of a CSV file; {path} is not one")
    if is_directory(path):
        found = [*tensorboard_logs.find(path), *wandb_runs.find(path)]
        if not found:
            has_tables = any(each.suffix.lower() in csv_files.SUFFIXES for each in path.iterdir())
            hint = "; name its CSV files to import them" if has_tables else ""
            raise UsageError(f"nothing to import in {path}: it has no {_LOOKED_FOR.replace(' and ', ' and no ')}{hint}")
        return found
    if tensorboard_logs.is_event_file(path.name):
        return tensorboard_logs.find(path)
    if path.suffix == wandb_runs.SUFFIX:
        return wandb_runs.find(path)
    raise UsageError(f"cannot import {path}: give {_LOOKED_FOR}, or a .csv or .tsv file")


def imported_before() -> dict[ImportSource, str]:
    """What is imported already, with the id of its newest run."""
    return {run.info.source: run.id for run in reversed(list_runs()) if run.info and run.info.source}


def import_run(
    source: RunSource,
    name: str = "",
    tags: Sequence[str] = (),
    *,
    again: bool = False,
    before: dict[ImportSource, str] | None = None,
) -> tuple[str, SourceRun]:
    """Import a run.

    Args:
        source: What :func:`find` has found.
        name: Its name; the one in the source by default.
        tags: Tags to add to those in the source.
        again: Whether to import what is imported already.
        before: What :func:`imported_before` has returned, to which this run is added; read by default.

    Returns:
        Its id, and what was read.

    Raises:
        DataError: The source cannot be read, or has no values.
        RunError: The run is imported already, or cannot be written.
        UsageError: A tag is invalid, or a named column does not exist.
    """
    try:
        origin = ImportSource(str(source.path), source.format, _fingerprint(source.files))
        before = imported_before() if before is None else before
        if origin in before and not again:
            raise RunError(f"{source.path} is already imported as {before[origin]}; to import it again, add --again")
        written = max(file.stat().st_mtime for file in source.files)
        run = source.read()
    except OSError as error:
        raise DataError(f"cannot read {error.filename or source.path}: {error.strerror or error}") from error
    if not run.series and not run.validations and not run.media:
        raise DataError("; ".join([f"{source.path} has no values to import", *run.notes]))
    run.name = name or run.name
    run.tags = (*filter(None, map(valid_tag, run.tags)), *tags)
    before[origin] = write_imported(run, origin, written)
    return before[origin], run


def _fingerprint(files: Sequence[Path]) -> str:
    """A checksum of the contents of files."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:32]
