"""The screen that lists what ran, runs, or was lost."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import ScreenResume
from textual.screen import Screen
from textual.widgets import DataTable, Static

from accel_engine.run import RunSummary, runs_directory
from accel_tui.commands import Command, ListedCommands
from accel_tui.starting import RESUMABLE
from accel_tui.widgets.key_line import KeyLine
from accel_tui.widgets.runs_table import RunsTable
from accel_tui.widgets.top_bar import TopBar

if TYPE_CHECKING:
    from accel_tui.app import AccelApp


class RunsCommands(ListedCommands):
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

    CSS_PATH = "runs.tcss"
    AUTO_FOCUS = "RunsTable"
    COMMANDS: ClassVar = {RunsCommands}
    BINDING_GROUP_TITLE = "Runs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("R", "resume", "Resume", id="runs.resume", tooltip="Train on from the run's last checkpoint"),
        Binding("n", "plan", "Plan again", id="runs.plan", tooltip="Make a new plan, beginning with this run's"),
        # The list's own, for who presses it before the list is there to have the focus.
        Binding("enter", "open", id="runs.open_early", show=False),
        Binding("escape,p", "app.show_plan", "Plan", id="runs.back", tooltip="Go to the plan as it was left"),
    ]

    app: "AccelApp"

    def __init__(self) -> None:
        super().__init__()
        self.table = RunsTable()

    def compose(self) -> ComposeResult:
        """The list, what there is to say of one of them, and what to do when there is none."""
        yield TopBar("Runs")
        yield self.table
        yield Static(id="empty", markup=False)
        yield Static(id="detail", markup=False)
        yield KeyLine()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what ended early can be resumed; a run without a readable plan can be neither resumed nor planned."""
        del parameters
        if action not in ("resume", "plan"):
            return True
        chosen = self.table.chosen
        if chosen is None or chosen.info is None or chosen.info.plan is None:
            return None
        return action == "plan" or chosen.info.status in RESUMABLE

    def action_open(self) -> None:
        """Look at the run."""
        self.table.action_select_cursor()

    def action_resume(self) -> None:
        """Let the run go on."""
        if self.table.chosen:
            self.app.resume_run(self.table.chosen.directory)

    def action_plan(self) -> None:
        """Go to the form with the run's plan in it."""
        if self.table.chosen and self.table.chosen.info:
            self.app.show_plan(self.table.chosen.info.plan)

    @on(ScreenResume)
    def _go_on(self) -> None:
        self.table.look()

    @on(RunsTable.Listed)
    def _say_when_there_is_none(self, event: RunsTable.Listed) -> None:
        self.set_class(not event.runs, "-empty")
        self.query_one("#empty", Static).update(
            f"No runs yet in {runs_directory()}.\n\nPress p to make a plan, then s to start it."
        )
        self._describe()

    @on(DataTable.RowHighlighted)
    def _describe(self) -> None:
        self.query_one("#detail", Static).update(_detail(self.table.chosen))
        self.refresh_bindings()


def _detail(run: RunSummary | None) -> Content:
    """A run in three lines: what it is, how to train it again, where it is."""
    if run is None:
        return Content("")
    if run.info is None:
        return Content.assemble((run.problem, "$text-warning"), "\n", (str(run.directory), "$text-disabled"))
    plan = run.info.plan
    again = ("$ " + plan.command(), "") if plan else ("its plan cannot be read on this machine", "$text-warning")
    return Content.assemble(
        (run.info.title, "bold"),
        (f"  {run.membership}" if run.membership else "", "$text-warning"),
        (f"  on {run.info.host}", "$text-muted"),
        "\n",
        again,
        "\n",
        (str(run.directory), "$text-disabled"),
    )
