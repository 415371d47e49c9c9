"""What a plan comes to: what only an engine can say of the model, and only a look into the user's own data of that."""

from dataclasses import dataclass

from textual import on, work
from textual.getters import query_one
from textual.message import Message
from textual.reactive import reactive
from textual.timer import Timer

from accel_engine import data
from accel_engine.data import DatasetEntry
from accel_engine.errors import AccelError
from accel_engine.launch import Description, WarmEngine
from accel_engine.plan import Plan
from accel_engine.text import printable_fields
from accel_tui.plan import plan_preview
from accel_tui.plan.form import FormResult
from accel_tui.terminal.dirty_regions import DirtyRegionScreen
from accel_tui.widgets.plan.plan_form import PlanForm
from accel_tui.widgets.plan.summary_panel import SummaryPanel

PATIENCE = 0.25
"""Seconds without a key before an engine is asked what the plan's model is."""

Subject = tuple[str, str, str | None]
"""What a description depends on: model, data and image size."""


def _subject(plan: Plan) -> Subject:
    return plan.model, plan.data, plan.image_size


class PlanPreviewScreen(DirtyRegionScreen):
    """A screen with a form and a panel that says what the form means."""

    ready_engine: reactive[WarmEngine | None] = reactive(None, repaint=False)
    """Who can be asked what a model is."""

    form = query_one(PlanForm)
    summary = query_one(SummaryPanel)

    @dataclass
    class Surveyed(Message):
        """The user's own data was looked into."""

        plan: Plan
        entry: DatasetEntry | None
        problem: str = ""

    @dataclass
    class Described(Message):
        """An engine said what the plan's model is."""

        engine: WarmEngine
        subject: Subject
        description: Description

    def __init__(self) -> None:
        super().__init__()
        self._weighed: FormResult | None = None
        self._described: tuple[Subject, Description] | None = None
        self._asked: tuple[WarmEngine | None, Subject] | None = None
        self._pause: Timer | None = None

    def weigh(self, filled: FormResult) -> None:
        """Say what a plan means, and find out what is not known of it once nobody types for a moment."""
        self._weighed = filled
        self._show_outlook()
        if self._pause:
            self._pause.stop()
        self._pause = self.set_timer(PATIENCE, self._ask)

    def watch_ready_engine(self) -> None:
        """Ask it."""
        self._ask()

    def _show_outlook(self) -> None:
        if self._weighed is None:
            return
        known = self._described
        description = known[1] if known and known[0] == _subject(self._weighed.plan) else None
        pending = "counting…" if self.ready_engine else "once TensorFlow is there"
        self.summary.choices = printable_fields(plan_preview.choice_rows(self._weighed))
        self.summary.facts = printable_fields(plan_preview.rows(self._weighed, description, pending))
        self.summary.warnings = printable_fields(plan_preview.warnings(self._weighed, description))

    def _ask(self) -> None:
        """Look into the user's data, and have the model counted, unless that is known already."""
        filled = self._weighed
        if filled is None or {"model", "data", "image_size"} & filled.errors.keys():
            return
        if filled.entry.path is not None:
            self._survey(filled.plan)
        wanted = (self.ready_engine, _subject(filled.plan))
        known = self._described is not None and self._described[0] == wanted[1]
        if self.ready_engine and not known and wanted != self._asked:
            self._asked = wanted
            self._describe(self.ready_engine, filled.plan)

    @work(thread=True, exclusive=True, exit_on_error=False, group="survey")
    def _survey(self, plan: Plan) -> None:
        try:
            entry = data.survey(data.find(plan.data), plan.image_size)
        except AccelError as error:
            self.post_message(self.Surveyed(plan, None, str(error)))
        else:
            self.post_message(self.Surveyed(plan, entry))

    @work(thread=True, exclusive=True, exit_on_error=False, group="describe")
    def _describe(self, engine: WarmEngine, plan: Plan) -> None:
        self.post_message(self.Described(engine, _subject(plan), engine.describe(plan)))

    @on(Surveyed)
    def _take_survey(self, event: Surveyed) -> None:
        self.form.broken = (event.plan.data, event.problem) if event.problem else ("", "")
        if event.entry is not None:
            self.form.surveyed = event.entry

    @on(Described)
    def _take_description(self, event: Described) -> None:
        if event.engine is self.ready_engine:  # else it has a run by now, or has ended, and could not say
            self._described = (event.subject, event.description)
            self._show_outlook()
