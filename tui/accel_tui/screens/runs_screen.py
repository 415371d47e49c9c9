"""Runs screen: lists, filters, compares, edits, continues and deletes runs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.events import ScreenResume
from textual.widgets import Input, Label

from accel_engine.run import RunSummary, Status, runs_directory
from accel_engine.text import printable
from accel_engine.words import numbers
from accel_tui.app_protocol import Screens, change_setting, open_screen, settings_of
from accel_tui.formatting.runs import lost_reason
from accel_tui.palette import Command, SearchedCommands
from accel_tui.screens.asking import awaiting
from accel_tui.screens.run_actions import ACTIONS, RUNS, RunActionsScreen, TargetRun, run_bindings, target_of
from accel_tui.settings.user_settings import RUN_COLUMNS, RUN_GROUPS
from accel_tui.widgets.key_bar import KeyBar, TopBar
from accel_tui.widgets.line_input import LineInput
from accel_tui.widgets.run_card import CardKey, RunCard
from accel_tui.widgets.runs_table import RunsTable

_INNER = " / "
"""Between the name of a group and the name of one in it, in the settings."""

_MOST_FOLDS = 200


class RunsCommands(SearchedCommands):
    """Palette commands that open a run by name."""

    def commands(self) -> Iterator[Command]:
        """A command per readable run."""
        for run in self.screen.query_one(RunsTable).runs or ():
            if run.info:
                yield f"Open {run.id}", f"{run.info.title}, {run.status}", partial(self._open, run)

    def _open(self, run: RunSummary) -> None:
        self.screen.post_message(RunsTable.Opened(run))


class FilterInput(LineInput):
    """The filter of the list."""

    BINDING_GROUP_TITLE = "Filter"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "To the list", id="runs.filter-submit", tooltip="Go to the matching runs"),
        Binding("escape", "clear", "Clear", id="runs.filter-clear", tooltip="Clear the filter"),
    ]

    async def action_clear(self) -> None:
        await self.app.run_action("screen.back")


class RunsScreen(RunActionsScreen):
    """Lists the runs of this machine."""

    CSS_PATH = "runs_screen.tcss"
    AUTO_FOCUS = "RunsTable"
    COMMANDS: ClassVar = {RunsCommands}
    BINDING_GROUP_TITLE = "Runs"
    PLACE = RUNS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", id="runs.filter", tooltip="Show only matching runs"),
        *run_bindings(RUNS),
        Binding("g", "group", "Group", id="runs.group", tooltip="Group the runs by data, model, tag, host, or not"),
        Binding("a", "select_columns", id="runs.columns", tooltip="Select the columns, and save them"),
        # For a key that is pressed before the table is mounted.
        Binding("enter", "open", id="runs.open-newest", tooltip="Open the newest run"),
    ]

    _filter_input = getters.query_one("#words", Input)

    def __init__(self) -> None:
        super().__init__()
        hint = f"No runs yet in {printable(str(runs_directory()))}. Press N for a new run, then s to start it."
        self.table = RunsTable(hint, selectable=True)
        self._statuses: dict[str, Status | None] = {}
        self._listed: tuple[RunSummary, ...] | None = None
        self._found = ""

    def compose(self) -> ComposeResult:
        settings = settings_of(self)
        self.table.set_reactive(RunsTable.grouping, settings.runs_group)
        self.table.set_reactive(RunsTable.chosen, settings.runs_columns)
        self.table.changed_groups.update(tuple(each.split(_INNER)) for each in settings.runs_folds)
        yield TopBar("Runs")
        with Horizontal(id="finding"):
            yield FilterInput(placeholder="/ filter, e.g. cnn  status:failed  tag:paper", id="words", compact=True)
            yield Label(id="found", markup=False)
        with Container(id="body"):
            yield self.table
            yield RunCard(self._card_keys)
        yield KeyBar()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what can be done with the selected runs, or else with the current one."""
        if action in ("group", "select_columns"):
            return bool(self.table.runs)
        if action == "filter":
            return bool(self.table.runs) and not isinstance(self.focused, Input)  # "/" is a letter there
        return super().check_action(action, parameters)

    @property
    def current_run(self) -> TargetRun | None:
        """The run under the cursor."""
        return target_of(self.table.current) if self.table.current else None

    @property
    def selected_runs(self) -> Sequence[TargetRun]:
        return tuple(map(target_of, self.table.selected_rows))

    @property
    def hidden_selected(self) -> str:
        return self.table.hidden_selected and f"{self.table.hidden_selected} by the filter"

    def take_changes(self) -> None:
        """Read the list again."""
        self.table.refresh_runs()

    def action_filter(self) -> None:
        self._filter_input.focus()

    def action_back(self) -> None:
        """Clear the filter, then the selection, then go back, above the app's first screen to New run."""
        if self._filter_input.has_focus or self.table.filter:
            self._filter_input.value = ""
            self.table.focus()
        elif self.table.selected:
            self.table.selected = frozenset()
        elif len(self.app.screen_stack) > 2:  # a run that the app was opened on leads here by escape
            self.go_back()
        else:
            open_screen(self, Screens.NEW_RUN)

    def action_group(self) -> None:
        """Group the runs in the next way."""
        at = RUN_GROUPS.index(self.table.grouping)
        self.table.grouping = RUN_GROUPS[(at + 1) % len(RUN_GROUPS)]
        change_setting(self, "runs.group", self.table.grouping)
        self._describe()

    @awaiting
    async def action_select_columns(self) -> None:
        """Ask for the columns."""
        from accel_tui.screens.select_charts_screen import SelectColumnsScreen  # seldom needed
        from accel_tui.widgets.chart_panels.run_panels import Panel

        panels = [Panel(title, title) for title in RUN_COLUMNS]
        shown = self.table.chosen or self.table.visible_titles
        chosen = await self.ask(SelectColumnsScreen(panels, shown))
        if chosen is not None:
            self.table.chosen = chosen
            change_setting(self, "runs.columns", chosen)

    @on(RunsTable.Folded)
    def _save_folds(self) -> None:
        """Keep the folds for the next time."""
        change_setting(self, "runs.folds", tuple(sorted(map(_INNER.join, self.table.changed_groups))[:_MOST_FOLDS]))

    def action_open(self) -> None:
        self.table.action_open()

    @on(ScreenResume)
    def _resume(self) -> None:
        self.table.refresh_runs()

    @on(Input.Changed, "#words")
    def _filter(self, event: Input.Changed) -> None:
        self.table.filter = event.value

    @on(Input.Submitted, "#words")
    def _focus_table(self) -> None:
        self.table.focus()

    @on(RunsTable.Listed)
    def _update_list(self, event: RunsTable.Listed) -> None:
        """Notify of newly lost runs."""
        if event.runs is not self._listed:
            self._listed = event.runs
            self.set_class(not event.runs, "-empty")
            statuses = {run.id: run.status for run in event.runs}
            for run in [run for run in event.runs if statuses[run.id] is Status.LOST]:
                before = self._statuses.get(run.id)
                if before is not None and before.live:
                    self.notify(f"{run.id}: {lost_reason(run.info)}.", title="Run lost", severity="error", markup=False)
            self._statuses = statuses
        self._describe()

    @on(RunsTable.Moved)
    def _describe(self) -> None:
        subject = self.table.current or self.table.current_group
        self.query_one(RunCard).show(subject)
        self.set_class(subject is None and self.table.runs is not None, "-nothing")
        if self.table.runs is None:
            self._show_found("loading runs…")
            return
        everything, shown, selected_rows = len(self.table.runs), len(self.table.shown), len(self.table.selected_rows)
        counts = [f"{shown:,} of " * bool(self.table.filter) + numbers.counted(everything, "run")]
        counts[0] += f" by {self.table.grouping}" * (self.table.grouping != "none")
        counts += [f"{selected_rows} selected{self.table.hidden_selected}"] * bool(selected_rows)
        counts += ["reading the others…"] * self.table.is_partial
        self._show_found(", ".join(counts))
        self.refresh_bindings()

    def _show_found(self, text: str) -> None:
        """Say what the list has; the screen is laid out for it."""
        if text != self._found:
            self._found = text
            self.query_one("#found", Label).update(text)

    def _card_keys(self) -> Iterator[CardKey]:
        """The actions that the current run allows, with their keys."""
        if self.table.current is None:
            return
        yield CardKey("⏎", "Open", "open")
        for binding in run_bindings(RUNS):
            if binding.action in ACTIONS and ACTIONS[binding.action].is_offered((target_of(self.table.current),)):
                yield CardKey(self._first_key(binding), binding.description, binding.action)

    def _first_key(self, binding: Binding) -> str:
        """The first key of a binding, as shown."""
        return self.app.get_key_display(replace(binding, key=binding.key.partition(",")[0]))
