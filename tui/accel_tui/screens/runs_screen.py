"""The screen that lists what ran, runs, or was lost: finding runs, and doing something with one or with several."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.events import ScreenResume
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input, Label, Static

from accel_engine.errors import AccelError
from accel_engine.run import Annotations, RunSummary, Status, runs_directory
from accel_engine.run.annotations import set_tags, write_annotations
from accel_engine.run.removal import Contents, contents, remove
from accel_engine.text import printable, printable_fields, printable_line
from accel_tui.formatting import units
from accel_tui.palette import Command, SearchedCommands
from accel_tui.plan.starting import RESUMABLE
from accel_tui.runs.comparison import MOST
from accel_tui.screens.edit_run_screen import Change, EditedField, EditRunScreen
from accel_tui.screens.question_screen import Answer, QuestionScreen
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.line_input import LineInput
from accel_tui.widgets.runs.runs_table import RunsTable
from accel_tui.widgets.runs.selected_run import SelectedRun
from accel_tui.widgets.top_bar import TopBar

if TYPE_CHECKING:
    from accel_tui.app import AccelApp

KEEP = Answer("keep", "Keep", "escape")
DELETE = Answer("delete", "Delete", "d", grave=True)


_OF_RUNS = frozenset({"filter", "compare", "label", "plan", "resume", "delete"})  # what there must be runs for


class RunsCommands(SearchedCommands):
    """Opening a run by its name."""

    def commands(self) -> Iterator[Command]:
        """One command for each run that can be opened."""
        for run in self.screen.query_one(RunsTable).runs or ():
            if run.info:
                yield f"open {run.id}", f"{run.info.title}, {run.status}", partial(self._open, run)

    def _open(self, run: RunSummary) -> None:
        self.screen.post_message(RunsTable.Opened(run))


class RunsScreen(Screen[None]):
    """Lists the runs of this machine, and leads to each of them."""

    CSS_PATH = "runs_screen.tcss"
    AUTO_FOCUS = "RunsTable"
    COMMANDS: ClassVar = {RunsCommands}
    BINDING_GROUP_TITLE = "Runs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", id="runs.filter", tooltip="Show only the runs that fit some words"),
        Binding("c", "compare", "Compare", id="runs.compare", tooltip="Lay the runs that are chosen side by side"),
        Binding("e", "label", "Label", id="runs.label", tooltip="Rename the run, note something, or tag all chosen"),
        Binding("n", "plan", "Again", id="runs.plan", tooltip="Make a new plan, beginning with this run's"),
        Binding("R", "resume", "Resume", id="runs.resume", tooltip="Train on from the run's last checkpoint"),
        Binding("D,delete", "delete", "Delete", id="runs.delete", tooltip="Delete the run, or all chosen; asks first"),
        # The list's own, for who presses it before the list is there to have the focus.
        Binding("enter", "open", id="runs.open_early", show=False, tooltip="Look at the newest run"),
        Binding("escape", "back", "Back", id="runs.back", tooltip="Choose none, show all runs again, then the plan"),
        Binding("p", "app.show_plan", "Plan", id="runs.to-plan", tooltip="Go to the plan as it was left"),
    ]

    app: "AccelApp"

    _words = getters.query_one("#words", Input)

    @dataclass
    class Measured(Message):
        """It was found out what would be deleted."""

        runs: tuple[RunSummary, ...]
        contents: tuple[Contents, ...]

    class Written(Message):
        """Runs were changed."""

    def __init__(self) -> None:
        super().__init__()
        self.table = RunsTable(choosing=True)
        self._statuses: dict[str, Status | None] = {}

    def compose(self) -> ComposeResult:
        """Which runs, the list, what there is to say of one of them, and what to do when there is none."""
        yield TopBar("Runs")
        with Horizontal(id="finding"):
            yield LineInput(placeholder="/ finds: cnn  status:failed  tag:paper", id="words", compact=True)
            yield Label(id="found", markup=False)
        yield self.table
        yield Static(id="empty", markup=False)
        yield SelectedRun()
        yield KeyBar()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what ended early can be resumed; a live run cannot be deleted; one that cannot be read, nothing."""
        del parameters
        runs, current = self._meant, self.table.current
        if action in _OF_RUNS and not self.table.runs:
            return False
        match action:
            case "compare":
                return len(self.table.chosen) > 1 or None
            case "label":
                return (bool(runs) and all(run.info for run in runs)) or None
            case "delete":
                return (bool(runs) and not any(run.status and run.status.live for run in runs)) or None
            case "resume" | "plan":
                if current is None or current.info is None or current.info.plan is None:
                    return None
                return action == "plan" or current.info.status in RESUMABLE
        return True

    @property
    def _meant(self) -> tuple[RunSummary, ...]:
        """The runs that are chosen, or the one under the cursor."""
        return self.table.chosen or ((self.table.current,) if self.table.current else ())

    def action_filter(self) -> None:
        """Go to where the words are."""
        self._words.focus()

    def action_back(self) -> None:
        """Leave the words; choose none; show all; at last, go back to the plan."""
        if self._words.has_focus or self.table.filter:
            self._words.value = ""
            self.table.focus()
        elif self.table.marks:
            self.table.marks = frozenset()
        else:
            self.app.show_plan()

    def action_open(self) -> None:
        """Look at the run."""
        self.table.action_open()

    def action_compare(self) -> None:
        """Lay the chosen ones side by side."""
        self._compare(self.table.chosen)

    def action_resume(self) -> None:
        """Let the run go on."""
        if self.table.current:
            self.app.resume_run(self.table.current.directory)

    def action_plan(self) -> None:
        """Go to the form with the run's plan in it."""
        if self.table.current and self.table.current.info:
            self.app.show_plan(self.table.current.info.plan)

    def action_label(self) -> None:
        """Ask for name, note and tags, or for the tags of all that are chosen."""
        runs = self._meant
        info = runs[0].info
        if info is None:
            return
        shown = printable_fields(info)
        question = EditedField(
            [printable_line(run.id) for run in runs], shown.annotations, str(shown.values.get("name") or "")
        )

        def label(change: Change | None) -> None:
            if isinstance(change, Annotations):
                self._write(lambda: write_annotations(info.directory, lambda _: change))
            elif change:
                self._write(*(partial(set_tags, run.directory, change) for run in runs))

        self.app.push_screen(EditRunScreen(question), label)

    def action_delete(self) -> None:
        """Find out what would go, then ask."""
        self._measure(self._meant)

    @work(thread=True, exclusive=True, exit_on_error=False, group="measure")
    def _measure(self, runs: tuple[RunSummary, ...]) -> None:
        try:
            self.post_message(self.Measured(runs, tuple(contents(run.directory) for run in runs)))
        except AccelError as error:
            self.app.notify(str(error), severity="error", markup=False)

    @on(Measured)
    def _ask_to_delete(self, event: Measured) -> None:
        def delete(answer: str | None) -> None:
            if answer == "delete":
                self._write(*(partial(remove, run.directory) for run in event.runs))

        title = event.runs[0].info.title if len(event.runs) == 1 and event.runs[0].info else f"{len(event.runs)} runs"
        question, detail = printable(f"Delete {title}?"), printable(_going(event.runs, event.contents))
        self.app.push_screen(QuestionScreen(question, detail, (KEEP, DELETE)), delete)

    @work(thread=True, exit_on_error=False, group="write")
    def _write(self, *acts: Callable[[], object]) -> None:
        """Change runs, as many as can be; say why where one cannot."""
        for act in acts:
            try:
                act()
            except AccelError as error:
                self.app.notify(str(error), severity="error", markup=False)
        self.post_message(self.Written())

    @on(Written)
    def _look_again(self) -> None:
        self.table.look()

    @on(RunsTable.Compared)
    def _compare_chosen(self, event: RunsTable.Compared) -> None:
        self._compare(event.runs)

    def _compare(self, runs: Sequence[RunSummary]) -> None:
        readable: list[Path] = [run.directory for run in runs if run.info]
        if len(readable) > MOST:
            self.notify(f"Only {MOST} runs can be told apart: the first {MOST} of {len(readable)} are compared.")
        if len(readable) > 1:
            self.app.show_comparison(tuple(readable[:MOST]))
        else:
            self.notify("Choose two runs that can be read, with space, and compare them.", severity="warning")

    @on(ScreenResume)
    def _go_on(self) -> None:
        self.table.look()

    @on(Input.Changed, "#words")
    def _filter(self, event: Input.Changed) -> None:
        self.table.filter = event.value

    @on(Input.Submitted, "#words")
    def _leave_words(self) -> None:
        self.table.focus()

    @on(RunsTable.Listed)
    def _take_list(self, event: RunsTable.Listed) -> None:
        """Say when there is none, and which was lost meanwhile."""
        self.set_class(not event.runs, "-empty")
        self.query_one("#empty", Static).update(
            f"No runs yet in {printable(str(runs_directory()))}.\n\nPress p to make a plan, then s to start it."
        )
        for run in event.runs:
            before = self._statuses.get(run.id)
            if run.status is Status.LOST and before is not None and before.live:
                who = "script" if run.info and run.info.script else "training process"
                self.notify(f"The {who} of {run.id} ended without a word.", title="Run lost", severity="error")
        self._statuses = {run.id: run.status for run in event.runs}
        self._describe()

    @on(RunsTable.Turned)
    def _describe(self) -> None:
        self.query_one(SelectedRun).tell(self.table.current)
        if self.table.runs is None:
            self.query_one("#found", Label).update("looking for runs…")
            return
        everything, shown, chosen = len(self.table.runs), len(self.table.shown), len(self.table.chosen)
        counts = [f"{shown:,} of " * bool(self.table.filter) + f"{everything:,} run{'s' * (everything != 1)}"]
        self.query_one("#found", Label).update(", ".join(counts + [f"{chosen} chosen"] * bool(chosen)))
        self.refresh_bindings()


def _going(runs: Sequence[RunSummary], found: Sequence[Contents]) -> str:
    """What goes with runs, and how large it is."""
    size = units.size(sum(each.size for each in found))
    checkpoints, models = sum(each.checkpoints for each in found), sum(each.model for each in found)
    parts = [
        f"{number} {word}{'s' * (number != 1)}"
        for number, word in ((checkpoints, "checkpoint"), (models, "trained model"))
        if number
    ]
    names = ", ".join(run.id for run in runs[:6]) + (f" and {len(runs) - 6} more" if len(runs) > 6 else "")
    what = "all curves and the log" + "".join(f", {part}" for part in parts)
    return f"{names}: {what}, {size} in all. This cannot be undone."
