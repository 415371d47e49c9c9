"""A column of a table as NumPy arrays; without TensorFlow."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.column_format import ColumnFormat


@dataclass(frozen=True, slots=True, eq=False)
class TableColumn:
    """A column of a table.

    Attributes:
        name: Its name, unique in its file.
        kind: One of :data:`~accel_engine.data.tables.column_names.KINDS`; ``key`` for numbers or names of the rows,
            ``empty`` if all values are missing, ``other`` for lists, bytes and so on.
        values: One value per row: float64 with NaN for numbers; seconds since 1970 as float64 with NaN for dates;
            otherwise an object array of texts with ``None``.
        missing: Number of missing values.
        categories: The different texts, sorted, of a category or a boolean; empty for other kinds.
        truth_words: The words for false and true of categories that are those two; empty for others.
        as_spelled: See :class:`~accel_engine.data.column_format.ColumnFormat`.
        integers: Whether all numbers are whole.
        date_format: How dates were written.
        notes: Notes for the user.
    """

    name: str
    kind: str
    values: npt.NDArray[Any]
    missing: int
    categories: tuple[str, ...] = ()
    truth_words: tuple[str, ...] = ()
    as_spelled: bool = False
    integers: bool = False
    date_format: str = ""
    notes: tuple[str, ...] = ()

    @property
    def format(self) -> ColumnFormat:
        """How it was read."""
        is_numbered = self.kind == "key" and self.values.dtype != object
        kind = "number" if is_numbered else self.kind
        return ColumnFormat(self.name, kind, self.date_format, self.truth_words, self.as_spelled)

    @property
    def truths(self) -> npt.NDArray[np.float64]:
        """1 for true, 0 for false, NaN where there is neither, ``[rows]``."""
        found = np.full(len(self.values), np.nan)
        for number, word in enumerate(self.truth_words):
            found[self.values == word] = number
        return found

    @property
    def missing_rows(self) -> npt.NDArray[np.bool_]:
        """Whether each value is missing, ``[rows]``."""
        if self.values.dtype != object:
            return np.asarray(np.isnan(self.values))
        return np.asarray(np.equal(self.values, np.array(None, object)), bool)
