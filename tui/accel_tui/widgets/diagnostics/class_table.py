"""Classes: the confusion matrix of a report, and precision, recall, F1 and examples, the worst class first."""

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from textual import on
from textual.content import Content
from textual.widgets import Static

from accel_engine.run.diagnostics import (
    ClassificationReport,
    MultiLabelReport,
    OutputReport,
    SegmentationReport,
    SequenceReport,
)
from accel_engine.run.diagnostics.figures import ClassFigures, class_figures
from accel_engine.words import numbers
from accel_tui.formatting.bars import bar
from accel_tui.formatting.table_columns import Column, SortOrder, column_width
from accel_tui.widgets.diagnostics.table_page import TablePage
from accel_tui.widgets.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """A confusion matrix."""

    names: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    """True classes as rows and predicted ones as columns, int64 ``[classes, classes]``."""
    noun: str = ""
    """What is counted where it is not an example, ``pixel`` or ``token``."""


def confusion_of(report: OutputReport | None) -> Confusion | None:
    """The confusion matrix of a report; ``None`` if it has none."""
    if not isinstance(report, ClassificationReport | SegmentationReport | SequenceReport) or report.counts is None:
        return None
    classes = len(report.counts)
    names = (*report.names[:classes], *map(str, range(len(report.names), classes)))
    noun = {SegmentationReport: "pixel", SequenceReport: "token"}.get(type(report), "")
    return Confusion(names, report.counts, noun)


def pair_name(confusion: Confusion, pair: tuple[int, int, int, float]) -> str:
    """A pair of classes: true as predicted."""
    return f"{confusion.names[pair[0]]} as {confusion.names[pair[1]]}"


def confused(confusion: Confusion, limit: int = 1) -> list[tuple[int, int, int, float]]:
    """The most confused pairs: true class, predicted class, count, and share of the true class."""
    if limit < 1:
        return []
    wrong: npt.NDArray[np.int64] = confusion.counts.copy()
    np.fill_diagonal(wrong, 0)
    totals = confusion.counts.sum(axis=1)
    rows, columns = np.nonzero(wrong)
    found = wrong[rows, columns]
    share = found / totals[rows]
    best = np.lexsort((columns, rows, -share, -found))[:limit]
    return [(int(rows[i]), int(columns[i]), int(found[i]), float(share[i])) for i in best]


_LONGEST = 30  # cells of a name
_LEAST_BAR, _WIDEST_BAR = 6, 24


@dataclass(frozen=True, slots=True)
class ClassRow:
    """A class."""

    name: str
    figures: dict[str, float]
    """Figures by the title of their column; NaN for an unknown one."""


class ClassList(Table[ClassRow]):
    """A row for each class, with its figures."""

    BINDING_GROUP_TITLE = "Classes"
    opens = False

    def key_of(self, row: ClassRow) -> Hashable:
        return row.name


class ClassTable(TablePage):
    """The classes, and the means of all."""

    def make_table(self) -> ClassList:
        """Make the table of the classes."""
        return ClassList()

    def show_report(self) -> None:
        """Show the classes, by the first figure unless the user has chosen another one."""
        table, found = self.query_one(ClassList), names_and_figures(self.report)
        rows = list(_rows(*found, has_iou=isinstance(self.report, SegmentationReport))) if found else []
        columns = [_name_column(rows)] if rows else []
        for title in rows[0].figures if rows else ():
            columns += [_figure_column(title), *([_bar_column(title)] if title != "examples" else [])]
        titles = [column.title for column in columns if column.sort_key]
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
        "examples": figures.support,
    }
    for index, name in enumerate(names):
        yield ClassRow(name, {title: float(each[index]) for title, each in values.items()})


def _name_column(rows: list[ClassRow]) -> Column[ClassRow]:
    width = column_width("class ", (row.name for row in rows), _LONGEST)
    return Column("class", width, lambda row, _: row.name, lambda row: (0.0, row.name.casefold()))


def _figure_column(title: str) -> Column[ClassRow]:
    def text(row: ClassRow, _: float) -> str:
        value = row.figures[title]
        return "-" if math.isnan(value) else f"{value:,.0f}" if title == "examples" else numbers.metric(value)

    return Column(
        title,
        max(8, len(title)),
        text,
        lambda row: None if math.isnan(row.figures[title]) else (row.figures[title], ""),
        right=True,
        colour=lambda row: "note" if math.isnan(row.figures[title]) else "",
    )


def _bar_column(title: str) -> Column[ClassRow]:
    return Column(
        "",
        _LEAST_BAR,
        lambda _row, _now: "",
        colour=lambda _: "success" if title == "F1" else "primary",
        drop_priority=1,
        widest=_WIDEST_BAR,
        draw=lambda row, width: bar(row.figures[title], width),
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
