"""How a column of a table is read, so that other files are read as the training file was; without TensorFlow."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """A column of the training file.

    Attributes:
        name: Its name.
        kind: As of :class:`accel_engine.data.tables.table_column.TableColumn`.
        date_format: How dates were written; empty for other kinds.
        truth_words: The words for false and true of categories that are those two; empty for others.
        as_spelled: Whether categories differ by trailing zeros alone, so that other files' are taken as spelled.
    """

    name: str
    kind: str
    date_format: str = ""
    truth_words: tuple[str, ...] = ()
    as_spelled: bool = False
