"""Runs side by side: their curves in the same charts, and a table of what differs."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import ScreenResume
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static

from accel_engine.run import RunSummary
from accel_engine.run.listing import summarize
from accel_engine.text import printable_fields
from accel_tui.run.run_follower import RunFollower
from accel_tui.runs.comparison import ComparedRun, compare
from accel_tui.widgets.charts.compare_charts import CompareCharts
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.runs.compare_table import CompareTable
from accel_tui.widgets.top_bar import TopBar
from accel_tui.widgets.visibility import is_covered

if TYPE_CHECKING:
    from accel_tui.app import AccelApp

NEWS_SECONDS = 0.25
"""How long news of one run wait for those of the others."""

SUMMARY_SECONDS = 2.0
"""How often the runs' results are read anew, as long as one of them is live."""


class CompareScreen(Screen[None]):
    """Follows several runs.

    Args:
        directories: Theirs, two or more, and at most :data:`accel_tui.runs.comparison.MOST`.
    """

    CSS_PATH = "compare_screen.tcss"
    AUTO_FOCUS = "CompareCharts"
    BINDING_GROUP_TITLE = "Compare"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "app.focus_next", "Table", id="compare.table", tooltip="Go from the charts to the table"),
        Binding("escape", "back", "Back", id="compare.back", tooltip="Go back to the list of runs"),
    ]

    app: "AccelApp"

    _charts = getters.query_one(CompareCharts)
    _table = getters.query_one(CompareTable)

    class News(Message):
        """One of the runs has come further."""

    @dataclass
    class Summarized(Message):
        """The runs' results were read."""

        runs: tuple[RunSummary, ...]

    def __init__(self, directories: Sequence[Path]) -> None:
        super().__init__()
        self._directories = tuple(directories)
        self._followers = [
            RunFollower(directory, on_news=self._tell, on_problem=lambda _: self._tell()) for directory in directories
        ]
        self._runs: tuple[RunSummary, ...] = ()
        self._is_waiting = False

    def compose(self) -> ComposeResult:
        """Charts; beside or below them the table, and what is equal."""
        yield TopBar(f"Compare {len(self._directories)} runs")
        with Container(id="sides"):
            yield CompareCharts()
            with Container(id="told"):
                yield Static(id="equal", markup=False)
                yield CompareTable()
        yield KeyBar()

    def action_back(self) -> None:
        """Go to the list of runs, wherever this was opened from."""
        self.app.show_runs()

    def on_mount(self) -> None:
        """Begin to follow."""
        self._follow()
        self._summarize()
        self.set_interval(SUMMARY_SECONDS, self._read_anew)
        self.watch(self._charts, "full", self._give_room, init=False)

    def on_unmount(self) -> None:
        """Let the followers end."""
        for follower in self._followers:
            follower.stop()

    @work(thread=True, exclusive=True, exit_on_error=False, group="follow")
    def _follow(self) -> None:
        app = self.app
        # In threads of their own: the program has few for its workers, and these would take all of them for long.
        with ThreadPoolExecutor(len(self._followers)) as threads:
            list(threads.map(lambda follower: follower.run(lambda: app.is_running), self._followers))

    @work(thread=True, exclusive=True, exit_on_error=False, group="summarize")
    def _summarize(self) -> None:
        self.post_message(self.Summarized(tuple(printable_fields(summarize(each)) for each in self._directories)))

    def _read_anew(self) -> None:
        if any(run.status and run.status.live for run in self._runs) and not is_covered(self):
            self._summarize()

    def _tell(self) -> None:
        self.post_message(self.News())

    @on(News)
    def _wait(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self.set_timer(NEWS_SECONDS, self._take)

    @on(Summarized)
    def _take_summaries(self, event: Summarized) -> None:
        self._runs = event.runs
        self._take()

    @on(ScreenResume)
    def _take(self) -> None:
        self._is_waiting = False
        if not self._runs or is_covered(self):
            return
        sides = tuple(
            ComparedRun(run, follower.take()) for run, follower in zip(self._runs, self._followers, strict=True)
        )
        found = compare(sides)
        self._charts.sides = sides
        self._table.comparison = found
        self.query_one("#equal", Static).update(found.summary)

    def on_resize(self) -> None:
        """Give the table what room there is now, which it takes no more of than it needs."""
        self._table.on_resize()

    def _give_room(self, full: bool) -> None:
        self.set_class(full, "-full")

    @on(CompareCharts.Looked)
    def _look(self, event: CompareCharts.Looked) -> None:
        event.stop()
        for follower in self._followers:
            follower.look(event.part)
