"""The columns of a CSV file: numbers, times or texts."""

import math
import re
from array import array
from datetime import datetime

import numpy as np

from accel_engine.imported_runs.source_run import Floats, Steps

_MISSING = frozenset({"", "na", "n/a", "none", "null", "-"})

_OTHER_NAN = re.compile(r"[+-]?(?:nan\(\w*\)|1\.#(?:ind|[qs]nan)\d*)", re.IGNORECASE)
"""NaN as C libraries write it, which ``float`` does not read."""

_INFINITY = re.compile(r"([+-]?)(?:inf(?:inity)?|1\.#inf\d*|∞)", re.IGNORECASE)
"""All spellings of infinity; the first group is the sign."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:e[+-]?\d+)?", re.IGNORECASE)


class CsvColumn:
    """The numbers of a column, with the row of each, and the first cell that is not a number.

    Attributes:
        too_large: Number of finite values too large for float64, which are read as infinite.
    """

    _wanted = "a number"

    def __init__(self) -> None:
        self._rows, self._values = array("q"), array("d")
        self._others, self._decimal_commas = 0, 0
        self._first_other = (0, "")  # its line, and its text
        self.too_large = 0

    def add(self, row: int, line: int, cell: str) -> None:
        """Add a cell.

        Args:
            row: The index of the row.
            line: The line in the file, for errors.
            cell: The text of the cell.
        """
        if cell.lower() in _MISSING:
            return
        try:
            value = self._number(cell)
        except ValueError:
            self._first_other = self._first_other if self._others else (line, cell)
            self._others += 1
            self._decimal_commas += bool(_DECIMAL_COMMA.fullmatch(cell))
            return
        self.too_large += math.isinf(value) and not _INFINITY.fullmatch(cell)
        self._rows.append(row)
        self._values.append(value)

    def _number(self, cell: str) -> float:
        """Parse the number in a cell.

        Raises:
            ValueError: The cell is not a number.
        """
        return parse_number(cell)

    @property
    def is_text(self) -> bool:
        """Whether most cells are texts."""
        texts = self._others - self._decimal_commas
        return texts > len(self._rows) + self._decimal_commas

    def problem(self) -> tuple[int, str, str] | None:
        """Line, text and problem of the first cell that is not a number, if most cells are numbers."""
        if not self._others or self.is_text:
            return None
        line, cell = self._first_other
        if _DECIMAL_COMMA.fullmatch(cell):
            return line, cell, "has a decimal comma: replace the decimal commas with points"
        return line, cell, f"is not {self._wanted}; correct the cell, leave it empty, or remove the column"

    @property
    def rows(self) -> Steps:
        """The rows with a value."""
        return np.frombuffer(self._rows, np.int64)

    @property
    def values(self) -> Floats:
        """The values of these rows."""
        return np.frombuffer(self._values, np.float64)

    def by_row(self, rows: int) -> Floats:
        """The value of each row, NaN where there is none."""
        found = np.full(rows, math.nan)
        found[self.rows] = self.values
        return found


class TimeColumn(CsvColumn):
    """A column of Unix times, in seconds or milliseconds as in the file, or of ISO dates, as Unix seconds.

    A date without a time zone is in this machine's.
    """

    _wanted = "a time: a date such as 2026-11-23T10:00:00, or seconds since 1970"

    def _number(self, cell: str) -> float:
        if "-" in cell.lstrip("-"):
            try:
                return datetime.fromisoformat(cell).timestamp()
            except (ValueError, OverflowError):
                pass
        return super()._number(cell)


def parse_number(text: str) -> float:
    """Parse a number, NaN or infinity, in any usual spelling.

    Raises:
        ValueError: The text is not a number.
    """
    try:
        return float(text)
    except ValueError:
        if _OTHER_NAN.fullmatch(text):
            return math.nan
        if found := _INFINITY.fullmatch(text):
            return float(f"{found[1]}inf")
        raise


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        parse_number(text)
    except ValueError:
        return False
    return True
