"""How a column of a table is read, so that other files are read as the training file was; without TensorFlow."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """A column of the training file.

    Attributes:
        name: Its name.
        kind: As of :class:`accel_engine.data.tables.columns.TableColumn`.
        date_format: How dates were written; empty for other kinds.
    """

    name: str
    kind: str
    date_format: str = ""
