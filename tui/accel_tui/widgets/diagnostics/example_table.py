"""Samples as rows of a table: their targets and predictions, and the columns of the input."""

from typing import ClassVar

from rich.style import Style
from rich.text import Text as RichText
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import DataTable, Static

from accel_engine.run.diagnostics import Example
from accel_engine.run.diagnostics.views import Row
from accel_engine.words import numbers
from accel_tui.formatting.text import shorten
from accel_tui.widgets.diagnostics.examples import Examples, captions, is_correct, leaves
from accel_tui.widgets.text_table import plain_cell

_WIDEST = 24  # cells of a value


class ExampleTable(Vertical):
    """A row per sample; the table scrolls in both directions."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--right", "rows--wrong"}
    DEFAULT_CSS = """
    ExampleTable {
        height: 1fr;
        & > Static { height: auto; color: $text; }
        & > DataTable { height: 1fr; background: $background; scrollbar-size: 1 1; }
        & > DataTable:focus { background-tint: $foreground 0%; }
        & > DataTable > .datatable--fixed { background: $background; color: $foreground; }
        & > .rows--right { color: $success; }
        & > .rows--wrong { color: $error; }
    }
    """

    examples: reactive[Examples | None] = reactive(None, repaint=False)
    """The samples."""

    def compose(self) -> ComposeResult:
        """Compose the summary and the table."""
        yield Static(markup=False)
        yield DataTable(cursor_type="row", fixed_columns=1)

    def on_mount(self) -> None:
        """Show the samples that were set before."""
        self._show()

    def notify_style_update(self) -> None:
        """Show the samples in the colours of another theme."""
        super().notify_style_update()
        if self.is_mounted:
            self._show()

    def on_resize(self) -> None:
        """Fit the summary."""
        self._summarize()

    def watch_examples(self) -> None:
        """Show other samples."""
        if self.is_mounted:
            self._show()

    def _summarize(self) -> None:
        if self.examples:
            shown = len(self.examples.shown)
            spans = self.examples.summary(0, shown, self.size.width)
            styles = {"title": "bold", "faint": "$text-muted", "right": "$text-success"}
            self.query_one(Static).update(Content.assemble(*((text, styles[name]) for text, name in spans)))

    def _show(self) -> None:
        table: DataTable[RichText] = self.query_one(DataTable)
        at = table.cursor_row
        table.clear(columns=True)
        if self.examples is None:
            return
        self._summarize()
        rows = [self._cells(self.examples, each) for each in self.examples.shown]
        columns = list(dict.fromkeys(name for row in rows for name in row))
        for name in columns:
            table.add_column(plain_cell(shorten(name, _WIDEST), "bold"), key=name)
        for row in rows:
            table.add_row(*(row.get(name, plain_cell("")) for name in columns))
        table.move_cursor(row=min(at, max(len(rows) - 1, 0)))

    def _cells(self, examples: Examples, example: Example) -> dict[str, RichText]:
        """The cells of a row by the name of their column."""
        correct = is_correct(example)
        style: Style | str = ""
        if correct is not None:
            style = self.get_component_rich_style(f"rows--{'right' if correct else 'wrong'}", partial=True)
        mark = {None: "", True: "✓ ", False: "✗ "}[correct]
        cells = {"example": plain_cell(f"{mark}{example.row:,}", style)}
        cells["loss"] = plain_cell(numbers.metric(example.loss), right=True)
        if isinstance(example.target, Row) and isinstance(example.output, Row):
            names = example.target.names if len(example.target.names) > 1 else ("",)
            for name, true, predicted in zip(names, example.target.values, example.output.values, strict=True):
                cells[f"true {name}".strip()] = plain_cell(true, "bold", right=True)
                cells[f"predicted {name}".strip()] = plain_cell(predicted, "bold", right=True)
        else:
            for name, caption in zip(("true", "predicted"), captions(examples.report, example), strict=True):
                cells[name] = plain_cell(shorten(caption.text, _WIDEST) + caption.suffix, style)
        for leaf in leaves(example.input):
            if isinstance(leaf, Row):
                for name, value in zip(leaf.names, leaf.values, strict=True):
                    key = name if name not in cells else f"{name} "
                    cells[key] = plain_cell(shorten(value, _WIDEST), right=True)
        return cells
