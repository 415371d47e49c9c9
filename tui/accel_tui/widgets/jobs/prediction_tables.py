"""Predictions as tables, with a bar for each probability."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Label

from accel_engine.requests.predict import ExamplePredictions
from accel_engine.text import printable_line
from accel_engine.words.numbers import percent
from accel_tui.predictions.rows import PredictionTable, most_examples, prediction_tables, problem_rows
from accel_tui.widgets.text_table import TextRow, TextTable

MOST_ROWS = 1000
"""The most rows of a table; all are saved."""

_WIDEST = 200  # cells of a column

BAR_WIDTH = 10
"""Cells of the bar of a probability of 1."""


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table as it is shown.

    Attributes:
        title: What is above it; empty for nothing.
        header: The titles of the columns.
        rows: The rows.
    """

    title: str
    header: tuple[str, ...]
    rows: list[TextRow]


def shown_tables(found: ExamplePredictions, top: int) -> list[ShownTable]:
    """A table for each output, and one for the examples without a prediction; may take long.

    Args:
        found: The predictions.
        top: Number of the most probable classes.
    """
    most = most_examples(found, MOST_ROWS)
    predicted = prediction_tables(found, top, most) if found.readable else ()
    tables = [ShownTable(each.output, each.header, _rows(each)) for each in predicted]
    if problems := problem_rows(found, MOST_ROWS):
        rows = [TextRow(number, texts, "error") for number, texts in enumerate(problems)]
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
        & TextTable { height: auto; max-height: 100%; margin: 0 0 1 0; scrollbar-gutter: auto; }
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
            table = TextTable()
            table.show_texts(each.header, each.rows, _WIDEST)
            yield table


def _rows(table: PredictionTable) -> list[TextRow]:
    """The rows, with a bar beside the probability of a class."""
    rows = [list(map(printable_line, row)) for row in table.rows]
    if table.chances:
        place = table.header.index("PROBABILITY")
        for row, chance in zip(rows, table.chances, strict=True):
            row[place] = f"{percent(chance, 1):>6} {bar(chance)}"
    return [TextRow(number, tuple(row)) for number, row in enumerate(rows)]


def bar(share: float) -> str:
    """A bar for a share from 0 to 1, in half cells."""
    halves = round(2 * BAR_WIDTH * min(max(share, 0.0), 1.0))
    return ("━" * (halves // 2) + "╸" * (halves % 2)).ljust(BAR_WIDTH)
