"""Compare screen: charts that overlay several runs, and a table of their differences."""

import asyncio
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import ScreenResume
from textual.reactive import reactive
from textual.widgets import Static

from accel_engine.run import RunSummary
from accel_engine.run.runs.listing import summarize
from accel_engine.text import printable_fields, printable_line
from accel_tui.formatting.table_columns import GAP, Column
from accel_tui.run_list.comparison import ComparedRow, ComparedRun, Comparison, compare_runs
from accel_tui.run_state.run_follower import RunFollower
from accel_tui.screens.run_actions import COMPARE, RunActionsScreen, TargetRun, run_bindings, target_of
from accel_tui.widgets.chart_panels.compare_charts import CompareCharts, letter, style_of
from accel_tui.widgets.compared_runs_table import ComparedRunsTable, ResultRow
from accel_tui.widgets.key_bar import KeyBar, TopBar
from accel_tui.widgets.runs_table import RunsTable
from accel_tui.widgets.table import Table
from accel_tui.widgets.visibility import is_covered

_ABOVE = frozenset({"loss", "val loss", "steps/s", "duration"})
"""The results that the table of results has."""

_MIN_WIDTH = 8
_SHARE = 0.44  # of a wide screen
_CHARTS = 66  # width at which chart headers fit the values of three runs
_ABOUT = 40  # cells of the text above the table, at least
_FRAME = 4  # cells of the panel, of the scrollbar, and before the labels


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table."""

    section: str
    """The title of its section."""
    row: ComparedRow | None = None
    """Label and values; ``None`` for the title itself."""

    @property
    def label(self) -> str:
        """The text before the values."""
        return self.row.label if self.row else self.section

    def text(self, at: int) -> str:
        """The value of a run."""
        return self.row.texts[at] if self.row and self.row.texts else ""

    def colour(self, at: int) -> str:
        """The colour of the value of a run: the best one's differs."""
        return "success" if self.row and at in self.row.best else ""


class CompareTable(Table[Line]):
    """Differences between plans, and results; the labels stay in place while the rest scrolls."""

    DEFAULT_CSS = "CompareTable > .table--header { text-style: bold; }"
    opens = False
    sideways = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "equals_sign",
            "toggle_equal",
            "Equal",
            id="compare.equal",
            tooltip="Show or hide what is equal in all runs",
        ),
    ]

    comparison: reactive[Comparison | None] = reactive(None, repaint=False)
    """The comparison; ``None`` before the runs are read."""

    def key_of(self, row: Line) -> Hashable:
        return row.section, row.label, row.row is None

    has_equal: reactive[bool] = reactive(default=False, repaint=False, init=False)
    """Whether the equal fields are shown."""

    def action_toggle_equal(self) -> None:
        self.has_equal = not self.has_equal

    def watch_comparison(self) -> None:
        if self.comparison:
            lines = list(_lines(self.comparison, has_equal=self.has_equal))
            self.show_rows(lines, self._columns(lines, [each.title for each in self.comparison.runs]))

    watch_has_equal = watch_comparison

    def on_resize(self) -> None:
        self.watch_comparison()

    def _columns(self, lines: Sequence[Line], names: Sequence[str]) -> list[Column[Line]]:
        """The columns of the labels and the runs, as wide as the charts leave room."""
        label = max(cell_len(line.label) for line in lines if line.row)
        values = [max([_MIN_WIDTH, *(cell_len(line.text(at)) for line in lines)]) for at in range(len(names))]
        titles = [f"{_sign(at)} {printable_line(name)}" for at, name in enumerate(names)]
        available = self._available(label + GAP * len(names), values)
        widths = [max(cell_len(title), value) for title, value in zip(titles, values, strict=True)]
        if sum(widths) > available:
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
        return min(int(_SHARE * screen.size.width) - fixed - _FRAME, max(room - _CHARTS, sum(values)))


def _lines(comparison: Comparison, *, has_equal: bool) -> Iterator[Line]:
    """The lines below the headers."""
    yield Line("plan")
    for row in comparison.plan or (ComparedRow("no differences", (), ()),):
        yield Line("plan", row)
    section = f"results ({comparison.kind_of_values})" if comparison.kind_of_values else "results"
    equal = _equal_results(comparison)
    differing = [row for row in comparison.results if row.label not in _ABOVE and row not in equal]
    for title, rows in (section, differing), ("equal", (*equal, *comparison.equal_rows) if has_equal else ()):
        if rows:
            yield Line(title)
            yield from (Line(title, row) for row in rows)


def _equal_results(comparison: Comparison) -> list[ComparedRow]:
    """The results that are the same in all runs, without the results of the table above."""
    return [row for row in comparison.results if len(set(row.texts)) == 1 and row.label not in _ABOVE]


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


REFRESH_SECONDS = 0.25
"""Seconds that updates are collected before the screen is refreshed."""

