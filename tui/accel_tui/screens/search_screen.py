"""Search screen: the trials of a search as curves, plots and a table, and its keys."""

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import ScreenResume
from textual.notifications import SeverityLevel
from textual.timer import Timer
from textual.widgets import Tab, Tabs

from accel_engine.run import runs_directory
from accel_engine.search import launch
from accel_engine.search.trial import Trial
from accel_engine.search.trial_plan import plan_to_train
from accel_engine.text import printable_line
from accel_tui.app_protocol import Screens, errors_shown, open_screen
from accel_tui.follower import Unreadable
from accel_tui.screens.asking import CANCEL, Answer, QuestionScreen, awaiting
from accel_tui.screens.run_actions import SEARCH, RunActionsScreen, TargetRun
from accel_tui.screens.run_questions import STOP as STOP_TRIAL
from accel_tui.screens.search_keys import BINDINGS, CountScreen, is_offered
from accel_tui.study_state.state import StudyState
from accel_tui.study_state.study_follower import Answered, StudyFollower, StudyRequest
from accel_tui.study_state.trial_columns import trial_columns
from accel_tui.terminal.dirty_regions import DirtyRegionScreen
from accel_tui.widgets.key_bar import KeyBar, TopBar
from accel_tui.widgets.search.study_view import VIEWS, StudyView, views_of
from accel_tui.widgets.search.trials_table import SearchHeader, TrialLoss, TrialReason, TrialsTable
from accel_tui.widgets.visibility import is_covered

SETTLE_SECONDS = 0.25
"""Seconds that the cursor stays on a trial before the steps of its run are read."""

_TAB = "-tab"

QUIT = Answer("quit", "Quit", "q")
STOP = Answer("stop", "Stop the search", "s", is_destructive=True)
PRUNE = Answer("prune", "Prune", "p", is_destructive=True)


