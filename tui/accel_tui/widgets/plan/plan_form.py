"""The New run form: the data, the plan and what will happen, generated from the plan's field specs."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Button, Static

from accel_engine.data import DatasetEntry
from accel_engine.devices.device_types import Device, Inventory
from accel_engine.errors import FieldValue
from accel_engine.plan import SPECS, Plan
from accel_engine.plan.fields import PlanFields
from accel_engine.plan.plan_file import valid_part
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve
from accel_engine.search.definition import Parameter
from accel_tui.plan import data_places, form, search_fields
from accel_tui.plan.data_text import SurveyError, is_data, survey_subject
from accel_tui.plan.field_labels import label, placeholder, word
from accel_tui.plan.form import is_relevant
from accel_tui.plan.form_groups import DATA, DECISIONS, FIRST, NEXT, ORDER, OUTCOME, is_changed
from accel_tui.run_launcher import LaunchState
from accel_tui.widgets.plan.data_list import DataList
from accel_tui.widgets.plan.data_preview import DataPreview
from accel_tui.widgets.plan.field import Field
from accel_tui.widgets.plan.panel import PlanPanel, panel_of
from accel_tui.widgets.plan.picker import Picker
from accel_tui.widgets.plan.summary_panel import SummaryPanel


class StartButton(Button):
    """Starts training when it is clicked. It has the focus at first, so that Enter only asks."""

    class Entered(Message):
        """Enter was pressed on the button."""

    def action_press(self) -> None:
        """Post that Enter was pressed."""
        self.post_message(self.Entered())


class DefaultValues(Static):
    """Fields that are at their defaults, with their values: as many as there is room for."""

    values: reactive[tuple[tuple[str, str], ...]] = reactive((), init=False)
    """Labels and values."""

    def render(self) -> Content:
        """A line for each, below an empty one; nothing if there is room for few."""
        room = self.size.height - 1
        if room < _FEWEST_DEFAULTS:
            return Content("")
        lines = [
            Content.assemble((f"{label:<16}", "$text-disabled"), (value, "$text-muted"))
            for label, value in self.values[:room]
        ]
        return Content("\n").join([Content(""), *(line.truncate(self.size.width, ellipsis=True) for line in lines)])


_FEWEST_DEFAULTS = 3


class PlanForm(Widget):
    """Three panels: the data, the plan, and what will happen; with little room, one at a time.

    It posts its result on each change. It holds the texts of all fields. Few are always shown; another one is mounted
    when it is not at its default, or is looked for.

    Args:
        defaults: The values that are not marked, and to which fields are reset.
    """

    DEFAULT_CSS = """
    PlanForm {
        layout: horizontal;
        height: 1fr;

        #look { height: 1fr; }
        #places { height: 1fr; }
        #fields { height: 1fr; scrollbar-size-vertical: 1; }
        DefaultValues { height: 1fr; padding: 0 2; }
        #others { height: 1; color: $text-disabled; padding: 0 2; }
        #field-data Picker, #field-target Picker { margin: 0 0 0 9; }
        #field-name, #naming { height: 1; }
        #field-name Picker { margin: 0 1 0 12; }
        #go { height: auto; margin: 0 1 0 2; }
        #status { width: 100%; height: 2; }
    }
    """

    inventory: reactive[Inventory | None] = reactive(None)
    """The machine's devices, which decide what is possible."""

    surveyed: reactive[DatasetEntry | None] = reactive(None, init=False)
    """The survey of the user's own data; ``None`` before it is known."""

    survey_error: reactive[SurveyError | None] = reactive(None, init=False)
    """Why the user's own data cannot be used."""

    launch: reactive[LaunchState] = reactive(LaunchState(), repaint=False)
    """State of the warm engine."""

    @dataclass
    class Changed(Message):
        """A field has changed."""

        filled: ResolvedPlan

    def __init__(self, defaults: PlanFields | None = None) -> None:
        super().__init__()
        self.defaults: PlanFields = defaults or Plan()
        self._texts = {name: form.field_text(getattr(self.defaults, name)) for name in SPECS}
        self._wanted: Field | None = None  # to be edited once it is mounted
        self._edits = True
        self._visited = ""
        self._notes: Mapping[str, str] = {}
        self._fields = {name: Field(name, self._texts[name]) for name in FIRST}
        self._fields["data"].picker.is_filter = lambda: self._filtered_data() is not None

    def compose(self) -> ComposeResult:
        with PlanPanel("1 Data", id="data-panel", classes="-current"):
            with Vertical(id="places"):
                yield self._fields["data"]
                yield DataList()
            with Vertical(id="look"):
                yield self._fields["target"]
                yield DataPreview()
        with PlanPanel("2 Plan", id="plan-panel"):
            with VerticalScroll(id="fields", can_focus=False):
                yield from (self._fields[name] for name in DECISIONS)
                yield DefaultValues()
            yield Static(id="others", markup=False)
        with PlanPanel("3 What will happen", id="outcome-panel"):
            yield SummaryPanel().data_bind(PlanForm.launch)
            with Vertical(id="naming"):
                yield from (self._fields[name] for name in OUTCOME)
            with Vertical(id="go"):
                yield StartButton("▶ Start", id="start", compact=True)
                yield Static(id="status", markup=False)

    def on_mount(self) -> None:
        self._update_fields()

    places = query_one(DataList)

    @property
    def panels(self) -> tuple[PlanPanel, ...]:
        """The three panels."""
        return tuple(self.query(PlanPanel))

    @property
    def stops(self) -> list[Widget]:
        """The widgets that can have the focus, in the order of the screen, also in panels that are not shown."""
        return [
            each
            for each in self.walk_children(Widget)
            if each.focusable and all(field.display for field in each.ancestors if isinstance(field, Field))
        ]

    def show_tabs(self, is_single: bool) -> None:
        """Name all panels in the border where one is shown at a time."""
        for panel in self.panels:
            panel.tabs = tuple(each.title for each in self.panels) if is_single else ()

    def show_panel(self, shown: PlanPanel) -> None:
        """Show the panel that the focus is in, or mark it where all are shown."""
        if not shown.has_class("-current"):
            for panel in self.panels:
                panel.set_class(panel is shown, "-current")

    @property
    def fields(self) -> tuple[Field, ...]:
        """The mounted fields, in their order on the screen."""
        return tuple(self._fields[name] for name in ORDER if name in self._fields)

    @property
    def shown(self) -> tuple[Field, ...]:
        """The fields on the screen, in their order."""
        return tuple(field for field in self.fields if field.display)

    @property
    def relevant(self) -> tuple[str, ...]:
        """The fields that fit the plan, also if they are not mounted, in their order on the screen."""
        filled = self.filled
        return tuple(name for name in ORDER if is_relevant(name, filled, self._known_devices))

    @property
    def filled(self) -> ResolvedPlan:
        """The current result."""
        split = search_fields.split(self._texts)
        filled = form.resolve_form(split.texts, self._known_devices, self.surveyed)
        wrong = {name: reason for name, reason in split.errors.items() if self._is_relevant(name, filled)}
        error = self.survey_error
        if error and error.subject == survey_subject(filled.plan):
            wrong = {error.field: error.reason, **wrong}
        return replace(filled, errors={**filled.errors, **wrong}) if wrong else filled

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The fields that vary, with a range or a list of values."""
        split = search_fields.split(self._texts)
        if not split.parameters:
            return ()
        filled = form.resolve_form(split.texts, self._known_devices, self.surveyed)
        return tuple(
            split.parameters[name] for name in ORDER if name in split.parameters and self._is_relevant(name, filled)
        )

    def _is_relevant(self, name: str, filled: ResolvedPlan) -> bool:
        return is_relevant(name, filled, self._known_devices)

    def load(self, plan: PlanFields) -> None:
        """Fill the form in from a plan."""
        self._write({name: form.field_text(getattr(plan, name)) for name in SPECS})

    def set(self, name: str, text: str) -> None:
        """Set the text of a field."""
        self._write({name: text})

    def reset(self, names: Sequence[str]) -> None:
        """Set fields to their defaults."""
        self._write({name: form.field_text(getattr(self.defaults, name)) for name in names})

    @property
    def changed(self) -> tuple[str, ...]:
        """The fields whose text is not the default, in their order on the screen."""
        return tuple(name for name in ORDER if self._texts[name] != form.field_text(getattr(self.defaults, name)))

    @property
    def values(self) -> dict[str, tuple[str, bool]]:
        """The text of each relevant field, or what it stands for if it is empty; and whether it is not the default."""
        filled, varying = self.filled, {each.name for each in self.parameters}
        return {
            name: (
                self._texts[name] or form.resolved_placeholder(name, filled),
                name in varying or is_changed(name, filled, self.defaults),
            )
            for name in ORDER
            if is_relevant(name, filled, self._known_devices)
        }

    @property
    def choices(self) -> dict[str, tuple[form.FieldChoice, ...]]:
        """The choices of each relevant field."""
        filled, devices = self.filled, self._known_devices
        return {name: form.choices(name, filled, devices or ()) for name in ORDER if is_relevant(name, filled, devices)}

    def go_to(self, name: str, *, edits: bool = True) -> None:
        """Focus a field, which is mounted if it is not shown, and edit it."""
        self._visited = name
        self._update_fields()
        self._wanted = self._fields[name]
        self._edits = edits
        self._focus_wanted()

    def refresh_folder(self) -> None:
        """List the data again that can be chosen."""
        from accel_engine.run.directory.run_paths import host_of_run
        from accel_tui.widgets.runs_table import RunsTable  # imported by the time that there are runs

        infos = (run.info for run in RunsTable.listing.runs if not host_of_run(run.directory))  # whose paths are there
        self.places.refresh_folder([str(info.plan_values.get("data", "")) for info in infos if info])

    def show_notes(self, notes: Mapping[str, str]) -> None:
        """Show what the values of fields mean."""
        if notes != self._notes:
            self._notes = notes
            for field in self.shown:
                field.note = self._note(field.field)

    def watch_inventory(self) -> None:
        if self.is_mounted:
            self._update_fields()

    def watch_surveyed(self) -> None:
        """Update which models are possible."""
        if self.is_mounted:
            self._update_fields()

    def watch_survey_error(self) -> None:
        if self.is_mounted:
            self._update_fields()

    @on(Picker.Changed)
    def _edited(self, event: Picker.Changed) -> None:
        event.stop()
        if event.picker.id:
            self._texts[event.picker.id] = event.value
        if event.picker.id == "data":
            self.places.filter(event.value if event.picker.input.is_editing else "")
        self._update_fields()

    @on(Picker.Completed)
    def _focus_next(self, event: Picker.Completed) -> None:
        """Focus what is below the field; a typed name of data becomes the first one in the list that has it."""
        event.stop()
        if event.picker.id == "data":
            self._take_typed_data(event.picker)
            return
        event.picker.finish()
        names = [field.field for field in self.shown]
        name = event.picker.id or ""
        if name in names[:-1]:
            self.go_to(names[names.index(name) + 1], edits=False)
        else:
            self.screen.focus_next()

    def _filtered_data(self) -> str | None:
        """The first data in the list which the typed text filters; ``None`` if it names data, or none has it."""
        typed = self._fields["data"].picker.value
        found = next((place.text for place in self.places.places if place.is_data), None)
        return found if typed and not is_data(typed) else None

    def _take_typed_data(self, picker: Picker) -> None:
        if (found := self._filtered_data()) is not None:
            self.set("data", found)
        picker.finish()
        self.places.filter("")

    @on(Picker.CompletionWanted)
    def _complete(self, event: Picker.CompletionWanted) -> None:
        event.stop()
        picker = event.picker
        if (text := data_places.completed(self.places.places, picker.value)) is not None and text != picker.value:
            picker.input.value = text
            picker.input.cursor_position = len(text)

    @on(Picker.Opened)
    def _stop_filtering(self, event: Picker.Opened) -> None:  # the screen handles it too
        if not self._fields["data"].picker.input.is_editing:
            self.places.filter("")

    @on(DataList.Taken)
    def _take_data(self, event: DataList.Taken) -> None:
        event.stop()
        self.set("data", event.text)

    @on(DataList.Listed)
    def _show_folder(self, event: DataList.Listed) -> None:
        event.stop()
        self.query_one("#data-panel", PlanPanel).state = f"{data_places.shown_folder(self.places.folder)}"

    @on(Field.Reset)
    def _reset_field(self, event: Field.Reset) -> None:
        event.stop()
        self.reset((event.field,))

    @property
    def _known_devices(self) -> tuple[Device, ...] | None:
        return None if self.inventory is None else self.inventory.devices

    def _write(self, texts: dict[str, str]) -> None:
        self._texts |= texts
        with self.prevent(Picker.Changed):
            for field in self.fields:
                if field.field in texts:
                    field.picker.value = texts[field.field]
        self._update_fields()

    def _focus_wanted(self) -> None:
        wanted = self._wanted
        if wanted and wanted.picker.input.is_mounted:
            self._wanted = None
            if panel := panel_of(wanted):
                self.show_panel(panel)
            if self._edits:
                wanted.picker.edit()
            else:
                self.screen.set_focus(wanted.picker.input)
        elif wanted:
            wanted.call_after_refresh(self._focus_wanted)

    def _note(self, name: str) -> str:
        return self._notes.get(name, "") if name in FIRST else form.default_reason(name)

    def _update_fields(self) -> None:
        filled = self.filled
        relevant = {name for name in ORDER if self._is_relevant(name, filled)}
        ranges = search_fields.range_texts(self.parameters)
        changed = {name for name in relevant if name in ranges or is_changed(name, filled, self.defaults)}
        wanted = {*changed, *_referred_to(filled), *self._revealed(filled, relevant, changed), self._visited}
        self._show_others(relevant & wanted, relevant, changed)
        for field in self.shown:
            name = field.field
            field.error = word(filled.errors.get(name, ()))
            field.note = self._note(name)
            field.is_changed = name in changed
            # Those of the data are in its list.
            field.picker.choices = form.choices(name, filled, self._known_devices or ()) if name != "data" else ()
            field.picker.placeholder = form.resolved_placeholder(name, filled)
        self.places.show_chosen(self._texts["data"])
        self.post_message(self.Changed(filled))

    def _revealed(self, filled: ResolvedPlan, relevant: AbstractSet[str], changed: AbstractSet[str]) -> frozenset[str]:
        """The fields that only fit the plan because others are changed, such as the fields of a time series."""
        others = changed - {*FIRST}
        if not others:
            return frozenset()
        plain = resolve(valid_part({name: getattr(filled.plan, name) for name in FIRST})[0]).with_data(filled.data)
        return frozenset(name for name in relevant if name not in FIRST and not self._is_relevant(name, plain))

    def _show_others(self, wanted: AbstractSet[str], relevant: AbstractSet[str], changed: AbstractSet[str]) -> None:
        """Show the fields that are always shown and fit the plan, and the wanted ones of all others."""
        before: Field | None = None
        for name in ORDER:
            is_shown = name in relevant and (name in FIRST or name in wanted)
            if is_shown and name not in self._fields:
                self._fields[name] = Field(name, self._texts[name])
                self.query_one("#fields").mount(self._fields[name], after=before)
            if (field := self._fields.get(name)) is None:
                continue
            if not is_shown and field.has_focus_within and before:
                self.screen.set_focus(before.picker.input)  # now, as another field may be about to have it
            field.display = is_shown
            before = field if is_shown and name not in DATA else before
        self.query_one("#plan-panel", PlanPanel).state = f"{len(changed)} of {len(relevant)} changed" if changed else ""
        self.query_one(DefaultValues).values = tuple(
            (label(name), self._texts[name] or placeholder(name)) for name in NEXT if name in relevant - wanted
        )
        self.query_one("#others", Static).update(f"/ finds any of {len(relevant)} settings", layout=False)


def _referred_to(filled: ResolvedPlan) -> Iterator[str]:
    """The fields that messages refer to."""
    for reason in filled.errors.values():
        yield from (part.field for part in reason if isinstance(part, FieldValue))