SUMMARY_SECONDS = 2.0
"""Seconds between two reads of the runs' summaries while one of them is live."""


class CompareScreen(RunActionsScreen):
    """Compares several runs side by side.

    Args:
        directories: The runs' directories, from two to :data:`accel_tui.run_list.comparison.MAX_COMPARED_RUNS`.
    """

    CSS_PATH = "compare_screen.tcss"
    AUTO_FOCUS = "CompareCharts"
    BINDING_GROUP_TITLE = "Compare"
    PLACE = COMPARE
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "tab", "app.focus_next", "Table", id="compare.table", tooltip="Switch between the charts and the table"
        ),
        *run_bindings(COMPARE),
    ]

    _charts = getters.query_one(CompareCharts)
    _table = getters.query_one(CompareTable)

    def __init__(self, directories: Sequence[Path]) -> None:
        super().__init__()
        self._directories = tuple(directories)
        self._followers = [RunFollower(directory) for directory in directories]
        self._runs: tuple[RunSummary, ...] = ()
        self._is_refresh_scheduled = False

    def compose(self) -> ComposeResult:
        yield TopBar(f"Compare {len(self._directories)} runs")
        yield ComparedRunsTable(id="results")
        with Container(id="body"):
            yield CompareCharts()
            with Container(id="comparison"):
                yield Static(id="about", markup=False)
                yield CompareTable()
        yield KeyBar()

    @property
    def selected_runs(self) -> Sequence[TargetRun]:
        """All runs that are compared: actions are about all of them."""
        return tuple(map(target_of, self._runs))

    def on_mount(self) -> None:
        for follower in self._followers:
            self._follow(follower)
        self._summarize()
        self.set_interval(SUMMARY_SECONDS, self._refresh_summaries)
        self.watch(self._charts, "is_full_screen", self._set_full_screen, init=False)

    @work(exit_on_error=False, group="follow")
    async def _follow(self, follower: RunFollower) -> None:
        """Refresh the screen some time after any news of a run."""
        async for _ in follower.news(self.app):
            if not self._is_refresh_scheduled:
                self._is_refresh_scheduled = True
                self.set_timer(REFRESH_SECONDS, self._refresh_comparison)

    @work(exclusive=True, exit_on_error=False, group="summarize")
    async def _summarize(self) -> None:
        self._runs = await asyncio.to_thread(_summaries, self._directories)
        self.refresh_bindings()
        self._refresh_comparison()

    def _refresh_summaries(self) -> None:
        if any(run.status and run.status.live for run in self._runs) and not is_covered(self):
            self._summarize()

    @on(ScreenResume)
    def _refresh_comparison(self) -> None:
        self._is_refresh_scheduled = False
        if not self._runs or is_covered(self):
            return
        runs = tuple(
            ComparedRun(run, follower.latest()) for run, follower in zip(self._runs, self._followers, strict=True)
        )
        found = compare_runs(runs)
        self._charts.runs = runs
        self._table.comparison = found
        results = self.query_one(ComparedRunsTable)
        results.rows = tuple(_result_row(at, found) for at in range(len(runs)))
        results.styles.height = len(runs) + 3  # with the header and the border
        self._describe()

    def on_resize(self) -> None:
        self._table.on_resize()
        self._describe()

    def _describe(self) -> None:
        """Show what is equal."""
        about, found = self.query_one("#about", Static), self._table.comparison
        chance = "V evaluates the runs on the same examples: is a difference more than chance?"
        equal = [f"{row.label} {row.texts[0]}" for row in _equal_results(found)] if found else []
        same = f"In all runs: {', '.join(equal)}." if equal else ""
        texts = [found.summary if found else "", same, chance if self.check_action("evaluate", ()) else ""]
        about.update("\n".join(filter(None, texts)))
        is_narrow = self.has_class("-narrow")
        about.styles.min_width = None if is_narrow else _ABOUT
        about.styles.max_width = None if is_narrow else max(self._table.virtual_size.width, _ABOUT)

    def _set_full_screen(self, full: bool) -> None:
        self.set_class(full, "-full")

    @on(CompareCharts.VisibleStepsChanged)
    def _load_visible_steps(self, event: CompareCharts.VisibleStepsChanged) -> None:
        event.stop()
        for follower in self._followers:
            follower.load_visible_steps(event.visible_steps)


def _result_row(at: int, comparison: Comparison) -> ResultRow:
    """The results of a run, and the differences of its plan."""
    compared = comparison.runs[at]
    name = f"{_sign(at)} {printable_line(compared.title)}"
    differs = comparison.differences(at) if at else "—"
    return ResultRow(
        compared.run, name, style_of(at), compared.speed, compared.seconds, compared.loss_function, differs
    )


def _summaries(directories: Sequence[Path]) -> tuple[RunSummary, ...]:
    listed = RunsTable.listing.ended
    return tuple(printable_fields(listed.get(each) or summarize(each)) for each in directories)
