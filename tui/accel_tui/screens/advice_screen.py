"""Advice screen: what is wrong with a run, how that is known, and cures that can be tried and applied."""

from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static

from accel_engine.advice import Cure, Finding
from accel_engine.plan.changed_plan import changed_plan, options_text
from accel_engine.run.directory.run_paths import run_name
from accel_engine.text import printable_line
from accel_tui.app_protocol import Screens, app_of, errors_shown, open_screen
from accel_tui.follower import Unreadable
from accel_tui.formatting.advice import change_command, coverage_text, cure_text, failures_text, missing_text
from accel_tui.run_state.advice import Advice, AdviceFollower
from accel_tui.run_state.advice_state import AdviceState
from accel_tui.screens.asking import WorkingScreen, awaiting, copy_text
from accel_tui.screens.cure_runner import CureRunner, can_apply
from accel_tui.terminal.textual_private import is_being_removed
from accel_tui.widgets.advice_lists import CureList, EvidenceChart, FindingList, finding_content
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.key_bar import KeyBar, TopBar
from accel_tui.widgets.visibility import is_covered


class AdviceScreen(WorkingScreen):
    """Lists the findings of a run; shows the evidence of the selected one, and tries, applies and undoes its cures.

    Args:
        directory: The run's directory.
    """

    CSS_PATH = "advice_screen.tcss"
    AUTO_FOCUS = "FindingList"
    BINDING_GROUP_TITLE = "Advice"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "T",
            "try_cure",
            "Try",
            id="advice.try",
            tooltip="Try the cure: train some seconds with and without it, in turns; a live run is paused meanwhile",
        ),
        Binding("a", "apply", "Apply", id="advice.apply", tooltip="Apply the cure to the run; asks first"),
        Binding("u", "undo", "Undo", id="advice.undo", tooltip="Take back the cure that was applied last"),
        Binding(
            "n", "new_run", "To form", id="advice.new-run", tooltip="Fill the New run form in with the changed plan"
        ),
        Binding("Y", "copy", "Copy", id="advice.copy", tooltip="Copy the command, or what to change in the script"),
        Binding("enter", "chart", "Charts", id="advice.chart", tooltip="Show the evidence in the charts of the run"),
        Binding(
            "F",
            "profile",
            "Profile",
            id="advice.profile",
            tooltip="Show the operations that take the time of a step, by a trace",
        ),
        Binding("tab", "switch_list", "Cures", id="advice.next", tooltip="Switch between findings and cures"),
        Binding("pagedown", "scroll_details(1)", id="advice.page-down", tooltip="Scroll the evidence down"),
        Binding("pageup", "scroll_details(-1)", id="advice.page-up", tooltip="Scroll the evidence up"),
        Binding("A", "back", "Back", id="advice.back", tooltip="Go back, with the key that opened this screen"),
        Binding("q", "app.quit", "Quit", id="advice.quit", tooltip="Quit accel-tui; asks first while the run is live"),
    ]

    _findings = getters.query_one(FindingList)
    _cures = getters.query_one(CureList)

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self.advice: Advice | None = None
        self._follower = AdviceFollower(directory, partial(is_covered, self))

    @cached_property
    def _state(self) -> AdviceState:
        return app_of(self).advice_states.setdefault(self.directory, AdviceState())

    @cached_property
    def _runner(self) -> CureRunner:
        return CureRunner(self, self.directory, self._state, on_applied=self._follower.read)

    def compose(self) -> ComposeResult:
        """Compose the summary, the findings beside the details of the selected one, and the keys."""
        yield TopBar(f"Advice  {printable_line(run_name(self.directory))}")
        yield Static("reading the run…", id="about", markup=False)
        with Container(id="body"):
            yield FindingList(compact=True).add_class("panel")
            with VerticalScroll(id="details", classes="panel", can_focus=False):
                yield Static(id="finding", markup=False)
                yield EvidenceChart()
                yield Static("Cures", id="cures-heading", markup=False)
                yield CureList(compact=True)
        yield KeyBar()

    def on_mount(self) -> None:
        self._state.on_change = self._show_trial
        self._listen()

    def on_unmount(self) -> None:
        self._runner.close()
        if self._state.on_change == self._show_trial:
            self._state.on_change = lambda: None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what the selected finding and cure allow."""
        finding, cure = self._finding, self._cure
        changes = cure.changes if cure and self.advice and self.advice.info.has_engine else {}
        match action:
            case "try_cure" | "apply" | "new_run":
                has_plan = self.advice is not None and self.advice.info.plan is not None
                is_offered = bool(changes and has_plan)
                if action == "try_cure":
                    is_offered = is_offered and not self._reason_not_to_try
                elif action == "apply":
                    is_offered = is_offered and self.advice is not None and can_apply(self.advice.info, changes)
                return (not self._runner.is_busy or None) if is_offered else False
            case "undo":
                is_cured = self._state.is_applied or (self.advice and self.advice.is_cured)
                return (not self._runner.is_busy or None) if is_cured else False
            case "profile":
                if self.advice is None or self.advice.info.bench:
                    return False
                return not self._runner.is_trying or None  # leaving stops it
            case "copy" | "switch_list":
                return cure is not None
            case "chart":
                has_chart = finding is not None and any(each.steps or each.series for each in finding.evidence)
                return has_chart and (not self._runner.is_trying or None)  # leaving stops it
        return True

    def why_not(self, action: str) -> str:
        """Why an action is not possible whose key is dimmed."""
        return (
            "The trial of a cure is running; escape ends it." if self._runner.is_trying else "A cure is being applied."
        )

    @property
    def _finding(self) -> Finding | None:
        return self._findings.selected if self.is_mounted else None

    @property
    def _cure(self) -> Cure | None:
        return self._cures.selected if self.is_mounted else None

    @property
    def _reason_not_to_try(self) -> str:
        cure, advice = self._cure, self.advice
        return advice.not_tried.get(options_text(cure.changes), "") if cure and advice else ""

    def action_try_cure(self) -> None:
        if (finding := self._finding) and (cure := self._cure):
            self._runner.try_cure(finding, cure)

    @awaiting
    async def action_apply(self) -> None:
        """Ask, then apply the selected cure."""
        if (finding := self._finding) and (cure := self._cure) and self.advice:
            await self._runner.apply(finding, cure, self.advice.info)

    def action_undo(self) -> None:
        self._runner.undo()

    def action_new_run(self) -> None:
        if (cure := self._cure) and self.advice and self.advice.info.plan:
            with errors_shown(self):
                open_screen(self, Screens.NEW_RUN, changed_plan(self.advice.info.plan, cure.changes))

    def action_copy(self) -> None:
        """Copy the command that trains with the cure, or its words where no command does it."""
        if (cure := self._cure) and self.advice:
            with errors_shown(self):
                command = change_command(self.advice.info, cure.changes)
                text = command or cure_text(cure, self.advice.info)
                copy_text(self, text, "Command" if command else "Text")

    def action_chart(self) -> None:
        finding = self._finding
        if finding and self.advice:
            steps = finding.steps or (0, self.advice.coverage.steps)
            series = next((each.series for each in finding.evidence if each.series), "")
            open_screen(self, Screens.RUN, self.directory, (*steps, series))

    def action_profile(self) -> None:
        """Open the profile of the run's operations."""
        open_screen(self, Screens.PROFILE, self.directory)

    def action_switch_list(self) -> None:
        self.focus_next()

    def action_scroll_details(self, direction: int) -> None:
        details = self.query_one("#details")
        details.scroll_relative(y=direction * max(details.size.height // 2, 1), animate=False)

    @awaiting
    async def action_back(self) -> None:
        """Stop a trial, which asks first; else go back."""
        is_trying = bool(self.work_in_progress)
        if await self.may_end():
            (self._runner.stop if is_trying else self.go_back)()

    @property
    def work_in_progress(self) -> str:
        """The trial of a cure."""
        return "the trial" if self._runner.is_stoppable else ""

    @on(Chart.Pressed)
    def _open_chart(self, message: Chart.Pressed) -> None:
        """A double click shows the chart on the screen of the run."""
        message.stop()
        if message.times == 2:
            self.action_chart()

    @on(OptionList.OptionHighlighted)
    def _select(self, message: OptionList.OptionHighlighted) -> None:
        """Show another finding, and offer what another cure allows."""
        message.stop()
        if isinstance(message.option_list, FindingList):
            self._state.selected = self._findings.highlighted_id
            self._show_finding()
        self.refresh_bindings()

    @work(exclusive=True, group="advice")
    async def _listen(self) -> None:
        async for news in self._follower.news(self.app):
            if is_being_removed(self):
                return  # its widgets are, too
            if isinstance(news, Unreadable):
                self.query_one("#about", Static).update(Content.styled(news.problem, "$text-error"))
            elif advice := self._follower.latest():
                self._take_advice(advice)

    def _take_advice(self, advice: Advice) -> None:
        self.advice = advice
        self.set_class(not advice.findings, "-healthy")
        self._findings.show_findings(advice.findings, self._state.selected)
        self.query_one("#about", Static).update(_about(advice))
        self._show_finding()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_finding)

    def _show_finding(self) -> None:
        if not self.is_mounted:
            return
        finding = self._finding
        text = self.query_one("#finding", Static)
        width = text.size.width or self.size.width
        is_tall = self.has_class("-tall")
        text.update(finding_content(finding, width, has_title=is_tall) if finding else _healthy(self.advice))
        self.query_one(EvidenceChart).show_finding(finding, self.advice)
        self._show_cures()

    def _show_trial(self) -> None:
        """Show how far a trial is, also where the last cure is below the edge."""
        self._show_cures()
        if self.is_mounted and self._cures.highlighted == self._cures.option_count - 1:
            self.query_one("#details").scroll_end(animate=False)

    def _show_cures(self) -> None:
        """Show the cures, with the trials of the selected finding."""
        if not self.is_mounted:
            return
        self._cures.show_cures(self._finding, self.advice, self._state)
        self.query_one("#cures-heading").display = self._cures.display
        self.refresh_bindings()


def _about(advice: Advice) -> Content:
    """The records that were judged, and the rules that could not be."""
    if advice.info.bench:
        return Content.styled("This run is a bench: only training is judged.", "$text-muted")
    words = (
        f"Looked at {coverage_text(advice.coverage)}. {missing_text(advice.coverage)} {failures_text(advice.failed)}"
    )
    return Content.styled(words.strip(), "$text-muted")


def _healthy(advice: Advice | None) -> Content:
    """The text for a run without findings."""
    if advice is None or advice.info.bench:
        return Content("")
    if advice.failed:
        return Content("The other rules found nothing.")
    if not advice.coverage.steps:
        return Content("There are no steps to judge.")
    again = " It is looked at again while it trains." if advice.info.status.live else ""
    return Content.assemble(
        ("✓ Nothing found\n", "bold $success"),
        f"The run is neither slow, nor short of memory, nor does it learn badly, as far as its records tell.{again}",
    )
