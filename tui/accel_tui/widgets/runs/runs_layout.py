"""Layout of the list of runs: which columns fit, their positions and text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style

from accel_engine.run import RunSummary
from accel_engine.text import printable_line
from accel_tui.formatting.text import fit
from accel_tui.run_list.columns import RunColumn, SortOrder, fitting

GAP = 2
"""Cells between two columns."""

_WIDEST_ID = 40


@dataclass(frozen=True, slots=True)
class RunsLayout:
    """The columns of a list of runs.

    Attributes:
        columns: The columns that fit.
        room: Width of a line in cells.
        lead: Cells before the first column.
    """

    columns: tuple[RunColumn, ...] = ()
    room: int = 0
    lead: int = 1

    @classmethod
    def fitting(cls, room: int, lead: int, runs: Sequence[RunSummary] = ()) -> "RunsLayout":
        """The layout with as many columns as fit, first those in which some run has a value."""
        return cls(fitting(room - lead + GAP - 1, GAP, runs), room, lead)

    def width(self, column: RunColumn) -> int:
        """Width of a column; the run column gets the spare cells."""
        if column.title != "run":
            return column.width
        spare = self.room - self.lead + GAP - 1 - sum(other.width + GAP for other in self.columns)
        return column.width + max(0, min(spare, _WIDEST_ID - column.width))

    def column_at(self, x: int) -> RunColumn | None:
        """The column at a cell of a line; ``None`` outside."""
        end = self.lead
        for column in self.columns:
            end += self.width(column) + GAP
            if x < end:
                return column if x >= self.lead else None
        return None

    def header(self, order: SortOrder, style: Callable[[str], Style]) -> list[Segment]:
        """The column titles, with an arrow at the sort column."""
        plain = style("header")
        segments = [Segment(" " * self.lead, plain)]
        for column in self.columns:
            at = column.title == order.column
            arrow = ("▼" if order.descending else "▲") if at else " "
            look, width = style("order") if at else plain, self.width(column)
            # The arrow is in the gap, so that the longest title fits.
            if column.right:
                segments[-1] = Segment(segments[-1].text[:-1], plain)
                segments.append(Segment(fit(arrow + column.title, width + 1, right=True), look))
                segments.append(Segment(" " * GAP, plain))
            else:
                segments.append(Segment((column.title + arrow).ljust(width + 1), look))
                segments.append(Segment(" " * (GAP - 1), plain))
        return segments

    def line(self, texts: Sequence[str], plain: Style, mark: Style, status: Style) -> list[Segment]:
        """A row: its selection mark and a text per column, the status in its own colour."""
        lead, *cells = texts
        segments = [Segment(f" {lead} "[-self.lead :], plain + mark)]
        for column, text in zip(self.columns, cells, strict=True):
            look = plain + status if column.title == "status" else plain
            segments.append(Segment(fit(printable_line(text), self.width(column), right=column.right), look))
            segments.append(Segment(" " * GAP, plain))
        return segments
