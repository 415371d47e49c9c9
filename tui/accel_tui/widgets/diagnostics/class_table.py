"""Precision, recall, F1 and support of each class, the worst first."""

from typing import ClassVar

import numpy as np
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import DataTable, Static

from accel_engine.run.diagnostics import MultiLabelReport, OutputReport, SegmentationReport
from accel_engine.run.diagnostics.figures import ClassFigures, class_figures
from accel_engine.words import numbers
from accel_tui.formatting.text import shorten
from accel_tui.widgets.diagnostics.confused_pairs import confusion_of
from accel_tui.widgets.text_table import plain_cell

COLUMNS = ("class", "IoU", "F1", "precision", "recall", "support")
"""Columns of the table; intersection over union only of segmentation."""

_LONGEST = 30  # cells of a name


class ClassTable(Vertical):
    """A table that sorts by a click on a heading or by keys, and the means of all classes."""

    BINDING_GROUP_TITLE = "Classes"
    DEFAULT_CSS = """
    ClassTable {
        height: 1fr;
        & > Static { height: auto; }
        & > DataTable { height: 1fr; background: $background; scrollbar-size: 1 1; }
        & > DataTable:focus { background-tint: $foreground 0%; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("greater_than_sign,s", "sort(1)", "Sort", id="classes.sort", tooltip="Sort by the next column"),
        Binding("less_than_sign", "sort(-1)", id="classes.sort-previous", tooltip="Sort by the previous column"),
        Binding("S", "reverse", "Reverse", id="classes.reverse", tooltip="Reverse the sort order"),
    ]

    report: reactive[OutputReport | None] = reactive(None, repaint=False)
    """Report of the last validation."""

    step: reactive[int] = reactive(0, repaint=False)
    """The step of the validation."""

    sorted_by: reactive[str] = reactive("", repaint=False)
    """The column of the order; empty for the default."""

    is_reversed: reactive[bool] = reactive(default=False, repaint=False)
    """Whether the highest is first, or for names the last."""

    def compose(self) -> ComposeResult:
        """Compose the means and the table."""
        yield Static(markup=False)
        yield DataTable(cursor_type="row")

    def on_mount(self) -> None:
        """Show the report that was set before."""
        self._show()

    def watch_report(self) -> None:
        """Show another validation."""
        if self.is_mounted:
            self._show()

    watch_sorted_by = watch_is_reversed = watch_report

    def action_sort(self, columns: int) -> None:
        """Sort by another column."""
        names = self._columns
        self.is_reversed = False
        self.sorted_by = names[(names.index(self._order) + columns) % len(names)]

    def action_reverse(self) -> None:
        """Reverse the order."""
        self.is_reversed = not self.is_reversed

    @on(DataTable.HeaderSelected)
    def _sort_by(self, event: DataTable.HeaderSelected) -> None:
        event.stop()
        chosen = str(event.column_key.value)
        self.is_reversed = not self.is_reversed if chosen == self._order else False
        self.sorted_by = chosen

    @property
    def _columns(self) -> tuple[str, ...]:
        return COLUMNS if isinstance(self.report, SegmentationReport) else tuple(c for c in COLUMNS if c != "IoU")

    @property
    def _order(self) -> str:
        return self.sorted_by if self.sorted_by in self._columns else self._columns[1]

    def _show(self) -> None:
        table: DataTable[Text] = self.query_one(DataTable)
        at, table_top = table.cursor_row, table.scroll_y
        table.clear(columns=True)
        found = names_and_figures(self.report)
        if found is None:
            self.query_one(Static).update("")
            return
        names, figures = found
        values = {
            "class": np.array([name.casefold() for name in names]),
            "IoU": figures.iou,
            "F1": figures.f1,
            "precision": figures.precision,
            "recall": figures.recall,
            "support": figures.support,
        }
        order = np.argsort(values[self._order], kind="stable")  # NaN last
        if self.is_reversed:
            known = np.isnan(values[self._order]).sum() if self._order != "class" else 0
            order = np.concatenate([order[: len(order) - known][::-1], order[len(order) - known :]])
        for column in self._columns:
            arrow = (" ▼" if self.is_reversed else " ▲") if column == self._order else "  "
            table.add_column(plain_cell(column + arrow, "bold", right=column != "class"), key=column)
        for index in order.tolist():
            cells = [plain_cell(shorten(names[index], _LONGEST))]
            cells += [_number(column, float(values[column][index])) for column in self._columns[1:]]
            table.add_row(*cells)
        table.move_cursor(row=min(at, len(names) - 1))
        table.scroll_to(y=table_top, animate=False)
        self.query_one(Static).update(self._summary(figures, len(names)))

    def _summary(self, figures: ClassFigures, classes: int) -> Content:
        iou = f"mean IoU {numbers.metric(_mean(figures.iou))}, " if "IoU" in self._columns else ""
        weighted = _mean(figures.f1, figures.support)
        words = f"{iou}macro F1 {numbers.metric(_mean(figures.f1))}, weighted F1 {numbers.metric(weighted)}"
        lowest = "lowest" if not self.is_reversed else "highest"
        order = f"{numbers.counted(classes, 'class')}, by {self._order}"
        order += f", {lowest} first" if self._order != "class" else ""
        return Content.assemble((words, "bold"), (f" after step {self.step:,}   {order}", "$text-muted"))


def names_and_figures(report: OutputReport | None) -> tuple[tuple[str, ...], ClassFigures] | None:
    """The classes and their figures; ``None`` if the report has none."""
    if isinstance(report, MultiLabelReport):
        return report.names[: len(report.counts)], class_figures(report.counts)
    confusion = confusion_of(report)
    return (confusion.names, class_figures(confusion.counts)) if confusion and confusion.counts.size else None


def _mean(values: np.ndarray, weights: np.ndarray | None = None) -> float:
    """The mean of the known values; NaN if there are none."""
    known = ~np.isnan(values)
    if weights is None:
        return float(values[known].mean()) if known.any() else np.nan
    total = weights[known].sum()
    return float((values * weights)[known].sum() / total) if total else np.nan


def _number(column: str, value: float) -> Text:
    if np.isnan(value):
        return plain_cell("-", "dim", right=True)
    return plain_cell(f"{value:,.0f}" if column == "support" else numbers.metric(value), right=True)
