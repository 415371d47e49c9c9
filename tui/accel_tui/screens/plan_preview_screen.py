"""Base of the New run screen: asks the engine about the model and surveys the user's data."""

from dataclasses import dataclass

from textual import on, work
from textual.getters import query_one
from textual.message import Message
from textual.reactive import reactive
from textual.timer import Timer

from accel_engine import data
from accel_engine.data import DatasetEntry
from accel_engine.errors import AccelError
from accel_engine.launch.warm_engine import Description, WarmEngine
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.text import printable_fields
from accel_tui.plan import plan_preview
from accel_tui.terminal.dirty_regions import DirtyRegionScreen
from accel_tui.widgets.plan.plan_form import PlanForm
from accel_tui.widgets.plan.summary_panel import SummaryPanel

IDLE_SECONDS = 0.25
"""Seconds without input before the engine is asked about the model."""

Subject = tuple[str, str, str | None]
"""What a model description depends on: model, data and image size."""


def _subject(plan: Plan) -> Subject:
    return plan.model, plan.data, plan.image_size


class PlanPreviewScreen(DirtyRegionScreen):
    """A screen with a form and a summary of its plan."""

    ready_engine: reactive[WarmEngine | None] = reactive(None, repaint=False)
    """The engine that can describe a model."""

    form = query_one(PlanForm)
    summary = query_one(SummaryPanel)

    @dataclass
    class DataSurveyed(Message):
        """The user's data was surveyed."""

        plan: Plan
        entry: DatasetEntry | None
        problem: str = ""

    @dataclass
    class Described(Message):
        """The engine has described the model."""

        engine: WarmEngine
        subject: Subject
        description: Description

    def __init__(self) -> None:
        super().__init__()
        self._previewed: ResolvedPlan | None = None
        self._described: tuple[Subject, Description] | None = None
        self._asked: tuple[WarmEngine | None, Subject] | None = None
        self._pause: Timer | None = None

    def preview(self, filled: ResolvedPlan) -> None:
        """Update the summary; request missing details once the user stops typing."""
        self._previewed = filled
        self._update_summary()
        if self._pause:
            self._pause.stop()
        self._pause = self.set_timer(IDLE_SECONDS, self._request_details)

    def watch_ready_engine(self) -> None:
        """Request a description of the model."""
        self._request_details()

    def _update_summary(self) -> None:
        if self._previewed is None:
            return
        known = self._described
        description = known[1] if known and known[0] == _subject(self._previewed.plan) else None
        pending = "counting…" if self.ready_engine else "waiting for TensorFlow"
        self.summary.choices = printable_fields(plan_preview.choice_rows(self._previewed))
        self.summary.facts = printable_fields(plan_preview.rows(self._previewed, description, pending))
        self.summary.warnings = printable_fields(plan_preview.warnings(self._previewed, description))

    def _request_details(self) -> None:
        """Survey the user's data and have the engine count the model's parameters, unless known."""
        filled = self._previewed
        if filled is None or {"model", "data", "image_size"} & filled.errors.keys():
            return
        if filled.data.path is not None:
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
            self.post_message(self.DataSurveyed(plan, None, str(error)))
        else:
            self.post_message(self.DataSurveyed(plan, entry))

    @work(thread=True, exclusive=True, exit_on_error=False, group="describe")
    def _describe(self, engine: WarmEngine, plan: Plan) -> None:
        self.post_message(self.Described(engine, _subject(plan), engine.describe(plan)))

    @on(DataSurveyed)
    def _update_survey(self, event: DataSurveyed) -> None:
        self.form.data_problem = (event.plan.data, event.problem) if event.problem else ("", "")
        if event.entry is not None:
            self.form.surveyed = event.entry

    @on(Described)
    def _update_description(self, event: Described) -> None:
        if event.engine is self.ready_engine:  # else it has a run, or has exited
            self._described = (event.subject, event.description)
            self._update_summary()
