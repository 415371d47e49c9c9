"""The summary of a plan: asks the engine about the model and surveys the user's data."""

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import work
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

from accel_engine.data import DatasetEntry
from accel_engine.data.changes import remarks
from accel_engine.devices.device_types import Inventory
from accel_engine.plan import Plan, isolation
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.process.warm_engine import WarmEngine
from accel_engine.requests.describe_model import Description
from accel_engine.text import printable_fields
from accel_engine.words import numbers
from accel_tui.app_protocol import app_of
from accel_tui.places.place_state import UNKNOWN, PlaceState
from accel_tui.plan import plan_preview
from accel_tui.plan.data_text import DATA_FIELDS, PreviewRow, SurveyError, SurveySubject, survey_form, survey_subject
from accel_tui.run_launcher import LaunchState

if TYPE_CHECKING:
    from accel_tui.places.where import Where

IDLE_SECONDS = 0.25
"""Seconds without input before the engine is asked about the model."""

Subject = tuple[str, SurveySubject]
"""What a model description depends on: the model, and the data with its options."""

_SUBJECT_FIELDS = {"model", "data", *DATA_FIELDS}

_NAME = 10


class SummaryPanel(Widget, can_focus=False):
    """The model as a drawing, time, memory, files, what comes next, and warnings; as much of the drawing as fits."""

    DEFAULT_CSS = "SummaryPanel { height: 1fr; padding: 0 1 0 2; }"

    launch: reactive[LaunchState] = reactive(LaunchState(), repaint=False)
    """Has the engine that can describe a model."""

    facts: reactive[tuple[PreviewRow, ...]] = reactive(())
    """What follows from the plan."""

    warnings: reactive[tuple[str, ...]] = reactive(())
    """Warnings."""

    description: reactive[Description | None] = reactive(None)
    """The model; ``None`` while it is unknown."""

    memory: reactive[tuple[float, float] | None] = reactive(None)
    """The parts of the memory that the training surely takes, and may take; ``None`` while they are unknown."""

    @dataclass
    class Noted(Message):
        """Notes on the values of fields, by field."""

        notes: dict[str, str]

    @dataclass
    class DataSurveyed(Message):
        """The user's data was surveyed."""

        found: DatasetEntry | SurveyError

    def __init__(self) -> None:
        super().__init__()
        self._filled: ResolvedPlan | None = None
        self._search = ""
        self._described: tuple[Subject, Description] | None = None
        self._asked: tuple[WarmEngine | None, Subject] | None = None
        self._pause: Timer | None = None
        self._surveyed: SurveySubject | None = None
        self._port_warning = ""
        self._measured: tuple[ResolvedPlan, tuple[PreviewRow, ...]] | None = None
        self._where: Where | None = None
        self._place = UNKNOWN
        self._travels: tuple[ResolvedPlan, tuple[PreviewRow, ...]] | None = None

    def preview(
        self, filled: ResolvedPlan, search: str = "", where: "Where | None" = None, place: PlaceState = UNKNOWN
    ) -> None:
        """Show a form's plan; request missing details once the user stops typing.

        Args:
            filled: The form.
            search: What varies in a search.
            where: Where it is to train; ``None`` for this machine.
            place: What is known of that place.
        """
        self._filled = filled
        self._search = search
        if (where, place) != (self._where, self._place):
            self._where, self._place, self._measured, self._travels = where, place, None, None
        self._update(filled)
        if self._pause:
            self._pause.stop()
        self._pause = self.set_timer(IDLE_SECONDS, self._request_details)

    def refresh_measured(self) -> None:
        """Ask again what races have measured: one may have ended."""
        self._measured = None
        self._request_details()

    def watch_launch(self, before: LaunchState, launch: LaunchState) -> None:
        """Request a description of the model from another engine."""
        if launch.ready_engine is not before.ready_engine:
            self._request_details()

    def _update(self, filled: ResolvedPlan) -> None:
        known = self._described
        description = known[1] if known and known[0] == _subject(filled.plan) else None
        pending = "counting…" if self.launch.ready_engine else "waiting for TensorFlow"
        measured = self._measured[1] if self._measured and self._measured[0] is filled else None
        varying = [PreviewRow("search", self._search)] if self._search else []
        rows = plan_preview.rows(filled, description, pending)
        outcome = (row for row in rows if row.name in (*_COUNTS, *plan_preview.OUTCOME))
        files = plan_preview.file_rows(filled, description)
        if filled.is_sized_by_data and not filled.errors:
            varying.append(PreviewRow("model", "known once the data is read", pending=True))
        elif description is None and not filled.errors:
            varying.append(PreviewRow("model", f"its blocks: {pending}", pending=True))
        times = () if self._where else _times(measured)
        there = self._travels[1] if self._travels else ()
        self.facts = printable_fields((*there, *varying, *times, *outcome, *files, _NEXT))
        self.description = None if filled.errors else description
        self.memory = _memory_shares(filled, description)
        self.post_message(self.Noted(printable_fields(plan_preview.field_notes(filled, rows))))
        ports = filter(None, [self._port_warning])
        of_data = remarks(filled.data.notes, filled.data.changes)  # which the preview of the data has
        warnings = (text for text in plan_preview.warnings(filled, description) if text not in of_data)
        self.warnings = printable_fields((*warnings, *ports))

    def _request_details(self) -> None:
        """Survey the user's data and have the engine count the model's parameters, unless known."""
        filled, engine = self._filled, self.launch.ready_engine
        if filled is None:
            return
        if filled.strategy.processes or self._port_warning:
            self._check_ports(filled)
        if self._where and (self._travels is None or self._travels[0] is not filled):
            self._read_travels(filled, self._where, self._place)
        inventory = app_of(self).inventory  # found after the first frame, which must not wait for an import
        is_measured = self._measured is not None and self._measured[0] is filled
        if inventory is not None and self._where is None and not is_measured:
            self._read_measured(filled, inventory)
        subject, is_wrong = survey_subject(filled.plan), bool(_SUBJECT_FIELDS & filled.errors.keys())
        if filled.data.path is not None and "data" not in filled.errors and (subject != self._surveyed or is_wrong):
            self._surveyed = subject
            self._survey(filled)
        if is_wrong:
            return
        wanted = (engine, _subject(filled.plan))
        known = self._described is not None and self._described[0] == wanted[1]
        if engine and not known and wanted != self._asked and not filled.is_sized_by_data:
            self._asked = wanted
            self._describe(engine, filled.plan)

    @work(thread=True, exclusive=True, exit_on_error=False, group="survey")
    def _survey(self, filled: ResolvedPlan) -> None:
        self.call_later(self._take_survey, survey_subject(filled.plan), survey_form(filled))

    def _take_survey(self, subject: SurveySubject, found: DatasetEntry | SurveyError) -> None:
        if subject == self._surveyed:  # else other data was chosen meanwhile
            self.post_message(self.DataSurveyed(found))

    @work(thread=True, exclusive=True, exit_on_error=False, group="travels")
    def _read_travels(self, filled: ResolvedPlan, where: "Where", place: PlaceState) -> None:
        from accel_tui.places.where import place_rows  # imported by now

        self.call_later(self._take_travels, filled, place, place_rows(where, place, filled))

    def _take_travels(self, filled: ResolvedPlan, place: PlaceState, rows: tuple[PreviewRow, ...]) -> None:
        if filled is self._filled and place is self._place:
            self._travels = (filled, rows)
            self._update(filled)

    @work(thread=True, exclusive=True, exit_on_error=False, group="measured")
    def _read_measured(self, filled: ResolvedPlan, inventory: Inventory) -> None:
        from accel_engine.race.remembered_races import remembered_result  # the first frame does not need it
        from accel_engine.run.directory.run_paths import host_of_run
        from accel_tui.plan.measured_text import earlier_rows, first_use_rows, measured_rows
        from accel_tui.widgets.runs_table import RunsTable

        rows = measured_rows(remembered_result(filled, inventory.devices), filled)
        if not any(row.name == "an epoch" for row in rows):
            rows = (
                *earlier_rows((run for run in RunsTable.listing.runs if not host_of_run(run.directory)), filled),
                *rows,
            )
        rows += first_use_rows(filled, inventory.devices)
        self.call_later(self._take_measured, filled, rows)

    def _take_measured(self, filled: ResolvedPlan, rows: tuple[PreviewRow, ...]) -> None:
        if filled is self._filled:
            self._measured = (filled, rows)
            self._update(filled)

    @work(thread=True, exclusive=True, exit_on_error=False, group="ports")
    def _check_ports(self, filled: ResolvedPlan) -> None:
        self.call_later(self._take_port_warning, filled, isolation.warning(filled))

    def _take_port_warning(self, filled: ResolvedPlan, warning: str) -> None:
        if filled is self._filled:  # else it is asked again
            self._port_warning = warning
            self._update(filled)

    @work(thread=True, exclusive=True, exit_on_error=False, group="describe")
    def _describe(self, engine: WarmEngine, plan: Plan) -> None:
        self.call_later(self._take_description, engine, _subject(plan), engine.describe(plan))

    def _take_description(self, engine: WarmEngine, subject: Subject, description: Description) -> None:
        if self._asked == (engine, subject):
            self._asked = None
        if engine is not self.launch.ready_engine:  # it has a run, or has exited
            return
        if self._filled and subject == _subject(self._filled.plan):  # else it is asked again
            self._described = (subject, description)
            self._update(self._filled)

    def render(self) -> Content:
        """All lines, as wide as the widget."""
        width, height = self.size
        rows = [line for fact in self.facts for line in self._fact(fact, width)]
        warnings = [line for text in self.warnings for line in Content.styled(f"⚠ {text}", "$text-warning").wrap(width)]
        room = height - len(rows) - len(warnings) - 1 - bool(warnings)
        drawing = self._drawing(width, room)
        lines = [*drawing, *([Content("")] if drawing else []), *warnings, *([Content("")] if warnings else []), *rows]
        return Content("\n").join(line.truncate(width, ellipsis=True) for line in lines)

    def _drawing(self, width: int, room: int) -> list[Content]:
        if self.description is None or not self.description.blocks or room < _SMALLEST_DRAWING:
            return []
        from accel_tui.plan.model_drawing import draw_model  # the first frame, without a description, does not need it

        description = self.description
        title = f"{numbers.shape(description.input_shape)} each" if description.input_shape else ""
        return draw_model(description, width, room, title)

    def _fact(self, fact: PreviewRow, width: int) -> list[Content]:
        lines = _paragraph(fact, width)
        if fact.name == "memory" and self.memory:
            lines.append(Content.assemble(" " * _NAME, *_bar(*self.memory, min(width - _NAME - 6, 24))))
        return lines


