"""Compare screen: charts that overlay several runs, and a table of their differences."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.events import ScreenResume
from textual.widgets import Static

from accel_engine.run import RunSummary
from accel_engine.run.runs.listing import summarize
from accel_engine.text import printable_fields
from accel_tui.host import Screens, open_screen
from accel_tui.run_list.columns import has_model
from accel_tui.run_list.comparison import ComparedRun, compare_runs
from accel_tui.run_state.run_follower import RunFollower
from accel_tui.screens.run_actions import COMPARE, RunActionsScreen, TargetRun, run_bindings
from accel_tui.widgets.chart_panels.compare_charts import CompareCharts
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.runs.compare_table import CompareTable
from accel_tui.widgets.top_bar import TopBar
from accel_tui.widgets.visibility import is_covered

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
        """Compose the charts, the table, and the line of equal settings."""
        yield TopBar(f"Compare {len(self._directories)} runs")
        with Container(id="body"):
            yield CompareCharts()
            with Container(id="comparison"):
                yield Static(id="about", markup=False)
                yield CompareTable()
        yield KeyBar()

    @property
    def selected_runs(self) -> Sequence[TargetRun]:
        """All runs."""
        return tuple(TargetRun(run.directory, run.info, has_model(run)) for run in self._runs)

    def action_back(self) -> None:
        """Go to the Runs screen, wherever this screen was opened from."""
        open_screen(self, Screens.RUNS)

    def on_mount(self) -> None:
        """Start following the runs."""
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
        self._describe()

    def on_resize(self) -> None:
        """Resize the table to the room that there is."""
        self._table.on_resize()
        self._describe()

    def _describe(self) -> None:
        """Show the names of the runs, if the table has no room for them, and what is equal."""
        about, found = self.query_one("#about", Static), self._table.comparison
        texts = [self._table.legend, Content(found.summary if found else "")]
        about.update(Content("\n").join(text for text in texts if text))
        about.styles.max_width = None if self.has_class("-narrow") else self._table.virtual_size.width

    def _set_full_screen(self, full: bool) -> None:
        self.set_class(full, "-full")

    @on(CompareCharts.VisibleStepsChanged)
    def _load_visible_steps(self, event: CompareCharts.VisibleStepsChanged) -> None:
        event.stop()
        for follower in self._followers:
            follower.load_visible_steps(event.visible_steps)


def _summaries(directories: Sequence[Path]) -> tuple[RunSummary, ...]:
    return tuple(printable_fields(summarize(each)) for each in directories)
