"""Runs screen: lists, filters, compares, edits, continues and deletes runs."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.events import ScreenResume
from textual.screen import Screen
from textual.widgets import Input, Label, Static

from accel_engine.errors import AccelError
from accel_engine.process.start_run import CONTINUABLE
from accel_engine.run import Annotations, RunSummary, Status, runs_directory
from accel_engine.run.runs.removal import Contents, contents, remove
from accel_engine.run.store.annotations import set_tags, write_annotations
from accel_engine.text import printable, printable_fields, printable_line
from accel_tui.formatting import numbers
from accel_tui.formatting.run_damage import how_lost
from accel_tui.host import Screens, host_of, open_screen
from accel_tui.palette import Command, SearchedCommands
from accel_tui.run_list.columns import has_model
from accel_tui.run_list.comparison import MAX_COMPARED_RUNS, mixed
from accel_tui.screens.edit_run_screen import Change, EditRunScreen, RunsToEdit
from accel_tui.screens.question_screen import CANCEL, Answer, QuestionScreen
from accel_tui.screens.train_longer_screen import ask_to_train_longer
from accel_tui.screens.trained_run import open_trained
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.line_input import LineInput
from accel_tui.widgets.runs.runs_table import RunsTable
from accel_tui.widgets.runs.selected_run import SelectedRun
from accel_tui.widgets.top_bar import TopBar

DELETE = Answer("delete", "Delete", "d", is_destructive=True)


_NEED_RUNS = frozenset(
    {
        "filter",
        "advice",
        "compare",
        "bench",
        "export",
        "predict",
        "edit",
        "duplicate",
        "continue",
        "train_longer",
        "delete",
    }
)  # actions that need a run


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
        """Clear the filter and go to the list."""
        await self.app.run_action("screen.back")


class RunsScreen(Screen[None]):
    """Lists the runs of this machine."""

    CSS_PATH = "runs_screen.tcss"
    AUTO_FOCUS = "RunsTable"
    COMMANDS: ClassVar = {RunsCommands}
    BINDING_GROUP_TITLE = "Runs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", id="runs.filter", tooltip="Show only matching runs"),
        Binding("c", "compare", "Compare", id="runs.compare", tooltip="Compare the selected runs"),
        Binding(
            "v", "evaluate", "Evaluate", id="runs.evaluate", tooltip="Evaluate the selected runs on the same examples"
        ),
        Binding("A", "advice", "Advice", id="runs.advice", tooltip="Show what is wrong with the run, and what to do"),
        Binding("b", "bench", "Bench", id="runs.bench", tooltip="Measure the inference of the selected runs"),
        Binding("E", "export", "Export", id="runs.export", tooltip="Export the run's trained model to other formats"),
        Binding("P", "predict", "Predict", id="runs.predict", tooltip="Predict examples with the run's trained model"),
        Binding(
            "e", "edit", "Edit", id="runs.edit", tooltip="Edit name, note and tags; or the tags of all selected runs"
        ),
        Binding("n", "duplicate", "Duplicate", id="runs.duplicate", tooltip="Make a new run from the plan of this one"),
        Binding("R", "continue", "Continue", id="runs.continue", tooltip="Continue from the run's last checkpoint"),
        Binding("R", "train_longer", "Train longer", id="runs.continue", tooltip="Continue for more epochs"),
        Binding(
            "D,delete", "delete", "Delete", id="runs.delete", tooltip="Delete the run, or all selected runs; asks first"
        ),
        # For a key that is pressed before the table is mounted.
        Binding("enter", "open", id="runs.open-newest", tooltip="Open the newest run"),
        Binding(
            "escape", "back", "Back", id="runs.back", tooltip="Clear the filter, then the selection, then go to New run"
        ),
        Binding(
            "S", "app.open_searches", "Searches", id="runs.searches", tooltip="Show the searches for the best plan"
        ),
        Binding("p", "app.show_plan", "New run", id="runs.new-run", tooltip="Go to the New run form"),
        Binding("Q", "app.show_queue", "Queue", id="runs.queue", tooltip="Show the runs that wait for free devices"),
    ]

    _filter_input = getters.query_one("#words", Input)

    def __init__(self) -> None:
        super().__init__()
        self.table = RunsTable(selectable=True)
        self._statuses: dict[str, Status | None] = {}

    def compose(self) -> ComposeResult:
        """Compose the filter, the table, the empty text and the details of the current run."""
        yield TopBar("Runs")
        with Horizontal(id="finding"):
            yield FilterInput(placeholder="/ filter, e.g. cnn  status:failed  tag:paper", id="words", compact=True)
            yield Label(id="found", markup=False)
        yield self.table
        yield Static(id="empty", markup=False)
        yield SelectedRun()
        yield KeyBar()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what can be done with the selected runs, or else with the current one."""
        del parameters
        runs, current = self._target_runs, self.table.current
        if action in _NEED_RUNS and not self.table.runs:
            return False
        match action:
            case "filter":
                return not isinstance(self.focused, Input)  # "/" is a letter there
            case "advice":
                return current is not None and current.info is not None and not current.info.bench
            case "export" | "predict":
                return current is not None and has_model(current)
            case "bench" | "evaluate":
                return bool(runs) and all(map(has_model, runs))
            case "edit":
                return bool(runs) and all(run.info for run in runs)
            case "delete":
                return bool(runs) and not any(run.status and run.status.live for run in runs)
            case "continue" | "train_longer" | "duplicate":
                if current is None or current.info is None or current.info.plan is None:
                    return False
                if action == "duplicate":
                    return True
                statuses = CONTINUABLE if action == "continue" else (Status.FINISHED,)
                return current.info.status in statuses and current.checkpoint > 0
        return True

    @property
    def _target_runs(self) -> tuple[RunSummary, ...]:
        """The selected runs, or else the current one."""
        return self.table.selected_rows or ((self.table.current,) if self.table.current else ())

    def action_filter(self) -> None:
        """Focus the filter."""
        self._filter_input.focus()

    def action_back(self) -> None:
        """Clear the filter, then the selection, then go to New run."""
        if self._filter_input.has_focus or self.table.filter:
            self._filter_input.value = ""
            self.table.focus()
        elif self.table.selected:
            self.table.selected = frozenset()
        else:
            open_screen(self, Screens.NEW_RUN)

    def action_open(self) -> None:
        """Open the current run."""
        self.table.action_open()

    def action_compare(self) -> None:
        """Compare the selected runs."""
        runs = self.table.selected_rows
        readable: list[Path] = [run.directory for run in runs if run.info]
        self.app.clear_notifications()  # an earlier toast would cover the charts
        if problem := mixed(runs):
            self.notify(problem, severity="warning", markup=False)
            return
        if len(readable) > MAX_COMPARED_RUNS:
            self.notify(
                f"At most {MAX_COMPARED_RUNS} runs can be compared: "
                f"showing the first {MAX_COMPARED_RUNS} of {len(readable)}."
            )
        if len(readable) > 1:
            open_screen(self, Screens.COMPARE, tuple(readable[:MAX_COMPARED_RUNS]))
        else:
            self.notify("Select two or more runs with space, then compare them.", severity="warning")

    def action_evaluate(self) -> None:
        """Evaluate the selected runs, or else the current one, on the same examples."""
        open_screen(self, Screens.EVALUATE, [run.directory for run in self._target_runs])

    def action_advice(self) -> None:
        """Show the advice on the current run."""
        if self.table.current:
            open_screen(self, Screens.ADVICE, self.table.current.directory)

    def action_bench(self) -> None:
        """Measure the inference of the selected runs, or else of the current one."""
        directories = [run.directory for run in self._target_runs]
        open_trained(self, directories, partial(open_screen, self, Screens.BENCH, directories))

    def action_export(self) -> None:
        """Export the trained model of the current run."""
        if self.table.current:
            directory = self.table.current.directory
            open_trained(self, (directory,), partial(open_screen, self, Screens.EXPORT, directory))

    def action_predict(self) -> None:
        """Predict examples with the trained model of the current run."""
        if self.table.current:
            directory = self.table.current.directory
            open_trained(self, (directory,), partial(open_screen, self, Screens.PREDICT, directory))

    def action_continue(self) -> None:
        """Continue the current run from its last checkpoint."""
        if self.table.current:
            host_of(self).launcher.continue_run(self.table.current.directory)

    def action_train_longer(self) -> None:
        """Ask for the number of epochs, then continue from the last checkpoint."""
        if self.table.current:
            ask_to_train_longer(self, self.table.current)

    def action_duplicate(self) -> None:
        """Open New run with the plan of the current run."""
        if self.table.current and self.table.current.info:
            open_screen(self, Screens.NEW_RUN, self.table.current.info.plan)

    def action_edit(self) -> None:
        """Edit name, note and tags of a run, or the tags of the selected runs."""
        runs = self._target_runs
        info = runs[0].info
        if info is None:
            return
        shown = printable_fields(info)
        question = RunsToEdit(
            [printable_line(run.id) for run in runs], shown.annotations, str(shown.plan_values.get("name") or "")
        )

        def label(change: Change | None) -> None:
            if isinstance(change, Annotations):
                self._write(lambda: write_annotations(info.directory, lambda _: change))
            elif change:
                self._write(*(partial(set_tags, run.directory, change) for run in runs))

        self.app.push_screen(EditRunScreen(question), label)

    def action_delete(self) -> None:
        """Read the sizes of the target runs, then ask."""
        self._read_contents(self._target_runs)

    @work(thread=True, exclusive=True, exit_on_error=False, group="measure")
    def _read_contents(self, runs: tuple[RunSummary, ...]) -> None:
        try:
            self.call_later(self._ask_to_delete, runs, [contents(run.directory) for run in runs])
        except AccelError as error:
            self.app.notify(str(error), severity="error", markup=False)

    def _ask_to_delete(self, runs: Sequence[RunSummary], found: Sequence[Contents]) -> None:
        def delete(answer: str | None) -> None:
            if answer == "delete":
                self._write(*(partial(remove, run.directory) for run in runs))

        title = f"run {runs[0].id}" if len(runs) == 1 else f"{len(runs)} runs"
        question, detail = printable(f"Delete {title}?"), printable(_deletion_detail(runs, found))
        self.app.push_screen(QuestionScreen(question, detail, (CANCEL, DELETE)), delete)

    @work(thread=True, exit_on_error=False, group="write")
    def _write(self, *changes: Callable[[], object]) -> None:
        """Apply each change; notify of those that fail."""
        for change in changes:
            try:
                change()
            except AccelError as error:
                self.app.notify(str(error), severity="error", markup=False)
        self.call_later(self.table.refresh_runs)

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
        """Update the empty text, and notify of newly lost runs."""
        self.set_class(not event.runs, "-empty")
        self.query_one("#empty", Static).update(
            f"No runs yet in {printable(str(runs_directory()))}.\n\nPress p for a new run, then s to start it."
        )
        for run in event.runs:
            before = self._statuses.get(run.id)
            if run.status is Status.LOST and before is not None and before.live:
                self.notify(f"{run.id}: {how_lost(run.info)}.", title="Run lost", severity="error", markup=False)
        self._statuses = {run.id: run.status for run in event.runs}
        self._describe()

    @on(RunsTable.Moved)
    def _describe(self) -> None:
        self.query_one(SelectedRun).show_run(self.table.current)
        if self.table.runs is None:
            self.query_one("#found", Label).update("loading runs…")
            return
        everything, shown, selected_rows = len(self.table.runs), len(self.table.shown), len(self.table.selected_rows)
        counts = [f"{shown:,} of " * bool(self.table.filter) + numbers.counted(everything, "run")]
        self.query_one("#found", Label).update(", ".join(counts + [f"{selected_rows} selected"] * bool(selected_rows)))
        self.refresh_bindings()


def _deletion_detail(runs: Sequence[RunSummary], found: Sequence[Contents]) -> str:
    """What is deleted with the runs, and its size."""
    size = numbers.long_size(sum(each.size for each in found))
    checkpoints, models = sum(each.checkpoints for each in found), sum(each.model for each in found)
    parts = [
        numbers.counted(number, word)
        for number, word in ((checkpoints, "checkpoint"), (models, "trained model"))
        if number
    ]
    names = ", ".join(run.id for run in runs[:6]) + (f" and {len(runs) - 6} more" if len(runs) > 6 else "")
    what = "all metrics and the log" + "".join(f", {part}" for part in parts)
    return f"{names}: {what}, {size} in total. This cannot be undone."
