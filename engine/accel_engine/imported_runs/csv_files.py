"""Reads a CSV file with a header as a run, a row per step or epoch."""

import csv
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

import numpy as np

from accel_engine.errors import DataError, UsageError
from accel_engine.imported_runs.csv_columns import CsvColumn, TimeColumn, is_number, parse_number
from accel_engine.imported_runs.logged_epochs import ended_epochs
from accel_engine.imported_runs.source_run import (
    Floats,
    ImportedMetric,
    RunSource,
    SourceRun,
    Steps,
    ValueCollector,
    collected,
)
from accel_engine.tensorboard.run_log import THROUGHPUT_TAG
from accel_engine.text import suggestion
from accel_engine.words import numbers

FORMAT = "CSV"

SUFFIXES = (".csv", ".tsv")

_STEP_NAMES = (
    "step",
    "global_step",
    "_step",
    "trainer/global_step",
    "iteration",
    "iter",
    "steps",
    "iterations",
    "batch",
)
_EPOCH_NAMES = ("epoch", "epochs")
_TIME_NAMES = ("time", "timestamp", "_timestamp", "wall_time", "datetime", "date")
"""Names of columns, the preferred ones first."""

_DELIMITERS = ";\t,"

_YEAR_1973, _MILLISECONDS = 1e8, 1e11
"""Numbers below are not dates in Unix seconds; numbers above are in milliseconds."""

_LONGEST_CELL = 1 << 17  # characters; where a quote does not close, the rest of a file is one cell

_LARGEST_WHOLE = 1 << 53  # up to which float64 has all whole numbers


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """The columns that the user names; empty ones are found by their usual names."""

    step: str = ""
    """The number of the step."""
    epoch: str = ""
    """The number of the epoch."""


def find(file: Path, columns: ColumnNames) -> list[RunSource]:
    """The run of a file."""
    return [RunSource(file, FORMAT, (file,), partial(_read, file, columns))]


def _read(file: Path, columns: ColumnNames) -> SourceRun:
    """Read a run.

    Raises:
        DataError: The file is not a table with a header, or a value is invalid.
        UsageError: A named column does not exist.
        OSError: The file cannot be read.
    """
    limit = csv.field_size_limit(_LONGEST_CELL)  # which is the process', and other readers have another one
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            return _Table(file, stream, columns).run
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not text in UTF-8: {error.reason} at byte {error.start:,}") from error
    finally:
        csv.field_size_limit(limit)


