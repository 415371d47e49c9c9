"""The tables of trials and of searches; progress of a search; reason and loss of the trial under the cursor."""

from collections.abc import Hashable
from pathlib import Path

from rich.cells import cell_len
from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from accel_engine.search.trial import Trial
from accel_engine.words import numbers
from accel_tui.follower import NewState
from accel_tui.formatting.table_columns import SortOrder
from accel_tui.run_state.run_follower import RunFollower
from accel_tui.run_state.state import RunState
from accel_tui.study_state import study_texts
from accel_tui.study_state.state import StudyState
from accel_tui.study_state.study_list import ListedStudy
from accel_tui.study_state.trial_columns import reason_of
from accel_tui.widgets.chart.chart import PointedChart
from accel_tui.widgets.chart.chart_view import ChartSeries
from accel_tui.widgets.chart_panels.run_panels import measure_colour, points_of, validation_colour
from accel_tui.widgets.table import Table

_TITLE_FRAME = 4
"""Columns of a line with a title that the title cannot have."""


class TrialsTable(Table[Trial]):
    """The trials of a search."""

    BINDING_GROUP_TITLE = "Trials"

    order: reactive[SortOrder] = reactive(SortOrder("trial", reversed=True), repaint=False, init=False)

    def key_of(self, row: Trial) -> Hashable:
        """The number of a trial."""
        return row.number


class StudiesTable(Table[ListedStudy]):
    """The searches of this machine."""

    BINDING_GROUP_TITLE = "Searches"

    order: reactive[SortOrder] = reactive(SortOrder("created"), repaint=False, init=False)

    def key_of(self, row: ListedStudy) -> Hashable:
        """The directory of a search."""
        return row.directory


class TrialReason(Static):
    """The reason of the trial under the cursor, if the title has no room for all of it."""

    DEFAULT_CSS = "TrialReason { display: none; height: auto; max-height: 5; padding: 0 1; color: $text-muted; }"

    def __init__(self) -> None:
        super().__init__(markup=False)

    def show(self, trial: Trial | None, table: TrialsTable) -> None:
        """Show the reason of a trial, and set the title of the table."""
        reason = reason_of(trial) if trial else ""
        title = f"trial {trial.number} {trial.state}: {reason}" if trial and reason else ""
        table.border_title = Content(title)
        self.display = table.display and cell_len(title) > self.screen.size.width - _TITLE_FRAME
        self.update(reason)


LOSS = "loss"
"""The series."""


class TrialLoss(PointedChart):
    """A chart of the loss of one trial; empty for a trial without a run."""

    _run: Path | None = None

    def on_mount(self) -> None:
        """Format the values as elsewhere."""
        super().on_mount()
        self.format = numbers.metric

    def follow(self, trial: Trial | None, run: Path | None) -> None:
        """Show the loss of a trial.

        Args:
            trial: The trial.
            run: Directory of its run; ``None`` for none.
        """
        self.set_class(run is not None, "-read")
        if run == self._run:
            return
        self.workers.cancel_group(self, "follow")
        self._run = run
        self.title = f"loss of trial {trial.number}" if trial else "loss"
        self.empty = "no steps recorded"
        self.series = ()
        if run is not None:
            self._follow_run(run)

    @work(exclusive=True, exit_on_error=False, group="follow")
    async def _follow_run(self, run: Path) -> None:
        follower = RunFollower(run)
        async for news in follower.news(self.app):
            if isinstance(news, NewState):
                self._show(follower.latest())

    def _show(self, state: RunState) -> None:
        self.end = _end(state)
        colour = measure_colour(LOSS)
        training = ChartSeries("step", state.curves[LOSS], style=colour) if LOSS in state.curves else None
        points = points_of(state.validation_of(LOSS))
        validation = ChartSeries("validation", points=points, style=validation_colour(colour)) if points else None
        self.series = tuple(each for each in (training, validation) if each)


def _end(state: RunState) -> int | None:
    """The last step that the run will have, if known."""
    return state.step if state.has_ended else state.last_step


class SearchHeader(Vertical):
    """Two lines: progress, and the best trial beside its plan trained again; progress alone has both."""

    DEFAULT_CSS = """
    SearchHeader {
        height: 2;
        Static { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
        &.-progress-only #progress { height: 2; text-wrap: wrap; }
        &.-progress-only #best { display: none; }
    }
    """

    def compose(self) -> ComposeResult:
        """Compose the lines."""
        yield Static("reading the search…", id="progress", markup=False)
        yield Static(id="best", markup=False)

    def show(self, state: StudyState, problem: str) -> None:
        """Show a state, or why it cannot be read."""
        word, colour = study_texts.state_of_study(state)
        progress = Content.assemble((word, f"${colour}"), ("  " + study_texts.progress_text(state), "$text-muted"))
        self._update("progress", Content.styled(problem, "$text-error") if problem else progress)
        best = best_line(state)
        self._update("best", best)
        self.set_class(not best.plain, "-progress-only")

    def _update(self, line: str, content: Content) -> None:
        shown = self.query_one(f"#{line}", Static)
        if shown.content != content:
            shown.update(content)


def best_line(state: StudyState) -> Content:
    """The search's own best, and beside it the mean and the spread of the plan trained again."""
    parts: list[tuple[str, str]] = [(study_texts.best_text(state, state.monitor), "$success")]
    if confirmed := study_texts.confirmation_text(state):
        parts.append((("  ·  " if parts[0][0] else "") + confirmed, "bold"))
    if len(state.objectives) > 1 and state.front:
        parts.append((f"  ·  {len(state.front)} on the front", "$text-muted"))
    return Content.assemble(*parts)
