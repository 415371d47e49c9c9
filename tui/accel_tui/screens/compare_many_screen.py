"""Compares many runs: their results, their curves as a band, and what varies in their plans."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.app_protocol import Screens, open_screen
from accel_tui.run_list.columns import run_title
from accel_tui.run_list.comparison import MAX_COMPARED_RUNS, ComparedRow, ComparedRun, Comparison, compare_runs
from accel_tui.run_state.state import RunState
from accel_tui.screens.run_actions import COMPARE, RunActionsScreen, TargetRun, run_bindings, target_of
from accel_tui.widgets.chart.plot import PlotView
from accel_tui.widgets.chart_panels.run_band import RunCurve, band_plot, best_curve, compared_metric, read_curve
from accel_tui.widgets.compared_runs_table import ComparedRunsTable, ResultRow
from accel_tui.widgets.key_bar import KeyBar, TopBar
from accel_tui.widgets.runs_table import RunsTable
from accel_tui.widgets.visibility import has_shades, is_covered

READ_SECONDS = 2.0
"""Seconds between two reads of live runs."""

_SHOWN_FIRST = 50  # runs that are read before any is shown
_MOST_VALUES = 5  # of a field that varies


class CompareManyScreen(RunActionsScreen):
    """Compares more runs than charts have colours for.

    Args:
        directories: The runs' directories.
    """

    CSS_PATH = "compare_many_screen.tcss"
    AUTO_FOCUS = "ComparedRunsTable"
    BINDING_GROUP_TITLE = "Compare"
    PLACE = COMPARE
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", id="compare.open", tooltip="Open the run"),
        Binding(
            "c", "compare_selected", "Compare", id="compare.compare", tooltip="Compare the curves of the selected runs"
        ),
        *run_bindings(COMPARE),
    ]

    _table = getters.query_one(ComparedRunsTable)

    def __init__(self, directories: Sequence[Path]) -> None:
        super().__init__()
        self._directories = tuple(directories)
        self._curves: dict[Path, RunCurve] = {}

    def compose(self) -> ComposeResult:
        yield TopBar(f"Compare {len(self._directories):,} runs")
        with Container(id="body"):
            table = ComparedRunsTable(selectable=True)
            table.set_reactive(ComparedRunsTable.differs, "plan")
            yield table
            with Container(id="curves"):
                plot = PlotView()
                plot.empty = "reading the runs…"
                yield plot
                with VerticalScroll(id="varies", can_focus=False):
                    yield Static(markup=False)
        yield KeyBar()

    def on_mount(self) -> None:
        self._read()
        self.set_interval(READ_SECONDS, self._read_live)

    def on_resize(self) -> None:
        self._draw()

    @property
    def current_run(self) -> TargetRun | None:
        """The run under the cursor."""
        return target_of(self._table.current.run) if self._table.current else None

    @property
    def selected_runs(self) -> Sequence[TargetRun]:
        return tuple(target_of(row.run) for row in self._table.selected_rows)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to compare only as many as charts have colours for."""
        if action == "compare_selected":
            return 2 <= len(self._table.selected) <= MAX_COMPARED_RUNS or None
        return super().check_action(action, parameters)

    def action_back(self) -> None:
        """Deselect all, then go back."""
        if self._table.selected:
            self._table.selected = frozenset()
        else:
            self.go_back()

    def action_open(self) -> None:
        if run := self.current_run:
            open_screen(self, Screens.RUN, run.directory)

    def action_compare_selected(self) -> None:
        open_screen(self, Screens.COMPARE, tuple(run.directory for run in self.selected_runs))

    @work(exclusive=True, exit_on_error=False, group="read")
    async def _read(self) -> None:
        """Read all runs: first some, then each time as many as are shown, as all are compared anew."""
        first, last = 0, _SHOWN_FIRST
        while first < len(self._directories):
            await self._take(self._directories[first:last])
            first, last = last, 2 * last

    def _read_live(self) -> None:
        """Read the live runs again."""
        if len(self._curves) == len(self._directories) and not is_covered(self):
            live = [path for path, curve in self._curves.items() if curve.run.status and curve.run.status.live]
            if live:
                self._read_again(live)

    @work(exclusive=True, exit_on_error=False, group="read")
    async def _read_again(self, live: Sequence[Path]) -> None:
        await self._take(live)

    async def _take(self, directories: Sequence[Path]) -> None:
        """Read some runs in a thread, and show them with the others."""
        curves = dict(self._curves)

        def read() -> Comparison:
            listed = RunsTable.listing.ended
            curves.update((path, read_curve(path, listed.get(path))) for path in directories)
            return compare_runs([ComparedRun(each.run, RunState()) for each in curves.values()])

        comparison = await asyncio.to_thread(read)
        self._curves = curves
        best = best_curve([*curves.values()], compared_metric(curves.values()))
        self._table.rows = tuple(_row(comparison, at, best) for at in range(len(curves)))
        left = len(self._directories) - len(curves)
        self._table.border_subtitle = f"{numbers.counted(left, 'run')} to read" if left else ""
        self.query_one("#varies Static", Static).update(_variations(comparison))
        self._draw()

    @on(ComparedRunsTable.Moved)
    def _draw(self) -> None:
        """Draw the band, with the current run."""
        current = self._table.current
        curves, selected = tuple(self._curves.values()), current.run.directory if current else None
        if not curves:
            return
        has_tints = has_shades(self) and not self.app.current_theme.ansi
        self.query_one(PlotView).show(lambda rows: band_plot(curves, selected, rows, has_tints=has_tints))
        self.refresh_bindings()


def _row(comparison: Comparison, at: int, best: RunCurve | None) -> ResultRow:
    compared = comparison.runs[at]
    run = compared.run
    colour = "success" if best and run is best.run else "primary" if run.status and run.status.live else ""
    differs = ", ".join(f"{row.label} {row.texts[at]}" for row in comparison.plan)
    speed = run.steps / run.seconds if run.seconds else None
    return ResultRow(run, printable_line(run_title(run)), colour, speed, run.seconds, compared.loss_function, differs)


def _variations(comparison: Comparison) -> Content:
    """The fields that vary in the plans, a line for each, and the equal ones."""
    width = max((len(row.label) for row in comparison.plan), default=0)
    lines = [Content.assemble((f"{row.label:<{width}}  ", "$text-muted"), _values(row)) for row in comparison.plan]
    return Content("\n").join([*lines, Content.styled(comparison.summary, "$text-muted")])


def _values(row: ComparedRow) -> str:
    """The range of numbers, or the values with their counts."""
    known: list[Any] = [value for value in row.values if isinstance(value, int | float) and not isinstance(value, bool)]
    counts: dict[str, int] = {}
    for text in row.texts:
        counts[text] = counts.get(text, 0) + 1
    if len(counts) <= _MOST_VALUES or len(known) < len(row.values):
        common = sorted(counts.items(), key=lambda each: -each[1])
        more = f", {len(common) - _MOST_VALUES:,} others" if len(common) > _MOST_VALUES else ""
        return ", ".join(f"{text} ({count:,})" for text, count in common[:_MOST_VALUES]) + more
    return f"{min(known):g} to {max(known):g}"
