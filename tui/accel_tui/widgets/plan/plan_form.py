"""The New run form, generated from the plan's field specs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from accel_engine.data import DatasetEntry
from accel_engine.devices.device_types import Device, Inventory
from accel_engine.errors import FieldValue
from accel_engine.plan import SPECS, Plan
from accel_engine.plan.fields import PlanFields
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.search.definition import Parameter
from accel_tui.plan import form, search_fields
from accel_tui.plan.data_look import SurveyError, survey_subject
from accel_tui.plan.field_labels import word
from accel_tui.plan.form import is_relevant
from accel_tui.plan.form_groups import COLUMNS, FIRST, ORDER, fields_of, group_of, is_changed, summarize_group
from accel_tui.widgets.plan.field import Field
from accel_tui.widgets.plan.field_group import FieldGroup, GroupHeader
from accel_tui.widgets.plan.picker import Picker


class PlanForm(Widget):
    """The fields that apply: first the fields of every run, the others in folded groups.

    Posts its result on each change. It holds the texts of all fields; a group mounts its fields when it is opened.

    Args:
        defaults: The values that are not marked, and to which fields are reset.
    """

    DEFAULT_CSS = """
    PlanForm {
        layout: vertical;
        height: auto;

        .columns { height: auto; }
        .column { width: 1fr; height: auto; }
        .first {
            width: 1fr;
            height: auto;
            border-top: solid $border;
            border-title-color: $foreground;
            border-title-style: bold;
        }
    }
    """

    inventory: reactive[Inventory | None] = reactive(None)
    """The machine's devices, which decide what is possible."""

    surveyed: reactive[DatasetEntry | None] = reactive(None, init=False)
    """What was found in the user's own data."""

    survey_error: reactive[SurveyError | None] = reactive(None, init=False)
    """Why the user's own data cannot be used."""

    @dataclass
    class Changed(Message):
        """A field has changed."""

        filled: ResolvedPlan

    def __init__(self, defaults: PlanFields | None = None) -> None:
        super().__init__()
        self.defaults: PlanFields = defaults or Plan()
        self._texts = {name: form.to_text(getattr(self.defaults, name)) for name in SPECS}
        self._wanted: Field | None = None  # to be focused once it is mounted
        self._first = {name: self._make_field(name) for names in FIRST.values() for name in names}
        self._groups = {
            group: FieldGroup(group, fields_of(group), self._make_field) for column in COLUMNS for group in column
        }

    def compose(self) -> ComposeResult:
        with Horizontal(classes="columns"):
            for (title, names), place in zip(FIRST.items(), ("-first", "-second"), strict=True):
                with Vertical(classes=f"first column {place}") as box:
                    box.border_title = title
                    yield from (self._first[name] for name in names)
        with Horizontal(classes="columns"):
            for column, place in zip(COLUMNS, ("-first", "-second"), strict=True):
                with Vertical(classes=f"column {place}"):
                    yield from (self._groups[group] for group in column)

    def on_mount(self) -> None:
        self._update_fields()

    @property
    def fields(self) -> tuple[Field, ...]:
        """The mounted fields, in their order on the screen."""
        mounted = {
            **self._first,
            **{name: field for group in self._groups.values() for name, field in group.fields.items()},
        }
        return tuple(mounted[name] for name in ORDER if name in mounted)

    @property
    def shown(self) -> tuple[Field, ...]:
        """The fields on the screen, in their order."""
        return tuple(field for field in self.fields if field.display)

    @property
    def relevant(self) -> tuple[str, ...]:
        """The fields that fit the plan, in folded groups too, in their order on the screen."""
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
        """What varies: the fields with a range or a list of values."""
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
        self._write({name: form.to_text(getattr(plan, name)) for name in SPECS})

    def set(self, name: str, text: str) -> None:
        """Set the text of a field."""
        self._write({name: text})

    def reset(self, names: Sequence[str]) -> None:
        """Set fields to their defaults."""
        self._write({name: form.to_text(getattr(self.defaults, name)) for name in names})

    @property
    def changed(self) -> tuple[str, ...]:
        """The fields whose text is not the default, in their order on the screen."""
        return tuple(name for name in ORDER if self._texts[name] != form.to_text(getattr(self.defaults, name)))

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

    def go_to(self, name: str) -> None:
        """Focus a field; a folded group is opened."""
        if group := group_of(name):
            self._open((group,))
        self._wanted = next(field for field in self.fields if field.field == name)
        self._focus_wanted()

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
        self._update_fields()

    @on(Picker.Completed)
    def _focus_next(self, event: Picker.Completed) -> None:
        """Focus the next field, which may still have to be mounted; after the last one of a group, the next group."""
        event.stop()
        names = [field.field for field in self.shown]
        name = event.picker.id or ""
        following = names[names.index(name) + 1] if name in names[:-1] else ""
        if following and group_of(following) == group_of(name):
            self.go_to(following)
        else:
            self.screen.focus_next()

    @on(GroupHeader.Toggled)
    def _toggle(self, event: GroupHeader.Toggled) -> None:  # the screen handles it too
        event.header.is_open = event.is_open
        self._update_fields()

    @on(GroupHeader.Reset)
    def _reset_group(self, event: GroupHeader.Reset) -> None:
        event.stop()
        self.reset(self._groups[event.title].names)

    @on(Field.Reset)
    def _reset_field(self, event: Field.Reset) -> None:
        event.stop()
        self.reset((event.field,))

    @property
    def _known_devices(self) -> tuple[Device, ...] | None:
        return None if self.inventory is None else self.inventory.devices

    def _make_field(self, name: str) -> Field:
        return Field(name, self._texts[name])

    def _write(self, texts: dict[str, str]) -> None:
        self._texts |= texts
        with self.prevent(Picker.Changed):
            for field in self.fields:
                if field.field in texts:
                    field.picker.value = texts[field.field]
        self._update_fields()

    def _focus_wanted(self) -> None:
        if self._wanted and self._wanted.picker.input.is_mounted:
            self._wanted.picker.input.focus()
            self._wanted = None
        elif self._wanted:
            self._wanted.call_after_refresh(self._focus_wanted)

    def _open(self, groups: Sequence[str]) -> None:
        """Open folded groups."""
        closed = [self._groups[group].header for group in groups if not self._groups[group].is_open]
        for header in closed:
            header.is_open = True
        if closed:
            self._update_fields()

    def _update_fields(self) -> None:
        filled = self.filled
        for group in _groups_of_errors(filled):
            self._groups[group].header.is_open = True
        relevant = {name for name in ORDER if is_relevant(name, filled, self._known_devices)}
        ranges = search_fields.range_texts(self.parameters)
        for name, field in self._first.items():
            field.display = name in relevant
        for box in self._groups.values():
            names = [name for name in box.names if name in relevant]
            box.update(names, summarize_group(names, filled, self.defaults, ranges))
        for field in self.shown:
            name = field.field
            field.error = word(filled.errors.get(name, ()))
            field.is_changed = name in ranges or is_changed(name, filled, self.defaults)
            field.picker.choices = form.choices(name, filled, self._known_devices or ())
            field.picker.placeholder = form.resolved_placeholder(name, filled)
        self.post_message(self.Changed(filled))


def _groups_of_errors(filled: ResolvedPlan) -> Iterator[str]:
    """The folded groups of invalid fields, and of the fields that their messages refer to."""
    for name, reason in filled.errors.items():
        for each in (name, *(part.field for part in reason if isinstance(part, FieldValue))):
            if group := group_of(each):
                yield group
