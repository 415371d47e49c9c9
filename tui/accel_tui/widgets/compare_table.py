"""The table of the Compare screen: a column per run, headed by its letter, and by its name where all names fit."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content
from textual.reactive import reactive

from accel_engine.text import printable_line
from accel_tui.formatting.table_columns import GAP, Column
from accel_tui.run_list.comparison import ComparedRow, Comparison
from accel_tui.widgets.chart_panels.compare_charts import letter, style_of
from accel_tui.widgets.table import Table

_MIN_WIDTH = 10
_SHARE = 0.55  # of a wide screen
_CHARTS = 66  # width at which chart headers fit the values of three runs
_FRAME = 4  # cells of the panel, of the scrollbar, and before the labels


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table.

    Attributes:
        section: The title of its section.
        row: Label and values; ``None`` for the title itself.
    """

    section: str
    row: ComparedRow | None = None

    @property
    def label(self) -> str:
        """What is before the values."""
        return self.row.label if self.row else self.section

    def text(self, at: int) -> str:
        """The value of a run."""
        return self.row.texts[at] if self.row and self.row.texts else ""

    def colour(self, at: int) -> str:
        """The colour of the value of a run: the best one's differs."""
        return "success" if self.row and at in self.row.best else ""


class CompareTable(Table[Line]):
    """Differences between plans, and results; the labels stay in place while the rest scrolls."""

    DEFAULT_CSS = """
    CompareTable > .table--header { text-style: bold; }
    """
    opens = False
    sideways = True

    comparison: reactive[Comparison | None] = reactive(None, repaint=False)
    """The comparison; ``None`` before the runs are read."""

    _has_names = True

    def key_of(self, row: Line) -> Hashable:
        """The section and the label of a row."""
        return row.section, row.label, row.row is None

    def watch_comparison(self) -> None:
        """Show another comparison."""
        if self.comparison:
            lines = list(_lines(self.comparison))
            self.show_rows(lines, self._columns(lines, [each.title for each in self.comparison.runs]))

    def on_resize(self) -> None:
        """Lay out for the new size."""
        self.watch_comparison()

    @property
    def legend(self) -> Content:
        """The names of the runs after their letters; empty if the headers have them."""
        if self.comparison is None or self._has_names:
            return Content("")
        return Content("   " if self.screen.has_class("-narrow") else "\n").join(
            Content.assemble((_sign(at), f"${style_of(at)} bold"), f" {printable_line(each.title)}")
            for at, each in enumerate(self.comparison.runs)
        )

    def _columns(self, lines: Sequence[Line], names: Sequence[str]) -> list[Column[Line]]:
        """The columns of the labels and the runs, as wide as the charts leave room."""
        label = max(cell_len(line.label) for line in lines if line.row)
        values = [max([_MIN_WIDTH, *(cell_len(line.text(at)) for line in lines)]) for at in range(len(names))]
        titles = [f"{_sign(at)} {printable_line(name)}" for at, name in enumerate(names)]
        available = self._available(label + GAP * len(names), values)
        widths = [max(cell_len(title), value) for title, value in zip(titles, values, strict=True)]
        self._has_names = sum(widths) <= available
        if not self._has_names:
            titles, widths = [_sign(at) for at in range(len(names))], _shares(values, available)
        rule = "─" * (label + sum(widths) + GAP * len(names))
        return [
            Column(
                "",
                label,
                lambda line, _: line.label if line.row else f"{line.label} {rule[len(line.label) + 1 :]}",
                colour=lambda line: "note" if line.row else "accent",
            ),
            *(_run_column(at, title, width) for at, (title, width) in enumerate(zip(titles, widths, strict=True))),
        ]

    def _available(self, fixed: int, values: Sequence[int]) -> int:
        """Cells for the values: charts get the width of their headers, unless the values need it.

        Args:
            fixed: Cells of the labels and the gaps.
            values: Cells of the values of each run.
        """
        screen = self.screen
        room = screen.size.width - _FRAME - fixed
        if screen.has_class("-narrow"):
            return room
        return min(int(_SHARE * screen.size.width) - fixed, max(room - _CHARTS, sum(values)))


def _lines(comparison: Comparison) -> Iterator[Line]:
    """The lines below the headers."""
    yield Line("plan")
    for row in comparison.plan or (ComparedRow("no differences", (), ()),):
        yield Line("plan", row)
    section = f"results ({comparison.kind_of_values})" if comparison.kind_of_values else "results"
    yield Line(section)
    for row in comparison.results:
        yield Line(section, row)


def _sign(at: int) -> str:
    """The sign of a run's curves."""
    return f"━{letter(at)}"


def _run_column(at: int, title: str, width: int) -> Column[Line]:
    return Column(
        title, width, lambda line, _: line.text(at), colour=lambda line: line.colour(at), title_colour=style_of(at)
    )


def _shares(preferred: Sequence[int], available: int) -> list[int]:
    """Widths of columns: the wanted ones, limited to equal shares, but not too narrow to read."""
    widths = list(preferred)
    for placed, index in enumerate(sorted(range(len(preferred)), key=preferred.__getitem__)):
        widths[index] = max(_MIN_WIDTH, min(preferred[index], available // (len(preferred) - placed)))
        available -= widths[index]
    return widths