_SMALLEST_DRAWING = 5

_COUNTS = ("examples", "steps")
"""What is known of the data before TensorFlow is imported."""

_NEXT = PreviewRow("then", "predict, export, compare")

_UNKNOWN_TIME = PreviewRow("time", "unknown until Race (b) measures it", pending=True)


def _times(measured: tuple[PreviewRow, ...] | None) -> tuple[PreviewRow, ...]:
    """The rows on the time."""
    if measured is None:
        return (PreviewRow("time", "…", pending=True),)
    return measured if any(row.name in ("time", "an epoch") for row in measured) else (_UNKNOWN_TIME, *measured)


def _memory_shares(filled: ResolvedPlan, description: Description | None) -> tuple[float, float] | None:
    if description is None or filled.errors:
        return None
    from accel_tui.plan import memory_text  # the first frame, without a description, does not need it

    training = memory_text.training_of(filled, description)
    return memory_text.memory_shares(training) if training else None


def _bar(low: float, high: float, width: int) -> list[tuple[str, str]]:
    """A bar of memory: what is surely taken, what may be, and the rest."""
    sure = min(max(round(low * width), 1), width)
    maybe = min(max(round(high * width), sure), width) - sure
    style = "$text-error" if low > 1 else "$text-warning" if high > 1 else "$secondary"
    share = f"{min(high, 9.99):>5.0%}"
    return [
        ("█" * sure, style),
        ("▒" * maybe, style),
        ("░" * (width - sure - maybe), "$border"),
        (share, "$text-muted"),
    ]


def _subject(plan: Plan) -> Subject:
    return plan.model, survey_subject(plan)


def _paragraph(fact: PreviewRow, width: int) -> list[Content]:
    """A text next to its name, wrapped."""
    lines = textwrap.wrap(fact.text, max(width - _NAME, _NAME))
    names = [fact.name] + [""] * len(lines)
    return [
        Content.assemble((f"{name:<{_NAME}}", "$text-muted"), (line, "$text-disabled" if fact.pending else ""))
        for name, line in zip(names, lines, strict=False)
    ]
