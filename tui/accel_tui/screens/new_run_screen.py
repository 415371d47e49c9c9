"""The screen where a plan is made: devices, form, what it means, start."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, cast

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import ScreenResume
from textual.reactive import reactive
from textual.widgets import Button, Input, Static

from accel_engine.devices.reading import Inventory
from accel_engine.plan import SPECS, Plan
from accel_tui.formatting import field_labels
from accel_tui.palette import PlanCommands
from accel_tui.plan.form import FormResult
from accel_tui.run.device_meter import Meter
from accel_tui.screens.plan_preview_screen import PlanPreviewScreen
from accel_tui.widgets.devices.device_panel import DevicePanel
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.plan.field import Field
from accel_tui.widgets.plan.picker import Picker
from accel_tui.widgets.plan.plan_form import PlanForm
from accel_tui.widgets.plan.summary_panel import SummaryPanel
from accel_tui.widgets.top_bar import TopBar

if TYPE_CHECKING:
    from accel_tui.app import AccelApp
    from accel_tui.widgets.runs.runs_table import RunsTable

NAVIGATION = "↑ ↓ to a field, enter for its choices, esc back to Start"
"""What is said while no field is in use."""

CHOOSING = "↑ ↓ to a choice, enter takes it, esc closes the list and stays in the field"
"""What is said while a list of choices is open."""


class NewRunScreen(PlanPreviewScreen):
    """Asks what to train.

    Args:
        plan: What the form begins with; the defaults when left out.
    """

    CSS_PATH = "new_run_screen.tcss"
    AUTO_FOCUS = "#start"
    COMMANDS: ClassVar = {PlanCommands}
    BINDING_GROUP_TITLE = "Plan"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s,ctrl+s", "start", "Start", id="plan.start", tooltip="Train this plan"),
        Binding("r,ctrl+r", "app.show_runs", "Runs", id="plan.runs", tooltip="List the runs of the past and of now"),
        Binding("c,f5", "copy", "Copy", id="plan.copy", tooltip="Copy the equivalent command"),
        Binding("d,f6", "defaults", "Defaults", id="plan.defaults", show=False, tooltip="Fill in the defaults again"),
        Binding("down", "app.focus_next", id="plan.down", show=False, tooltip="Go to the next field"),
        Binding("up", "app.focus_previous", id="plan.up", show=False, tooltip="Go to the field before"),
        Binding(
            "pagedown", "look(1)", id="plan.page-down", show=False, tooltip="Look further down, where there is more"
        ),
        Binding("pageup", "look(-1)", id="plan.page-up", show=False, tooltip="Look further up"),
        Binding("escape", "leave", "Leave", id="plan.leave", tooltip="Go back to Start, where letters are keys"),
    ]

    app: "AccelApp"

    inventory: reactive[Inventory | None] = reactive(None, repaint=False)
    """The machine's devices."""

    meters: reactive[Mapping[str, Meter]] = reactive(dict, repaint=False)
    """What was last read of them."""

    lists_runs: reactive[bool] = reactive(False, repaint=False)
    """Whether there can be a list of runs."""

    engine_status: reactive[str] = reactive("", repaint=False)
    """What the warm engine does."""

    is_starting: reactive[bool] = reactive(False, repaint=False)
    """Whether a run is on its way."""

    start_problem: reactive[str] = reactive("", repaint=False)
    """Why the last run could not be started."""

    def __init__(self, plan: Plan | None = None) -> None:
        super().__init__()
        self._plan = plan
        self._filled: FormResult | None = None
        self._was_shown = False
        self._hint = Static(id="hint", markup=False)

    def compose(self) -> ComposeResult:
        """From top to bottom: devices; form and what it means; command and start."""
        yield TopBar("Plan")
        yield DevicePanel().data_bind(NewRunScreen.inventory, NewRunScreen.meters)
        with Vertical(id="middle"):
            with VerticalScroll(id="body", can_focus=False):
                yield PlanForm().data_bind(NewRunScreen.inventory)
                yield SummaryPanel()
            yield Vertical(id="late")
        with Vertical(id="bottom"):
            yield self._hint
            yield Static(id="command", markup=False)
            with Horizontal(id="go"):
                yield Button("▶ Start", id="start", compact=True)
                yield Static(id="status", markup=False)
        yield KeyBar()

    def on_mount(self) -> None:
        """Fill in what was given."""
        if self._plan is not None:
            self.form.load(self._plan)
        self._take(self.form.filled)  # not only once the form says it: the first frame is whole

    def load(self, plan: Plan) -> None:
        """Fill the form in from a plan."""
        self.form.load(plan)

    def watch_lists_runs(self) -> None:
        """List the runs of late, once there is a place for them."""
        if self.lists_runs:
            self.call_after_refresh(self._list_runs)

    def _list_runs(self) -> None:
        if not self.is_attached:
            return  # the program ends
        from accel_tui.widgets.runs.runs_table import (
            RunsTable,  # imported by now; on top it would delay the first paint
        )

        table = RunsTable()
        table.border_title = "Recent runs"
        table.can_focus = False  # as long as there are none, it is as good as hidden
        self.query_one("#late").mount(table)

    def watch_engine_status(self) -> None:
        """Show it."""
        self._show_status()

    def watch_is_starting(self) -> None:
        """Show it, and allow no second start meanwhile."""
        self._show_status()

    def watch_start_problem(self) -> None:
        """Show it."""
        self._show_status()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A wrong plan has no command; a field can be left by who is in one; most terminals show all there is."""
        del parameters
        if action == "look":
            return self.query_one("#body").max_scroll_y > 0
        if action == "copy":
            return None if self._filled is None or self._filled.errors else True
        return isinstance(self.focused, Input) if action == "leave" else True

    def action_start(self) -> None:
        """Train the plan, or go to the first field that is wrong."""
        filled = self.form.filled
        if filled.errors:
            self.form.go_to(next(name for name in SPECS if name in filled.errors))
        else:
            for picker in self.query(Picker):
                picker.is_open = False  # it could still put back what was there before
            self.app.start_run(filled.plan)

    def action_copy(self) -> None:
        """Put the command on the clipboard."""
        self.app.copy_to_clipboard(self.app.settings.command(self.form.filled.plan))
        self.notify("Copied the command", timeout=2)

    def action_defaults(self) -> None:
        """Fill in the defaults."""
        self.form.load(self.app.defaults or Plan())

    def action_look(self, by: int) -> None:
        """Look further down, or up, by what is on the screen: what the plan means can be below all fields."""
        body = self.query_one("#body")
        body.scroll_relative(y=by * max(body.size.height - 1, 1), animate=False)

    def action_leave(self) -> None:
        """Leave the field."""
        self.query_one("#start").focus()

    @on(Button.Pressed, "#start")
    def _start(self) -> None:
        self.action_start()

    @on(ScreenResume)
    def _come_back(self, event: ScreenResume) -> None:
        # What was only just made has its styles, and it takes long to work them out.
        event.refresh_styles = event.refresh_styles and self._was_shown
        self._was_shown = True
        self.call_after_refresh(self.app.warm_engine)  # its first moments are the busiest, and the screen comes first
        for table in self.query("RunsTable").results():
            cast("RunsTable", table).look()

    def watch_focused(self) -> None:
        """Say what the field in use is for, in the frame that shows it in use."""
        self._show_hint()

    @on(Picker.Opened)
    def _explain_list(self, event: Picker.Opened) -> None:
        event.stop()
        self._show_hint()

    def _show_hint(self) -> None:
        within = self.focused.ancestors if self.focused else ()
        field = next((field for field in within if isinstance(field, Field)), None)
        words = NAVIGATION if field is None else CHOOSING if field.picker.is_open else field.doc
        hint = self._hint
        # The screen is laid out again only for another number of lines.
        hint.update(words, layout=hint.size.height != 1 or cell_len(words) > hint.size.width)

    def on_runs_table_listed(self, event: "RunsTable.Listed") -> None:
        """Make room for runs if there are any."""
        self.set_class(bool(event.runs), "-ran")
        event.table.can_focus = bool(event.runs)

    @on(PlanForm.Changed)
    def _changed(self, event: PlanForm.Changed) -> None:
        self._take(event.filled)

    def _take(self, filled: FormResult) -> None:
        if filled == self._filled:
            return
        if self._filled is None or bool(self._filled.errors) is not bool(filled.errors):
            self.refresh_bindings()
        self._filled = filled
        self.app.start_problem = ""
        self.query_one("#command", Static).update(self._command(filled))
        self._show_status()
        self.weigh(filled)

    def _command(self, filled: FormResult) -> Content:
        style = "$text-disabled" if filled.errors else "$foreground"
        return Content.assemble(("$ ", "$text-disabled"), (self.app.settings.command(filled.plan), style))

    def _show_status(self) -> None:
        """At the bottom: what keeps the plan from being started, else what the engine does."""
        if not self.is_mounted:
            return
        status, filled = self.query_one("#status", Static), self._filled
        self.query_one("#start", Button).disabled = self.is_starting
        if self.is_starting:
            status.update(Content.styled("starting…", "$text-muted"))
        elif self.start_problem:
            status.update(Content.styled(self.start_problem, "$text-error"))
        elif filled and filled.errors:
            name, reason = next((name, filled.errors[name]) for name in SPECS if name in filled.errors)
            status.update(Content.styled(f"{field_labels.label(name)}: {reason}", "$text-error"))
        else:
            status.update(Content.styled(self.engine_status, "$text-muted"))
