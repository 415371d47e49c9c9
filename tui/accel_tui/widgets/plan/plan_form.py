"""The New run form, generated from the plan's field specs."""

from dataclasses import dataclass, replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from accel_engine.data import DatasetEntry
from accel_engine.devices.device_types import Inventory
from accel_engine.plan import DEFAULTS, GROUPS, Plan
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve
from accel_tui.plan import form
from accel_tui.plan.data_survey import SurveyError, survey_subject
from accel_tui.plan.relevance import is_relevant
from accel_tui.widgets.plan.field import Field
from accel_tui.widgets.plan.picker import Picker


class PlanForm(Widget):
    """The fields that apply, by group; posts its result whenever one changes."""

    DEFAULT_CSS = """
    PlanForm {
        layout: horizontal;
        height: auto;

        .group {
            width: 1fr;
            height: auto;
            border-top: solid $border;
            border-title-color: $foreground;
            border-title-style: bold;
        }
        .column { width: 1fr; height: auto; }
    }
    """

    COLUMNS: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("Model and data", "Columns", "Time series", "Splits", "Training", "Devices"),
        tuple(list(GROUPS)[5:-1]),
    )
    """Groups per column; the columns are stacked on narrow screens."""

    inventory: reactive[Inventory | None] = reactive(None)
    """The machine's devices, which decide what is possible."""

    surveyed: reactive[DatasetEntry | None] = reactive(None, init=False)
    """What was found in the user's own data."""

    survey_error: reactive[SurveyError | None] = reactive(None, init=False)
    """Why the user's own data cannot be used."""

    @dataclass
    class Changed(Message):
        """A field has changed."""

        form: "PlanForm"
        filled: ResolvedPlan

        @property
        def control(self) -> "PlanForm":
            """The sender, for :func:`textual.on`."""
            return self.form

    def __init__(self) -> None:
        super().__init__()
        self.fields = tuple(
            Field(name, form.to_text(DEFAULTS[name]))
            for column in self.COLUMNS
            for group in column
            for name in GROUPS[group]
        )
        """All fields in their order on the screen, mounted or not."""

    def compose(self) -> ComposeResult:
        """Compose one or two columns of groups."""
        for column, place in zip(self.COLUMNS, ("-first", "-second"), strict=True):
            with Vertical(classes=f"column {place}"):
                for group in column:
                    with Vertical(id=f"group-{group.lower().replace(' ', '-')}", classes="group") as box:
                        box.border_title = group
                        names = {name for name in GROUPS[group] if is_relevant(name, resolve(Plan()), None)}
                        yield from (field for field in self.fields if field.field in names)

    def on_mount(self) -> None:
        """Post the initial result."""
        self._look()

    @property
    def shown(self) -> tuple[Field, ...]:
        """The fields that apply, in their order on the screen."""
        return tuple(field for field in self.fields if field.parent is not None and field.display)

    @property
    def filled(self) -> ResolvedPlan:
        """The current result."""
        devices = None if self.inventory is None else self.inventory.devices
        filled = form.evaluate({field.field: field.picker.value for field in self.fields}, devices, self.surveyed)
        error = self.survey_error
        if error and error.subject == survey_subject(filled.plan):
            return replace(filled, errors={error.field: error.reason, **filled.errors})
        return filled

    def load(self, plan: Plan) -> None:
        """Fill the form in from a plan."""
        with self.prevent(Picker.Changed):
            for field in self.fields:
                field.picker.value = form.to_text(getattr(plan, field.field))
        self._look()

    def set(self, name: str, text: str) -> None:
        """Set the text of a field."""
        self._field(name).picker.value = text

    def go_to(self, name: str) -> None:
        """Focus a field."""
        self._field(name).picker.input.focus()

    def watch_inventory(self) -> None:
        """Update what is possible."""
        if self.is_mounted:
            self._look()

    def watch_surveyed(self) -> None:
        """Update which models are possible."""
        if self.is_mounted:
            self._look()

    def watch_survey_error(self) -> None:
        """Show the problem."""
        if self.is_mounted:
            self._look()

    @on(Picker.Changed)
    def _edited(self, event: Picker.Changed) -> None:
        event.stop()
        self._look()

    def _field(self, name: str) -> Field:
        return next(field for field in self.fields if field.field == name)

    def _look(self) -> None:
        filled = self.filled
        self._show(filled)
        devices = () if self.inventory is None else self.inventory.devices
        for field in self.shown:
            name = field.field
            field.error = form.word(filled.errors.get(name, ()))
            field.picker.choices = form.choices(name, filled, devices)
            field.picker.placeholder = form.placeholder(name, filled)
        self.post_message(self.Changed(self, filled))

    def _show(self, filled: ResolvedPlan) -> None:
        """Show the fields that apply; those that were never needed before are mounted in their place."""
        devices = None if self.inventory is None else self.inventory.devices
        for group, names in GROUPS.items():
            mounted: Field | None = None
            shown: Field | None = None
            for field in (field for field in self.fields if field.field in names):
                wanted = is_relevant(field.field, filled, devices)
                if field.parent is None and wanted:
                    box = self.query_one(f"#group-{group.lower().replace(' ', '-')}")
                    box.mount(field, after=mounted) if mounted else box.mount(field, before=0)
                if not wanted and field.has_focus_within and shown:
                    shown.picker.input.focus()
                field.display = wanted
                mounted = mounted if field.parent is None else field
                shown = field if wanted else shown
