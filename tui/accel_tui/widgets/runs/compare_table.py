"""The table of the Compare screen: a column per run, headed by its letter and name."""

import textwrap
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.text import printable_line
from accel_tui.formatting.text import fit
from accel_tui.run_list.comparison import ComparedRow, Comparison
from accel_tui.widgets.chart.cell_frame import COLOURS
from accel_tui.widgets.chart_panels.compare_charts import letter, style_of
from accel_tui.widgets.list_keys import SIDEWAYS_KEYS, ScrolledByKeys

_GAP = 2
_PADDING = 2  # of the panel around the table, where it is as wide as the screen
_MIN_WIDTH = 10
_SHARE = 0.55  # of a wide screen
_CHARTS = 66  # width at which chart headers fit the values of three runs
_SIGN = 3  # width of the sign of a curve
_LINES = 3  # maximum lines of a name


class CompareTable(ScrolledByKeys):
    """Differences between plans, and results.

    The headings, which are the legend of the charts, and the labels stay in place while the rest scrolls.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"compare-table--{part}" for part in ("label", "value", "best", "rule", "head", *COLOURS)
    }
    DEFAULT_CSS = (
        """
    CompareTable {
        width: auto;
        height: auto;
        background: $background;
        scrollbar-size: 1 1;
        & > .compare-table--label { color: $text-muted; }
        & > .compare-table--value { color: $foreground; }
        & > .compare-table--head { color: $foreground; text-style: bold; }
        & > .compare-table--best { color: $text-success; text-style: bold; }
        & > .compare-table--rule { color: $text-disabled; }
        &:focus > .compare-table--rule { color: $accent; text-style: bold; }
    """
        + "".join(f"    & > .compare-table--{colour} {{ color: ${colour}; text-style: bold; }}\n" for colour in COLOURS)
        + "}"
    )
    BINDING_GROUP_TITLE = "Table"
    BINDINGS: ClassVar[list[BindingType]] = [*SIDEWAYS_KEYS]

    comparison: reactive[Comparison | None] = reactive(None, repaint=False)
    """The comparison; ``None`` before the runs are read."""

    def watch_comparison(self, before: Comparison | None, comparison: Comparison | None) -> None:
        """Lay out a changed comparison."""
        if comparison is not None and comparison != before:
            self._lay_out(comparison)

    def on_resize(self) -> None:
        """Lay out for the new size."""
        if self.comparison:
            self._lay_out(self.comparison)

    @property
    def _rows(self) -> tuple[ComparedRow | str, ...]:
        """The rows below the headings; a text alone is a section title."""
        found = self.comparison
        if found is None:
            return ()
        results = f"results ({found.kind_of_values})" if found.kind_of_values else "results"
        return ("plan", *(found.plan or (ComparedRow("no differences", (), ()),)), results, *found.results)

    def _lay_out(self, comparison: Comparison) -> None:
        rows = [row for row in self._rows if isinstance(row, ComparedRow)]
        self._label = max(len(row.label) for row in rows) + 1
        screen, runs = self.screen, comparison.runs
        values = [
            max([_MIN_WIDTH, *(len(row.texts[index]) for row in rows if row.texts)]) for index in range(len(runs))
        ]
        names = [_SIGN + cell_len(compared.title) for compared in runs]
        fixed_width = self._label + _GAP * len(runs)
        available = screen.size.width - fixed_width - 1
        if screen.has_class("-narrow"):
            available -= _PADDING
        else:
            # Charts get the width of their headers, unless the values, which do not wrap, need it.
            available = min(int(_SHARE * screen.size.width) - fixed_width - 1, max(available - _CHARTS, sum(values)))
        self._widths = _shares([max(pair) for pair in zip(values, names, strict=True)], available, values)
        self._names = [
            _lines(compared.title, width - _SIGN) for compared, width in zip(runs, self._widths, strict=True)
        ]
        self._head = max(map(len, self._names))
        self.virtual_size = Size(fixed_width + sum(self._widths), len(self._rows) + self._head)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The headings, or a row."""
        if self.comparison is None:
            return Strip.blank(self.size.width)
        values = self._heads(y) if y < self._head else self._values(y - self._head + self.scroll_offset.y)
        label, *cells = values
        strip = Strip(cells).crop(self.scroll_offset.x, self.scroll_offset.x + max(0, self.size.width - self._label))
        return Strip([label, *strip]).adjust_cell_length(self.size.width, self._style("value"))

    def _heads(self, line: int) -> list[Segment]:
        """A line of the names; the first one has the signs of the curves."""
        segments = [Segment(" " * self._label, self._style("value"))]
        for at, lines in enumerate(self._names):
            sign = "" if line else f"━{letter(at)}"
            text = lines[line] if line < len(lines) else ""
            segments.append(Segment(sign.ljust(_SIGN), self._style(style_of(at))))
            segments.append(Segment(fit(printable_line(text), self._widths[at] - _SIGN), self._style("head")))
            segments.append(Segment(" " * _GAP, self._style("value")))
        return segments

    def _values(self, row_index: int) -> list[Segment]:
        rows = self._rows
        if row_index >= len(rows):
            return [Segment(" " * self._label, self._style("value"))]
        row = rows[row_index]
        if isinstance(row, str):
            length = self._label + sum(self._widths) + _GAP * (len(self._widths) - 1)
            line, rule = f"{row} ".ljust(length, "─"), self._style("rule")
            return [Segment(line[: self._label], rule), Segment(line[self._label :], rule)]
        segments = [Segment(row.label.ljust(self._label), self._style("label"))]
        for at, text in enumerate(row.texts):
            style = self._style("best" if at in row.best else "value")
            segments.append(Segment(fit(printable_line(text), self._widths[at]) + " " * _GAP, style))
        return segments

    def _style(self, part: str) -> Style:
        return self.get_component_rich_style(f"compare-table--{part}")


def _lines(title: str, width: int) -> list[str]:
    """A name in a few lines; the last one has the rest."""
    lines = textwrap.wrap(title, width)
    rest = " ".join(lines[_LINES - 1 :]).replace("- ", "-")  # wrapping may have split it at a hyphen
    return [*lines[: _LINES - 1], rest] if rest else lines


def _shares(preferred: list[int], available: int, minimum: list[int]) -> list[int]:
    """Widths of columns: the wanted ones, limited to equal shares, but at least ``minimum`` if these fit."""
    widths = list(preferred)
    if sum(minimum) > available:
        minimum = [_MIN_WIDTH] * len(minimum)
    for placed, index in enumerate(sorted(range(len(preferred)), key=preferred.__getitem__)):
        widths[index] = max(minimum[index], min(preferred[index], available // (len(preferred) - placed)))
        available -= widths[index]
    return widths
