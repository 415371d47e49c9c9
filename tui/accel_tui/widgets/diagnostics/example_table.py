"""Samples as rows of a table: their targets and predictions, and the columns of the input."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from accel_engine.run.diagnostics import Example
from accel_engine.run.diagnostics.views import Row
from accel_engine.words import numbers
from accel_tui.formatting.text import shorten
from accel_tui.widgets.diagnostics.examples import Examples, captions, is_correct, leaves
from accel_tui.widgets.text_table import TextRow, TextTable

_WIDEST = 24  # cells of a value


class ExampleTable(Vertical):
    """A row per sample; the table scrolls in both directions."""

    DEFAULT_CSS = """
    ExampleTable { height: 1fr; & > Static { height: auto; color: $text; } }
    """

    examples: reactive[Examples | None] = reactive(None, repaint=False)
    """The samples."""

    def compose(self) -> ComposeResult:
        """Compose the summary and the table."""
        yield Static(markup=False)
        yield TextTable()

    def on_mount(self) -> None:
        """Show the samples that were set before."""
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
        self._summarize()
        shown = self.examples.shown if self.examples else ()
        cells = [_cells(self.examples, each) for each in shown if self.examples]
        titles = list(dict.fromkeys(name for row in cells for name in row))
        rows = [
            TextRow(example.row, tuple(row.get(name, "") for name in titles), _colour(example))
            for example, row in zip(shown, cells, strict=True)
        ]
        self.query_one(TextTable).show_texts(titles, rows, _WIDEST)


def _colour(example: Example) -> str:
    return {None: "", True: "success", False: "error"}[is_correct(example)]


def _cells(examples: Examples, example: Example) -> dict[str, str]:
    """The cells of a row by the title of their column."""
    mark = {None: "", True: "✓ ", False: "✗ "}[is_correct(example)]
    cells = {"example": f"{mark}{example.row:,}", "loss": numbers.metric(example.loss)}
    if isinstance(example.target, Row) and isinstance(example.output, Row):
        names = example.target.names if len(example.target.names) > 1 else ("",)
        for name, true, predicted in zip(names, example.target.values, example.output.values, strict=True):
            cells[f"true {name}".strip()] = true
            cells[f"predicted {name}".strip()] = predicted
    else:
        for name, caption in zip(("true", "predicted"), captions(examples.report, example), strict=True):
            cells[name] = shorten(caption.text, _WIDEST - len(caption.suffix)) + caption.suffix
    for leaf in leaves(example.input):
        if isinstance(leaf, Row):
            cells |= {
                name if name not in cells else f"{name} ": value
                for name, value in zip(leaf.names, leaf.values, strict=True)
            }
    return cells
