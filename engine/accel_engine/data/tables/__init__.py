"""Reads tables: CSV, TSV, Parquet and JSON lines."""

from typing import TYPE_CHECKING

from accel_engine.data.data_options import Progress
from accel_engine.data.source import DatasetEntry, Source

if TYPE_CHECKING:
    from accel_engine.data.dataset import Dataset


class TableSource(Source):
    """A CSV, TSV, Parquet or JSON lines file, as a matrix of features and its targets, or as windows of its rows.

    The form asks this class what a plan can say of a table before anything is painted: it imports NumPy when it reads.
    """

    is_table = has_columns = may_be_series = takes_window = True

    def describe(self) -> DatasetEntry:
        """Find columns, kinds, classes and counts; a large file's are of its first rows."""
        from accel_engine.data.tables.table import describe_table

        return describe_table(self.entry, self.options)

    def load(self, progress: Progress) -> "Dataset":
        """Read all rows; the matrix is made when it is needed if it does not fit in memory."""
        from accel_engine.data.tables.table import load_table

        return load_table(self.entry, self.options, progress)
