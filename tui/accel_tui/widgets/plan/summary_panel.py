"""The summary of a plan: asks the engine about the model and surveys the user's data."""

import textwrap
from dataclasses import dataclass

from textual import work
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

from accel_engine.data import DatasetEntry
from accel_engine.devices.device_types import Inventory
from accel_engine.plan import Plan, isolation
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.process.warm_engine import WarmEngine
from accel_engine.requests.describe_model import Description
from accel_engine.text import printable_fields
from accel_tui.host import host_of
from accel_tui.plan import plan_preview
from accel_tui.plan.data_look import DATA_FIELDS, PreviewRow, SurveyError, SurveySubject, survey, survey_subject
from accel_tui.run_launcher import LaunchState

IDLE_SECONDS = 0.25
"""Seconds without input before the engine is asked about the model."""

Subject = tuple[str, SurveySubject]
"""What a model description depends on: the model, and the data with its options."""

_SUBJECT_FIELDS = {"model", "data", *DATA_FIELDS}

_NAME = 12
_TWO_COLUMNS = 66
_ANY = 1000


class SummaryPanel(Widget):
    """The choices and what follows from them, in one column, or in two if wide enough.

    Choices are cut short where they leave no room for the rest, and left out in two columns below the form. Warnings
    come last.
    """

    DEFAULT_CSS = """
    SummaryPanel {
        height: auto;
        border-top: solid $border;
        border-title-color: $foreground;
        border-title-style: bold;
    }
    """

    launch: reactive[LaunchState] = reactive(LaunchState(), repaint=False)
    """Has the engine that can describe a model."""

    choices: reactive[tuple[PreviewRow, ...]] = reactive((), layout=True)
    """The choices: model, data, strategy."""

    facts: reactive[tuple[PreviewRow, ...]] = reactive((), layout=True)
    """What follows from the plan: parameters, steps, memory and others."""

    warnings: reactive[tuple[str, ...]] = reactive((), layout=True)
    """Warnings."""

    @dataclass
    class DataSurveyed(Message):
        """The user's data was surveyed."""

        found: DatasetEntry | SurveyError

    def __init__(self) -> None:
        super().__init__()
        self.border_title = "Summary"
        self._filled: ResolvedPlan | None = None
        self._search = ""
        self._described: tuple[Subject, Description] | None = None
        self._asked: tuple[WarmEngine | None, Subject] | None = None
        self._pause: Timer | None = None
        self._surveyed: SurveySubject | None = None
        self._port_warning = ""
        self._measured: tuple[ResolvedPlan, tuple[PreviewRow, ...]] | None = None

    def preview(self, filled: ResolvedPlan, search: str = "") -> None:
        """Show a form's plan, and what varies in a search; request missing details once the user stops typing."""
        self._filled = filled
        self._search = search
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
        self.choices = printable_fields(plan_preview.choice_rows(filled))
        measured = self._measured[1] if self._measured and self._measured[0] is filled else ()
        varying = [PreviewRow("search", self._search)] if self._search else []
        self.facts = printable_fields((*varying, *plan_preview.rows(filled, description, pending), *measured))
        ports = filter(None, [self._port_warning])
        self.warnings = printable_fields((*plan_preview.warnings(filled, description), *ports))

    def _request_details(self) -> None:
        """Survey the user's data and have the engine count the model's parameters, unless known."""
        filled, engine = self._filled, self.launch.ready_engine
        if filled is None:
            return
        if filled.strategy.processes or self._port_warning:
            self._check_ports(filled)
        inventory = host_of(self).inventory  # found after the first frame, which must not wait for an import
        if inventory is not None and (self._measured is None or self._measured[0] is not filled):
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
        self.post_message(self.DataSurveyed(survey(filled)))

    @work(thread=True, exclusive=True, exit_on_error=False, group="measured")
    def _read_measured(self, filled: ResolvedPlan, inventory: Inventory) -> None:
        from accel_engine.race.remembered import remembered_result  # the first frame does not need it
        from accel_tui.plan.measured_text import first_use_rows, measured_rows

        rows = measured_rows(remembered_result(filled, inventory.devices), filled)
        rows += first_use_rows(filled, inventory.devices)
        self.call_later(self._take_measured, filled, rows)

    def _take_measured(self, filled: ResolvedPlan, rows: tuple[PreviewRow, ...]) -> None:
        if filled is self._filled:
            had_rows = self._measured is not None and bool(self._measured[1])
            self._measured = (filled, rows)
            if rows or had_rows:
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
        if engine is self.launch.ready_engine and self._filled:  # else it has a run, or has exited
            self._described = (subject, description)
            self._update(self._filled)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Number of lines, cut to the room if possible."""
        # A parent with automatic height asks without one.
        return len(self._lines(width, container.height or _ANY))

    def render(self) -> Content:
        """All lines, as wide as the widget."""
        return Content("\n").join(self._lines(self.size.width, self.size.height))

    def _lines(self, width: int, room: int) -> list[Content]:
        if width >= _TWO_COLUMNS:
            rows = [_row(fact) for fact in self.facts]
            half = (len(rows) + 1) // 2
            left = [row.truncate(width // 2 - 1, ellipsis=True, pad=True) for row in rows[:half]]
            right = [*rows[half:], Content("")][:half]
            rows = [Content.assemble(first, " ", second) for first, second in zip(left, right, strict=True)]
        else:
            rows = [line for fact in self.facts for line in _paragraph(fact, width)]
        rows += [line for text in self.warnings for line in Content.styled(text, "$text-warning").wrap(width)]
        if width < _TWO_COLUMNS or not self.screen.has_class("-narrow"):
            rows = [*self._choice_lines(width, room - len(rows) - 1), Content(""), *rows]
        return [row.truncate(width, ellipsis=True) for row in rows]

    def _choice_lines(self, width: int, room: int) -> list[Content]:
        """The choices, in as many lines as fit; the longest is cut first, to one line at least."""
        wholes = [_paragraph(fact, width, "$text-muted") for fact in self.choices]
        counts = [len(whole) for whole in wholes]
        while sum(counts) > room and max(counts, default=1) > 1:
            counts[counts.index(max(counts))] -= 1
        return [
            line
            for fact, whole, count in zip(self.choices, wholes, counts, strict=True)
            for line in (whole if count == len(whole) else _paragraph(fact, width, "$text-muted", count))
        ]


def _subject(plan: Plan) -> Subject:
    return plan.model, survey_subject(plan)


def _paragraph(fact: PreviewRow, width: int, style: str = "", max_lines: int | None = None) -> list[Content]:
    """A text next to its name, wrapped, in at most ``most`` lines."""
    lines = textwrap.wrap(fact.text, max(width - _NAME, _NAME), max_lines=max_lines, placeholder="…")
    names = [fact.name] + [""] * len(lines)
    return [_row(PreviewRow(name, line, fact.pending), style) for name, line in zip(names, lines, strict=False)]


def _row(fact: PreviewRow, style: str = "") -> Content:
    return Content.assemble(
        (f"{fact.name:<{_NAME}}", "$text-muted"), (fact.text, "$text-disabled" if fact.pending else style)
    )