class _Table:
    """Reads the rows of a file to a run."""

    def __init__(self, file: Path, stream: TextIO, columns: ColumnNames) -> None:
        first = stream.readline()
        stream.seek(0)
        self._lines = csv.reader(stream, delimiter=max(_DELIMITERS, key=first.count))
        self._file = file
        self.run = SourceRun(name=file.stem)
        self._count = 0
        try:
            self._header = self._read_header()
            self._step = self._find("--step", columns.step, _STEP_NAMES)
            self._epoch = self._find("--epoch", columns.epoch, _EPOCH_NAMES)
            self._time = self._find("", "", _TIME_NAMES)
            self._columns = {name: TimeColumn() if name == self._time else CsvColumn() for name in self._header}
            for cells in self._lines:
                if cells:
                    self._add(cells)
        except csv.Error as error:
            raise self._error(str(error)) from error
        self._finish()

    def _error(self, problem: str, line: int = 0) -> DataError:
        return DataError(f"{self._file}, line {max(line or self._lines.line_num, 1):,}: {problem}")

    def _read_header(self) -> list[str]:
        names = [name.strip() for name in next(self._lines, [])]
        if not any(names):
            raise self._error("the first line must have the names of the columns")
        names = [name or f"column {number}" for number, name in enumerate(names, 1)]
        if repeated := [name for name, count in Counter(names).items() if count > 1]:
            raise self._error(f"two columns have the name {repeated[0]!r}")
        if all(is_number(name.replace(",", ".")) for name in names):
            raise self._error("the first line must have the names of the columns; it has numbers")
        return names

    def _find(self, option: str, wanted: str, usual: Sequence[str]) -> str:
        """The column that the user names, or else the one with the first of the usual names; empty if there is none."""
        if wanted and wanted not in self._header:
            raise UsageError(f"{option} {wanted}: {self._file} has no such column; {suggestion(wanted, self._header)}")
        by_name = {name.lower(): name for name in self._header}
        return wanted or next((by_name[name] for name in usual if name in by_name), "")

    def _add(self, cells: Sequence[str]) -> None:
        line = self._lines.line_num
        if len(cells) < len(self._header) and next(self._lines, None) is None:
            self.run.notes.append("its last line is incomplete: the writer was interrupted, or still writes it")
            return
        if len(cells) != len(self._header):
            raise self._error(f"{len(cells):,} values, but the header has {len(self._header):,} names", line)
        for name, cell in zip(self._header, cells, strict=True):
            self._columns[name].add(self._count, line, cell.strip())
        if self._step:
            self._check_step(cells[self._header.index(self._step)].strip())
        self._count += 1

    def _check_step(self, cell: str) -> None:
        if not is_number(cell) or not 0 <= parse_number(cell) < _LARGEST_WHOLE or parse_number(cell) % 1:
            raise self._error(f"{cell[:40]!r} in the column {self._step!r} is not the number of a step: 0, 1, 2, ...")

    def _finish(self) -> None:
        """Turn the columns to series, validations and epochs."""
        run, keys = self.run, {self._step, self._epoch, self._time}
        self._check_columns()
        times, epochs = self._times(keys), self._epochs(keys)
        steps = self._steps(epochs)
        collectors = {}
        for name, column in self._columns.items():
            is_speed = name == THROUGHPUT_TAG and self._time in keys  # it follows from the times
            if name not in keys and len(column.rows) and not is_speed:
                collectors[name] = ValueCollector(too_large=column.too_large)
                collectors[name].extend(steps[column.rows], times[column.rows], column.values)
        run.add(collected(collectors, run.notes))
        run.began = float(np.fmin.reduce(times, initial=math.nan))
        run.epochs = ended_epochs(ImportedMetric(steps, times, epochs), run)
        run.times_expected = not self._epoch or bool(self._time)

    def _check_columns(self) -> None:
        """Leave out columns of texts; a few texts among numbers are mistakes."""
        for name, column in self._columns.items():
            if found := column.problem():
                line, cell, problem = found
                raise self._error(f"{cell[:40]!r} in the column {name!r} {problem}", line)
        if texts := [name for name, column in self._columns.items() if column.is_text]:
            self.run.notes.append(f"columns that are not numbers are left out: {numbers.listed(texts)}")
            self._columns |= {name: CsvColumn() for name in texts}

    def _steps(self, epochs: Floats) -> Steps:
        """The step of each row.

        Args:
            epochs: The epoch of each row; NaN if unknown.
        """
        rows = np.arange(self._count)
        if not self._step and np.isfinite(epochs).all() and (np.diff(epochs) == 1).all():
            return rows  # of Keras' CSVLogger
        if not self._step:
            names = ", ".join(_STEP_NAMES[:3])
            self.run.notes.append(f"no column has the step ({names}, or --step COLUMN): the rows are numbered from 0")
            return rows
        steps = self._columns[self._step].values.astype(np.int64)
        falls = np.diff(steps) < 0
        # A run that goes back does not reach a later epoch by that.
        if falls.any() and (self._step.lower() == "batch" or (falls & (np.diff(epochs) > 0)).any()):
            self.run.notes.append(f"the column {self._step!r} starts again in each epoch: the rows are numbered from 0")
            return rows
        return steps

    def _times(self, keys: set[str]) -> Floats:
        """The time of each row; removes the column from ``keys`` if it has no dates."""
        unknown = np.full(self._count, math.nan)
        if not self._time:
            return unknown
        times = self._columns[self._time].by_row(self._count)
        times = np.where(times > _MILLISECONDS, times / 1000, times)
        if not (times > _YEAR_1973).any() or (times > _MILLISECONDS).any():
            keys.discard(self._time)
            return unknown
        return times

    def _epochs(self, keys: set[str]) -> Floats:
        """The epoch of each row; removes the column from ``keys`` if it has other numbers than whole ones."""
        if not self._epoch:
            return np.full(self._count, math.nan)
        epochs = self._columns[self._epoch].by_row(self._count)
        if not (np.isnan(epochs) | (np.abs(epochs) < _LARGEST_WHOLE) & (np.floor(epochs) == epochs)).all():
            keys.discard(self._epoch)
            return np.full(self._count, math.nan)
        return epochs
