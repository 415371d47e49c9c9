"""Pages with a table below a line about the whole: their base, and outputs that cannot be interpreted."""

from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from accel_engine.words import numbers
from accel_tui.widgets.table import Table
from accel_tui.widgets.text_table import TextRow, TextTable


class TablePage(Vertical):
    """A table below a line; subclasses fill both from a report."""

    DEFAULT_CSS = "TablePage { height: 1fr; & > Static { height: auto; } }"

    report: reactive[Any] = reactive(None, repaint=False)
    """Report of the last validation."""

    step: reactive[int] = reactive(0, repaint=False)
    """The step of the validation."""

    def make_table(self) -> Table[Any]:
        """The table, still empty."""
        raise NotImplementedError

    def show_report(self) -> None:
        """Fill the line and the table; there may be no report."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        yield Static(markup=False)
        yield self.make_table()

    def on_mount(self) -> None:
        """Show the report that was set before."""
        self.show_report()

    def watch_report(self) -> None:
        if self.is_mounted:
            self.show_report()


class OutputList(TablePage):
    """A row per output: its name, dtype and shape."""

    BINDING_GROUP_TITLE = "Outputs"

    def make_table(self) -> TextTable:
        return TextTable()

    def show_report(self) -> None:
        """Show the number of examples, and the outputs."""
        shapes = self.report.shapes if self.report else ()
        rows = [TextRow(number, (name or "output", spec)) for number, (name, spec) in enumerate(shapes)]
        self.query_one(TextTable).show_texts(("output", "dtype and shape"), rows)
        if self.report:
            words = f"outputs of {numbers.counted(self.report.examples, 'example')}"
            self.query_one(Static).update(
                Content.assemble((words, "bold"), (f" after step {self.step:,}", "$text-muted"))
            )
