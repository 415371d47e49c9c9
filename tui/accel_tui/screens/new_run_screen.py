"""New run screen: devices; the data, the plan and what will happen; recent runs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import ScreenResume, ScreenSuspend
from textual.getters import query_one
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from accel_engine.devices.device_types import Device, Inventory
from accel_engine.plan import SPECS, Plan
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.search.definition import Parameter
from accel_engine.words import numbers
from accel_tui.app_protocol import Screens, app_of, open_screen, settings_of
from accel_tui.formatting.text import shorten_lines
from accel_tui.palette import PlanCommands
from accel_tui.places.place_state import UNKNOWN, PlaceState
from accel_tui.plan import field_labels, search_fields
from accel_tui.plan.data_text import SurveyError
from accel_tui.plan.field_labels import word
from accel_tui.run_launcher import LaunchState
from accel_tui.run_state.device_meter import Meter
from accel_tui.screens.asking import CANCEL, Answer, QuestionScreen, ask_user, awaiting, copy_text
from accel_tui.screens.new_run_keys import (
    BINDINGS,
    ask_to_search,
    ask_what_to_find,
    ask_where,
    explain_ranges,
    hint_for,
    queue_elsewhere,
    start_plan,
    start_plan_elsewhere,
)
from accel_tui.terminal.dirty_regions import DirtyRegionScreen
from accel_tui.widgets.device_panel import DevicePanel
from accel_tui.widgets.key_bar import KeyBar, TopBar
from accel_tui.widgets.list_keys import ItemList
from accel_tui.widgets.plan.data_preview import DataPreview
from accel_tui.widgets.plan.field_finder import FieldFinder
from accel_tui.widgets.plan.panel import panel_of
from accel_tui.widgets.plan.picker import Picker
from accel_tui.widgets.plan.plan_form import PlanForm, StartButton
from accel_tui.widgets.plan.summary_panel import SummaryPanel
from accel_tui.widgets.styled_text import show_text

if TYPE_CHECKING:
    from accel_tui.places.where import PlaceWatch, Where
    from accel_tui.widgets.runs_table import RunsTable

STATUS_LINES = 2
"""Lines of the message below Start, as in the style sheet."""

RESET = Answer("reset", "Reset", "r", is_destructive=True)


class NewRunScreen(DirtyRegionScreen):
    """Form for a new run.

    Args:
        plan: Initial values; the defaults if omitted.
    """

    CSS_PATH = "new_run_screen.tcss"
    AUTO_FOCUS = "#data FieldInput"
    COMMANDS: ClassVar = {PlanCommands}
    BINDING_GROUP_TITLE = "New run"
    BINDINGS: ClassVar[list[BindingType]] = [*BINDINGS]

    inventory: reactive[Inventory | None] = reactive(None, repaint=False)
    """The devices of this machine."""

    meters: reactive[Mapping[str, Meter]] = reactive(dict, repaint=False)
    """The latest metrics of the devices of this machine, by id."""

    place_devices: reactive[Inventory | None] = reactive(None, repaint=False)
    """The devices of the place where the plan is to train."""

    place_meters: reactive[Mapping[str, Meter]] = reactive(dict, repaint=False)
    """Their latest metrics, by id."""

    can_list_runs: reactive[bool] = reactive(False, repaint=False)
    """Whether the modules for the list of runs are imported."""

    launch: reactive[LaunchState] = reactive(LaunchState(), repaint=False)
    """State of the warm engine, and of starting a run."""

    form = query_one(PlanForm)

    def __init__(self, plan: Plan | None = None) -> None:
        super().__init__()
        self._plan = plan
        self._filled: ResolvedPlan | None = None
        self._parameters: tuple[Parameter, ...] = ()
        self._was_suspended = False
        self._before_finding: Widget | None = None
        self._listed: Sequence[tuple[str, object]] = ()
        self._hint = Static(id="hint", markup=False)
        self._where: Where | None = None  # this machine
        self._place = UNKNOWN
        self._watch: PlaceWatch | None = None

    def compose(self) -> ComposeResult:
        yield TopBar("New run")
        yield DevicePanel().data_bind(inventory=NewRunScreen.place_devices, meters=NewRunScreen.place_meters)
        with Vertical(id="middle"):
            yield FieldFinder()
            with Vertical(id="body"):
                yield PlanForm(settings_of(self).plan_defaults).data_bind(
                    NewRunScreen.launch, inventory=NewRunScreen.place_devices
                )
                yield Vertical(id="late")
        with Vertical(id="bottom"):
            yield self._hint
            yield Static(id="command", markup=False)
        yield KeyBar(kept="command_palette", steady=True)

    def on_mount(self) -> None:
        if self._plan is not None:
            self.form.load(self._plan)
        self._update(self.form.filled)  # now, not with the form's message, so that the first frame is complete

    def show_subject(self, plan: Plan) -> bool:
        """Fill the form in from a plan."""
        self.form.load(plan)
        return True

    def on_unmount(self) -> None:
        """End the reading of a host."""
        self._leave_place()

    def watch_inventory(self) -> None:
        """Show the devices of this machine, if the plan trains on it."""
        if self._where is None:
            self.place_devices = self.inventory

    def watch_meters(self) -> None:
        if self._where is None:
            self.place_meters = self.meters

    @awaiting
    async def action_where(self) -> None:
        """Ask where the plan is to train."""
        chosen = await ask_where(self, self._where)
        if chosen is not None:
            self._go_to_place(chosen if chosen.name else None)

    def _go_to_place(self, where: "Where | None") -> None:
        """Show the devices of a place, and what the plan means there."""
        self._leave_place()
        self._where, self._place = where, UNKNOWN
        self.query_one("#start", Button).label = f"▶ Start on {where.place}" if where else "▶ Start"
        if where is None:
            self.place_devices, self.place_meters = self.inventory, self.meters
        else:
            from accel_tui.places.where import PlaceWatch  # seldom needed

            self.place_devices, self.place_meters = None, {}
            self._watch = watch = PlaceWatch(where, lambda state: self.call_later(self._take_place, where, state))
            self.run_worker(watch.run, thread=True, exit_on_error=False, group="place")
        self._update(self.form.filled, is_new_place=True)

    def _leave_place(self) -> None:
        if self._watch:
            self._watch.stop()
            self._watch = None

    def _take_place(self, where: "Where", state: PlaceState) -> None:
        if where is not self._where or not self.is_mounted:
            return
        before, self._place = self._place, state
        if state.devices is not None:
            if before.devices != state.devices:
                self.place_devices = Inventory(state.devices)
            self.place_meters = state.meters
        if (before.about, before.problem) != (state.about, state.problem):
            self._update(self.form.filled, is_new_place=True)

    def watch_can_list_runs(self) -> None:
        if self.can_list_runs:
            self.call_after_refresh(self._mount_runs_table)

    def _mount_runs_table(self) -> None:
        if not self.is_attached:
            return  # the app is closing
        # imported by now; at the top it would delay the first frame
        from accel_tui.widgets.runs_table import RunsTable

        table = RunsTable("No runs yet. Start, or s, trains the first one.")
        table.border_title = "Recent runs"
        self.query_one(DataPreview).begin()
        table.can_focus = False  # not focusable while it is empty
        self.query_one("#late").mount(table)

    def on_resize(self) -> None:
        """Show one panel at a time where three have no room; cut the message below Start where it ends."""
        self._show_tabs()
        self.call_after_refresh(self._show_tabs)  # a screen that was covered gets its class only after this
        self.call_after_refresh(self._show_status)

    def _show_tabs(self) -> None:
        self.form.show_tabs(self.has_class("-narrow"))

    def watch_launch(self) -> None:
        """Update the status line and disable Start while the run is starting."""
        self._show_status()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A field is found where no letter is typed; scrolling needs an overflow."""
        if action == "scroll":
            return self._scrolled is not None
        if action == "find":
            return not self.query_one(FieldFinder).is_open and not (self.is_typing and parameters == ("/",))
        return True

    @property
    def is_typing(self) -> bool:
        """Whether letters are text."""
        return self.focused is not None and self.focused.check_consume_key("a", "a")

    @property
    def _scrolled(self) -> Widget | None:
        """The panel that the keys for pages scroll: the one with more than it has room for."""
        panel = panel_of(self.focused)
        found = panel.query("#fields, DataPreview") if panel else self.query("#fields")
        return next((each for each in found.results(Widget) if each.max_scroll_y > 0), None)

    @awaiting
    async def action_start(self) -> None:
        """Start the run, or focus the first invalid field; asks first if other runs train on its devices."""
        if (filled := self._valid_plan()) is not None:
            await self._start_plan(filled.plan)

    async def _start_plan(self, plan: Plan, *, asks: bool = False) -> None:
        if self._where is None:
            await start_plan(self, plan, self._machine, asks=asks)
        else:
            await start_plan_elsewhere(self, self._where, self._place, plan, asks=asks)

    @awaiting
    async def action_queue(self) -> None:
        """Add the run to the queue, or focus the first invalid field."""
        if (filled := self._valid_plan()) is None:
            return
        if self._where is None:
            await app_of(self).launcher.queue_run(filled.plan, self._machine)
        elif self._where.is_host:
            await queue_elsewhere(self, self._where, filled.plan)
        else:
            self._only_here("A cluster has a queue: Start gives it the run. The queue is of this machine.")

    def _only_here(self, reason: str) -> None:
        """Say why something is not done elsewhere."""
        self.notify(
            f"{reason} @ chooses where.",
            title=f"Not on {self._where.place}" if self._where else "",
            severity="warning",
            markup=False,
        )

    def action_race(self) -> None:
        if self._where:
            self._only_here("A race measures this machine; accel-tui race --on measures one of a cluster.")
        elif (filled := self._valid()) is not None:
            open_screen(self, Screens.RACE, filled.plan)

    @awaiting
    async def action_measure(self) -> None:
        """Ask what to find for the plan, and find it."""
        if self._where:
            self._only_here("The finders measure this machine.")
        elif self._valid() is not None:
            await ask_what_to_find(self, self.form)

    @awaiting
    async def action_search(self) -> None:
        """Ask for trials, monitor and time, then search; without ranges, show the searches."""
        if self.form.parameters and self._where and self._where.is_host:
            self._only_here("A search trains on this machine or on a cluster.")
        elif self.form.parameters and (filled := self._valid()) is not None:
            await ask_to_search(self, filled, self.form.parameters, self.form.changed, self._where)
        elif not self.form.parameters:
            await self.run_action("app.open_searches")

    @property
    def _machine(self) -> Sequence[Device] | None:
        """The devices of the place; ``None`` if they are not known yet."""
        return self.place_devices.devices if self.place_devices else None

    def _valid(self) -> ResolvedPlan | None:
        """The plan; ``None`` if a field is invalid, which then has the focus."""
        filled = self.form.filled
        if filled.errors:
            self.form.go_to(next(name for name in SPECS if name in filled.errors))
            return None
        for picker in self.query(Picker):
            picker.finish()  # an open list could still restore the old value
        return filled

    def _valid_plan(self) -> ResolvedPlan | None:
        """The plan; ``None``, with a message, if a field has a range, too."""
        filled = self._valid()
        if filled is not None and self.form.parameters:
            explain_ranges(self, len(self.form.parameters))
            return None
        return filled

    def action_copy(self) -> None:
        if self._valid() is None:
            return
        copy_text(self, self._command_text(self.form.filled))

    @awaiting
    async def action_defaults(self) -> None:
        """Reset the form to the defaults; asks first if something differs from them."""
        if labels := [field_labels.label(name) for name in self.form.changed]:
            detail = f"This resets {numbers.counted(len(labels), 'field')}: {', '.join(labels)}."
            question = QuestionScreen("Reset the form?", detail, (CANCEL, RESET))
            if await ask_user(self, question) == RESET.id:
                self.form.load(self.form.defaults)

    def action_find(self, key: str) -> None:
        self._before_finding = self.focused
        self.query_one("#body").display = False
        self.query_one(FieldFinder).open(self.form.values)

    @on(FieldFinder.Chosen)
    def _found(self, event: FieldFinder.Chosen) -> None:
        self.query_one("#body").display = True
        if event.field:
            self.form.go_to(event.field)  # it may have to be mounted first; until then, the finder takes the keys
        else:
            self.set_focus(self._before_finding or self.query_one("#start"))

    def action_scroll(self, by: int) -> None:
        if (scrolled := self._scrolled) is not None:
            scrolled.scroll_relative(y=by * max(scrolled.size.height - 1, 1), animate=False)

    def action_move(self, by: int) -> None:
        """Focus what is below or above, also in a panel that is not shown."""
        stops = self._stops
        place = stops.index(self.focused) + by if self.focused in stops else 0
        if 0 <= place < len(stops):
            self._focus(stops[place])
            if isinstance(stops[place], ItemList):  # which begins where it is entered
                cast(ItemList, stops[place]).enter(by)

    def action_panel(self, by: int) -> None:
        """Focus the first field of the next panel; after the last one, the recent runs."""
        firsts = [next(each for each in self._stops if panel_of(each) is panel) for panel in self.form.panels]
        firsts += [each for each in self._stops if panel_of(each) is None][:1]
        here = panel_of(self.focused)
        at = self.form.panels.index(here) if here else len(self.form.panels)
        self._focus(firsts[(at + by) % len(firsts)])

    @property
    def _stops(self) -> list[Widget]:
        return [*self.form.stops, *(table for table in self.query("RunsTable").results(Widget) if table.focusable)]

    def _focus(self, widget: Widget) -> None:
        if panel := panel_of(widget):
            self.form.show_panel(panel)
        self.set_focus(widget)

    @on(Button.Pressed, "#start")
    def _start(self) -> None:
        self.action_start()

    @on(StartButton.Entered)
    @awaiting
    async def _confirm_start(self) -> None:
        if (filled := self._valid_plan()) is not None:
            await self._start_plan(filled.plan, asks=True)

    @on(ScreenSuspend)
    def _suspend(self) -> None:
        # A modal screen, such as the command palette, may focus a field.
        self._was_suspended = not self.app.screen.is_modal

    @on(ScreenResume)
    def _resume(self) -> None:
        if self._was_suspended:
            self._was_suspended = False
            for picker in self.query(Picker):
                picker.finish()  # so that letters are keys
            self.query_one(SummaryPanel).refresh_measured()
        # Importing TensorFlow competes with the first paint.
        self.call_after_refresh(app_of(self).launcher.warm_engine)
        for table in self.query("RunsTable").results():
            cast("RunsTable", table).refresh_runs()
            self.form.refresh_folder()

    def watch_focused(self) -> None:
        """Show the help text of the focused field, and close the finder when the focus has left it."""
        if panel := panel_of(self.focused):
            self.form.show_panel(panel)
        finder = self.query_one(FieldFinder)
        if finder.is_open and self.focused is not None and finder not in self.focused.ancestors:
            typed = finder.close()
            self.query_one("#body").display = True
            if typed and isinstance(self.focused, Input):
                self.focused.value = typed
                self.focused.cursor_position = len(typed)
        self._show_hint()

    @on(Picker.Opened)
    @on(FieldFinder.Selected)
    def _explain_choices(self, event: Message) -> None:
        event.stop()
        self._show_hint()

    def _show_hint(self) -> None:
        if self._filled is not None:
            self._hint.update(hint_for(self.focused, self._filled), layout=False)  # it always has two lines

    def on_runs_table_listed(self, event: "RunsTable.Listed") -> None:
        """Make room for the recent runs, if there are any."""
        event.table.can_focus = bool(event.runs)
        listed = [(run.id, run.status) for run in event.runs]
        if event.whole and listed != self._listed:  # whose data can be chosen, and whose steps were measured
            self._listed = listed
            self.form.refresh_folder()
            self.query_one(SummaryPanel).refresh_measured()

    @on(PlanForm.Changed)
    def _changed(self, event: PlanForm.Changed) -> None:
        self._update(event.filled)
        self._show_hint()

    @on(SummaryPanel.Noted)
    def _show_notes(self, event: SummaryPanel.Noted) -> None:
        event.stop()
        self.form.show_notes(event.notes)

    @on(DataPreview.TargetTaken)
    def _take_target(self, event: DataPreview.TargetTaken) -> None:
        event.stop()
        self.form.set("target", event.column)

    @on(SummaryPanel.DataSurveyed)
    def _update_survey(self, event: SummaryPanel.DataSurveyed) -> None:
        if isinstance(event.found, SurveyError):
            self.form.survey_error = event.found
        else:
            self.form.survey_error, self.form.surveyed = None, event.found

    def _command_text(self, filled: ResolvedPlan) -> str:
        """The command that trains the form's plan, or searches."""
        if parameters := self.form.parameters:
            command = search_fields.search_command(filled.plan, parameters, always=settings_of(self).plan)
        else:
            command = settings_of(self).command(filled.plan)
        return self._where.command(command) if self._where else command

    def _update(self, filled: ResolvedPlan, *, is_new_place: bool = False) -> None:
        parameters = self.form.parameters
        if (filled, parameters) == (self._filled, self._parameters) and not is_new_place:
            return
        self._parameters = parameters
        if self._filled is None or bool(self._filled.errors) is not bool(filled.errors):
            self.refresh_bindings()
        self._filled = filled
        app_of(self).launcher.clear_problem()
        show_text(self.query_one("#command", Static), self._command(filled))
        self._show_status()
        self.query_one(SummaryPanel).preview(
            filled,
            search_fields.describe_parameters(parameters) if parameters else "",
            self._where,
            self._place,
        )
        self.query_one(DataPreview).preview(filled)

    def _command(self, filled: ResolvedPlan) -> Content:
        if filled.errors:
            name = next(name for name in SPECS if name in filled.errors)
            return Content.styled(f"$ fix {field_labels.label(name)} first", "$text-disabled")
        return Content.assemble(("$ ", "$text-disabled"), self._command_text(filled))

    def _show_status(self) -> None:
        """Show why the plan cannot start, else the status of the engine."""
        if self.is_mounted:
            self.query_one("#start", Button).disabled = self.launch.is_starting
            status = self.query_one("#status", Static)
            show_text(status, self._status(status.size.width))

    def _status(self, width: int) -> Content:
        if self.launch.is_starting:
            return Content.styled("starting…", "$text-muted")
        if problem := self.launch.problem or _first_error(self._filled):
            return Content.styled(shorten_lines(problem, width, STATUS_LINES) if width else problem, "$text-error")
        if self._place.problem:
            return Content.styled(shorten_lines(self._place.problem, max(width, 1), STATUS_LINES), "$text-warning")
        if self._where:
            return Content.styled(self._place.about or f"asking {self._where.place}…", "$text-muted")
        return Content.styled(self.launch.engine_status, "$text-muted")


def _first_error(filled: ResolvedPlan | None) -> str:
    """The error of the first invalid field; empty if all are valid."""
    errors = filled.errors if filled else {}
    return next((f"{field_labels.label(name)}: {word(errors[name])}" for name in SPECS if name in errors), "")
