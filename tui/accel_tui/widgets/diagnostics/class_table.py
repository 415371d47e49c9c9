"""Precision, recall, F1 and support of each class, the worst first."""

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from accel_engine.run.diagnostics import MultiLabelReport, OutputReport, SegmentationReport
from accel_engine.run.diagnostics.figures import ClassFigures, class_figures
from accel_engine.words import numbers
from accel_tui.formatting.table_columns import Column, SortOrder, width_of
from accel_tui.widgets.diagnostics.confused_pairs import confusion_of
from accel_tui.widgets.table import Table

_LONGEST = 30  # cells of a name


@dataclass(frozen=True, slots=True)
class ClassRow:
    """A class.

    Attributes:
        name: Its name.
        figures: Figures by the title of their column; NaN for an unknown one.
    """

    name: str
    figures: dict[str, float]


class ClassList(Table[ClassRow]):
    """The classes."""

    BINDING_GROUP_TITLE = "Classes"
    opens = False

    def key_of(self, row: ClassRow) -> Hashable:
        """The name of a class."""
        return row.name


class ClassTable(Vertical):
    """The classes, and the means of all."""

    DEFAULT_CSS = """
    ClassTable { height: 1fr; & > Static { height: auto; } }
    """

    report: reactive[OutputReport | None] = reactive(None, repaint=False)
    """Report of the last validation."""

    step: reactive[int] = reactive(0, repaint=False)
    """The step of the validation."""

    def compose(self) -> ComposeResult:
        """Compose the means and the table."""
        yield Static(markup=False)
        yield ClassList()

    def on_mount(self) -> None:
        """Show the report that was set before."""
        self._show()

    def watch_report(self) -> None:
        """Show another validation."""
        if self.is_mounted:
            self._show()

    def _show(self) -> None:
        table, found = self.query_one(ClassList), names_and_figures(self.report)
        rows = list(_rows(*found, has_iou=isinstance(self.report, SegmentationReport))) if found else []
        columns = [_name_column(rows), *map(_figure_column, rows[0].figures)] if rows else []
        titles = [column.title for column in columns]
        if rows and table.order.column not in titles:
            table.set_reactive(ClassList.order, SortOrder(titles[1]))
        table.show_rows(rows, columns)
        self._summarize()

    @on(Table.Moved)
    def _summarize(self) -> None:
        """Show the means, and the order of the table."""
        found, order = names_and_figures(self.report), self.query_one(ClassList).order
        self.query_one(Static).update(self._summary(found[1], len(found[0]), order) if found else "")

    def _summary(self, figures: ClassFigures, classes: int, sorted_by: SortOrder) -> Content:
        has_iou = isinstance(self.report, SegmentationReport)
        iou = f"mean IoU {numbers.metric(_mean(figures.iou))}, " if has_iou else ""
        weighted = _mean(figures.f1, figures.support)
        words = f"{iou}macro F1 {numbers.metric(_mean(figures.f1))}, weighted F1 {numbers.metric(weighted)}"
        lowest = "lowest" if not sorted_by.reversed else "highest"
        order = f"{numbers.counted(classes, 'class')}, by {sorted_by.column}"
        order += f", {lowest} first" if sorted_by.column != "class" else ""
        return Content.assemble((words, "bold"), (f" after step {self.step:,}   {order}", "$text-muted"))


def _rows(names: tuple[str, ...], figures: ClassFigures, *, has_iou: bool) -> Iterator[ClassRow]:
    values = {
        **({"IoU": figures.iou} if has_iou else {}),
        "F1": figures.f1,
        "precision": figures.precision,
        "recall": figures.recall,
        "support": figures.support,
    }
    for index, name in enumerate(names):
        yield ClassRow(name, {title: float(each[index]) for title, each in values.items()})


def _name_column(rows: list[ClassRow]) -> Column[ClassRow]:
    width = width_of("class ", (row.name for row in rows), _LONGEST)
    return Column("class", width, lambda row, _: row.name, lambda row: (0.0, row.name.casefold()))


def _figure_column(title: str) -> Column[ClassRow]:
    def text(row: ClassRow, _: float) -> str:
        value = row.figures[title]
        return "-" if math.isnan(value) else f"{value:,.0f}" if title == "support" else numbers.metric(value)

    return Column(
        title,
        max(8, len(title)),
        text,
        lambda row: None if math.isnan(row.figures[title]) else (row.figures[title], ""),
        right=True,
        colour=lambda row: "note" if math.isnan(row.figures[title]) else "",
    )


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
