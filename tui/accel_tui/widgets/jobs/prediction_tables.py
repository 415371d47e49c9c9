"""Predictions as tables, with a bar for each probability."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Label

from accel_engine.requests.predict import ExamplePredictions
from accel_engine.text import printable_line
from accel_engine.words.numbers import percent
from accel_tui.predictions.rows import PredictionTable, most_examples, prediction_tables, problem_rows

MOST_ROWS = 1000
"""The most rows of a table; all are saved."""

ROWS_AT_ONCE = 50
"""Rows that are added in one go, between which keys are handled."""

TOP = 3
"""Number of the most probable classes that are shown."""

BAR_WIDTH = 10
"""Cells of the bar of a probability of 1."""


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table as it is shown.

    Attributes:
        title: What is above it; empty for nothing.
        header: The titles of the columns.
        rows: The cells of each row, one per column.
    """

    title: str
    header: tuple[str, ...]
    rows: list[list[Text]]


def shown_tables(found: ExamplePredictions) -> list[ShownTable]:
    """A table for each output, and one for the examples without a prediction; may take long."""
    most = most_examples(found, MOST_ROWS)
    predicted = prediction_tables(found, TOP, most) if found.readable else ()
    tables = [ShownTable(each.output, each.header, _rows(each)) for each in predicted]
    if problems := problem_rows(found, MOST_ROWS):
        rows = [[Text(name), Text(why, style="red")] for name, why in problems]
        tables.append(ShownTable("Not predicted", ("EXAMPLE", "REASON"), rows))
    return tables


class PredictionTables(VerticalScroll):
    """Tables one below the other.

    Args:
        tables: The tables.
    """

    DEFAULT_CSS = """
    PredictionTables {
        & Label { text-style: bold; }
        & DataTable { height: auto; max-height: 100%; margin: 0 0 1 0; background: $background; scrollbar-size: 1 1; }
        & DataTable:focus { background-tint: $foreground 0%; }
    }
    """

    def __init__(self, tables: Sequence[ShownTable]) -> None:
        super().__init__(can_focus=False)
        self._tables = tuple(tables)

    def compose(self) -> ComposeResult:
        """Compose the tables."""
        for each in self._tables:
            if each.title:
                yield Label(printable_line(each.title), markup=False)
            yield GrowingTable(each)


class GrowingTable(DataTable[Text]):
    """A table whose rows are added in parts, as Textual measures each cell.

    Args:
        table: The table.
    """

    def __init__(self, table: ShownTable) -> None:
        super().__init__(cursor_type="row")
        self._table = table

    def on_mount(self) -> None:
        """Add the columns and the first rows."""
        self.add_columns(*(Text(printable_line(title)) for title in self._table.header))
        self._add_rows()

    def _add_rows(self) -> None:
        self.add_rows(self._table.rows[self.row_count : self.row_count + ROWS_AT_ONCE])
        if self.row_count < len(self._table.rows):
            self.call_after_refresh(self._add_rows)


def _rows(table: PredictionTable) -> list[list[Text]]:
    """The cells, with a bar beside the probability of a class."""
    rows = [[Text(printable_line(text)) for text in row] for row in table.rows]
    if not table.chances:
        return rows
    place = table.header.index("PROBABILITY")
    for row, chance in zip(rows, table.chances, strict=True):
        row[place] = Text.assemble(f"{percent(chance, 1):>6} ", (bar(chance), "bold"))
    return rows


def bar(share: float) -> str:
    """A bar for a share from 0 to 1, in half cells."""
    halves = round(2 * BAR_WIDTH * min(max(share, 0.0), 1.0))
    return ("━" * (halves // 2) + "╸" * (halves % 2)).ljust(BAR_WIDTH)
