"""Predictions as tables, with a bar for each probability."""

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Label

from accel_engine.launch.example_prediction import ExamplePredictions
from accel_engine.text import printable_line
from accel_tui.predictions.rows import PredictionTable, prediction_tables, problem_rows

MOST_ROWS = 1000
"""The most examples that are shown; all are saved."""

TOP = 3
"""Number of the most probable classes that are shown."""

BAR_WIDTH = 10
"""Cells of the bar of a probability of 1."""


class PredictionTables(VerticalScroll):
    """A table for each output, and one for the examples without a prediction."""

    DEFAULT_CSS = """
    PredictionTables {
        & Label { text-style: bold; }
        & DataTable { height: auto; max-height: 100%; margin: 0 0 1 0; background: $background; scrollbar-size: 1 1; }
        & DataTable:focus { background-tint: $foreground 0%; }
    }
    """

    def __init__(self, found: ExamplePredictions) -> None:
        super().__init__(can_focus=False)
        self._found = found

    def compose(self) -> ComposeResult:
        """Compose the tables."""
        for each in prediction_tables(self._found, TOP, MOST_ROWS) if self._found.readable else ():
            if each.output:
                yield Label(printable_line(each.output), markup=False)
            yield _table(each.header, _rows(each))
        if problems := problem_rows(self._found, MOST_ROWS):
            yield Label("Not predicted")
            yield _table(("EXAMPLE", "REASON"), [[Text(name), Text(why, style="red")] for name, why in problems])


def _table(header: Sequence[str], rows: Sequence[Sequence[Text]]) -> DataTable[Text]:
    table = DataTable[Text](cursor_type="row")
    table.add_columns(*(Text(printable_line(title)) for title in header))
    table.add_rows(rows)
    return table


def _rows(table: PredictionTable) -> list[list[Text]]:
    """The cells, with a bar beside the probability of a class."""
    rows = [[Text(printable_line(text)) for text in row] for row in table.rows]
    if not table.chances:
        return rows
    place = table.header.index("PROBABILITY")
    for row, chance in zip(rows, table.chances, strict=True):
        row[place] = Text.assemble(f"{100 * chance:5.1f}% ", (bar(chance), "bold"))
    return rows


def bar(share: float) -> str:
    """A bar for a share from 0 to 1, in half cells."""
    halves = round(2 * BAR_WIDTH * min(max(share, 0.0), 1.0))
    return ("━" * (halves // 2) + "╸" * (halves % 2)).ljust(BAR_WIDTH)