class SearchScreen(DirtyRegionScreen, RunActionsScreen):
    """Shows a search while it runs, and afterwards.

    Args:
        directory: The study's directory.
    """

    CSS_PATH = "search_screen.tcss"
    AUTO_FOCUS = "TrialsTable"
    BINDING_GROUP_TITLE = "Search"
    PLACE = SEARCH
    BINDINGS: ClassVar[list[BindingType]] = [*BINDINGS]

    _table = getters.query_one(TrialsTable)
    _view = getters.query_one(StudyView)
    _loss = getters.query_one(TrialLoss)

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self.state = StudyState(printable_line(directory.name))
        """The latest state of the search."""
        self._problem = ""
        self._has_pictures = False
        self._follower = StudyFollower(directory)
        self._settling: Timer | None = None

    def compose(self) -> ComposeResult:
        """Compose progress, best value, the tabs, the view, and the table of trials."""
        yield TopBar(f"Search  {printable_line(self.directory.name)}")
        yield SearchHeader()
        yield Tabs(
            *(Tab(f"{number} {label}", id=f"{name}{_TAB}") for number, (name, label) in enumerate(VIEWS.items(), 1))
        )
        yield Container(id="pictures", classes="panel")
        yield TrialsTable("No trials yet: the first one is about to begin.", selectable=True).add_class("panel")
        yield TrialReason()
        yield KeyBar()

    def on_mount(self) -> None:
        """Start following the study."""
        self.query_one(Tabs).can_focus = False  # the table keeps the keys
        self.call_after_refresh(self._mount_pictures)

    async def _mount_pictures(self) -> None:
        """Mount the pictures after the first paint, which would take longer with them; then follow the study."""
        if not self.is_attached:
            return
        await self.query_one("#pictures").mount(StudyView(), TrialLoss())
        self._has_pictures = True
        self._show_view()
        self._follow()

    @work(exclusive=True, exit_on_error=False, group="follow")
    async def _follow(self) -> None:
        async for news in self._follower.news(self.app):
            match news:
                case Answered():
                    self._take_answer(news)
                case Unreadable():
                    self._take_problem(news.problem)
                case _:
                    self._take_news()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what can be done with the trial under the cursor, and with the search."""
        if action in ("next_tab", "shift"):
            return self._has_pictures
        if action == "tab":
            return list(VIEWS)[int(str(parameters[0])) - 1] in views_of(self.state)
        return is_offered(action, self.state, self._trial) and super().check_action(action, parameters)

    @property
    def current_run(self) -> TargetRun | None:
        """The run of the trial under the cursor."""
        return next(_targets([self._trial] if self._trial else []), None)

    @property
    def selected_runs(self) -> tuple[TargetRun, ...]:
        """The runs of the selected trials."""
        return tuple(_targets(self._table.selected_rows)) if self.is_mounted else ()

    @property
    def _trial(self) -> Trial | None:
        """The trial under the cursor."""
        return self._table.current if self.is_mounted else None

    def _take_news(self) -> None:
        """Show the latest state."""
        before, self.state = self.state, self._follower.latest()
        self._problem = ""
        if is_covered(self):
            return  # it is shown when the screen is back
        self._show()
        if before.is_running is not self.state.is_running:
            self.refresh_bindings()

    @on(ScreenResume)
    def _show(self) -> None:
        if not self.is_mounted or self.state.definition is None:
            return
        state = self.state
        self._show_tabs()
        self._table.show_rows(tuple(state.trials.values()), trial_columns(state))
        self._view.set_reactive(StudyView.selected, self._selected_number)
        self._view.state = state
        self._show_reason()
        self.query_one(SearchHeader).show(state, self._problem)
        self._follow_trial()

    def _show_tabs(self) -> None:
        """Show the tabs of the views that the search can have."""
        tabs, views = self.query_one(Tabs), views_of(self.state)
        for name in VIEWS:
            (tabs.show if name in views else tabs.hide)(f"{name}{_TAB}")

    def _show_reason(self) -> None:
        self.query_one(TrialReason).show(self._trial, self._table)

    @property
    def _selected_number(self) -> int | None:
        return self._trial.number if self._trial else None

    def _take_problem(self, problem: str) -> None:
        self._problem = printable_line(problem)
        self.query_one(SearchHeader).show(self.state, self._problem)

    def _take_answer(self, news: Answered) -> None:
        """Show the answer to a command."""
        severity: SeverityLevel = "information" if news.obeyed else "warning"
        title = "" if news.obeyed else f"Not done: {news.request.name.replace('_', ' ')}"
        self.notify(news.answer, title=title, severity=severity, markup=False)

    @on(TrialsTable.Moved)
    def _move(self) -> None:
        """Highlight the trial under the cursor, and show its reason, for which its line has no room."""
        self._view.selected = self._selected_number
        self._show_reason()
        self.refresh_bindings()
        self._follow_trial()

    def _follow_trial(self) -> None:
        """Read the steps of the trial under the cursor once it stays there."""
        if self._settling:
            self._settling.stop()
        self._settling = self.set_timer(SETTLE_SECONDS, self._show_loss)

    def _show_loss(self) -> None:
        trial = self._trial
        self._loss.follow(trial, _run_of(trial) if trial else None)

    @on(TrialsTable.Opened)
    def _open(self, event: TrialsTable.Opened) -> None:
        run = _run_of(event.row)
        if run is None:
            where = f": it trains on {event.row.machine}" if event.row.machine else " yet"
            self.notify(f"Trial {event.row.number} has no run here{where}.", severity="warning", markup=False)
        else:
            self._open_run(run)

    @work(exclusive=True, exit_on_error=False, group="open")
    async def _open_run(self, run: Path) -> None:
        if await asyncio.to_thread(run.is_dir):
            open_screen(self, Screens.RUN, run)
        else:
            self.notify(f"The run {run.name} was deleted.", severity="warning", markup=False)

    @on(Tabs.TabActivated)
    def _show_tab(self, event: Tabs.TabActivated) -> None:
        event.stop()
        if self._has_pictures:
            self._show_view()

    def _show_view(self) -> None:
        """Show the view of the active tab."""
        name = self.query_one(Tabs).active.removesuffix(_TAB)
        self._view.view = name
        self._loss.set_class(name == "curves", "-curves")

    def action_tab(self, number: int) -> None:
        """Show a view by its number."""
        self.query_one(Tabs).active = f"{list(VIEWS)[number - 1]}{_TAB}"

    def action_next_tab(self, views: int) -> None:
        """Show the next view."""
        names = views_of(self.state)
        self.action_tab(list(VIEWS).index(names[(names.index(self._view.view) + views) % len(names)]) + 1)

    def action_shift(self, by: int) -> None:
        """Show the next parameter, or pair of parameters."""
        self._view.shift += by

    def action_maximize(self) -> None:
        """Toggle the view alone, and the table below it."""
        self._table.toggle_class("-hidden")
        self._show_reason()

    @awaiting
    async def action_stop_trial(self) -> None:
        """Ask, then stop the trial under the cursor, as the screen of its run does."""
        if trial := self._trial:
            detail = "What it has reached counts. R trains it for more epochs later."
            if (
                await self.ask(QuestionScreen(f"Stop trial {trial.number}?", detail, (STOP_TRIAL, CANCEL)))
                == STOP_TRIAL.id
            ):
                self._follower.send(StudyRequest("stop_trial", trial.number))

    @awaiting
    async def action_prune(self) -> None:
        """Ask, then prune the trial under the cursor."""
        if trial := self._trial:
            question = QuestionScreen(f"Prune trial {trial.number}?", "It ends now.", (CANCEL, PRUNE))
            if await self.ask(question) == PRUNE.id:
                self._follower.send(StudyRequest("prune", trial.number))

    @awaiting
    async def action_prolong(self) -> None:
        """Ask for how many more epochs to train the trial under the cursor."""
        if trial := self._trial:
            detail = "It continues from its last checkpoint. Number of epochs more:"
            asked = CountScreen(f"Prolong trial {trial.number}", detail, "epoch", 5, "trains {} more")
            epochs = await self.ask(asked)
            if epochs is not None:
                self._follower.send(StudyRequest("prolong", trial.number, epochs))

    @awaiting
    async def action_change_trials(self) -> None:
        """Ask for another number of trials."""
        if self.state.definition:
            count = self.state.definition.trials
            title = "Change the number of trials"
            trials = await self.ask(CountScreen(title, "Number of trials:", "trial", count, "searches with {}"))
            if trials is not None:
                self._follower.send(StudyRequest("set_trials", argument=trials))

    @awaiting
    async def action_stop_search(self) -> None:
        """Ask, then stop the search."""
        detail = "Its live trials stop with a checkpoint. R continues the search later."
        if await self.ask(QuestionScreen("Stop the search?", detail, (CANCEL, STOP))) == STOP.id:
            self._follower.send(StudyRequest("stop"))

    @awaiting
    async def action_quit(self) -> None:
        """Quit; asks first while the search runs."""
        detail = f"It runs on; accel-tui search --resume {printable_line(self.directory.name)} shows it again."
        question = QuestionScreen("Quit accel-tui? The search is running.", detail, (CANCEL, QUIT))
        if not self.state.is_running or await self.ask(question) == QUIT.id:
            self.app.exit()

    @work(exclusive=True, exit_on_error=False, group="resume")
    async def action_resume_search(self) -> None:
        """Continue the search, in another process."""
        with errors_shown(self, "Not continued"):
            await asyncio.to_thread(launch.resume_study, self.directory)

    def action_take(self) -> None:
        """Take the plan of the trial under the cursor into the form."""
        self._take(self._trial)

    def action_take_best(self) -> None:
        """Take the best plan into the form."""
        self._take(self.state.best)

    def action_show_searches(self) -> None:
        """List all searches."""
        open_screen(self, Screens.SEARCHES)

    def _take(self, trial: Trial | None) -> None:
        if trial is None or self.state.definition is None:
            return
        with errors_shown(self, f"Trial {trial.number} has no valid plan"):
            open_screen(self, Screens.NEW_RUN, plan_to_train(self.state.definition, trial))


def _run_of(trial: Trial) -> Path | None:
    """The directory of a trial's run; ``None`` if it has none here."""
    return runs_directory() / trial.run if trial.run else None


def _targets(trials: Iterable[Trial]) -> Iterator[TargetRun]:
    """The runs of trials that have one; whether one has a model is looked up when that is needed."""
    return (TargetRun(run, has_model=True) for trial in trials if (run := _run_of(trial)))
