"""How a column of a table is read, so that other files are read as the training file was; without TensorFlow."""

from collections.abc import Iterator
from dataclasses import dataclass

PERCENT = "%"

NO_GROUPS = "none"
"""Instead of the mark between groups of digits, if they are known not to be grouped."""

_MARKS = {",": "commas", ".": "dots", "'": "apostrophes", " ": "spaces", "_": "underscores", NO_GROUPS: "nothing"}


@dataclass(frozen=True, slots=True)
class Notation:
    """How the numbers of a column are written."""

    decimal: str = ""
    """The mark before a fraction, a point or a comma; empty if not known."""
    thousands: str = ""
    """The mark between groups of digits, or :data:`NO_GROUPS`; empty if it is not known."""
    unit: str = ""
    """What stands before or after numbers: a currency, or :data:`PERCENT`; empty for nothing."""
    has_signs: bool = False
    """Whether numbers below zero have a minus sign behind them, or are in parentheses."""

    @property
    def is_plain(self) -> bool:
        """Whether numbers are as programs write them."""
        return self.decimal != "," and not (self.thousands or self.unit or self.has_signs)

    def __str__(self) -> str:
        return ", ".join(self._words()) or "a decimal point"

    def _words(self) -> Iterator[str]:
        if self.decimal == ",":
            yield "decimal commas"
        if self.thousands:
            yield f"{_MARKS[self.thousands]} between thousands"
        if self.unit:
            yield f"{self.unit} left out"
        if self.has_signs:
            yield "signs behind numbers and parentheses as below zero"


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """A column of the training file."""

    name: str
    kind: str
    """Its kind, as in :class:`accel_engine.data.tables.columns.TableColumn`."""
    date_format: str = ""
    """How dates were written; empty for other kinds."""
    truth_words: tuple[str, ...] = ()
    """The words for false and true of categories that are those two; empty for others."""
    as_spelled: bool = False
    """Whether categories differ by trailing zeros alone, so that other files' are taken as spelled."""
    notation: Notation = Notation()
    """How numbers were written."""
    missing: tuple[str, ...] = ()
    """Texts that the plan declares to mean a missing value."""
