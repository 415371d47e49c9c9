"""Race screen: measures the configurations of a plan side by side, and takes one into the form."""

from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from accel_engine.devices import detect
from accel_engine.plan import Plan, isolation
from accel_engine.plan.resolved_plan import resolve_to_train
from accel_engine.race.configuration import ConfigurationResult, ConfigurationState
from accel_engine.race.configurations import check_raceable
from accel_engine.race.race import Race, RaceOptions, RaceTime
from accel_engine.text import printable
from accel_engine.words import numbers
from accel_tui.app_protocol import Screens, open_screen, settings_of
from accel_tui.formatting import race
from accel_tui.formatting.runs import device_warnings
from accel_tui.screens.asking import CANCEL, Answer, QuestionScreen, awaiting, copy_text
from accel_tui.screens.job import Job
from accel_tui.screens.job_screen import JobScreen
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.table import Table


class RaceTable(Table[ConfigurationResult]):
    """The configurations, in the order in which they race."""

    BINDING_GROUP_TITLE = "Configurations"
    opens = False

    def key_of(self, row: ConfigurationResult) -> Hashable:
        return row.title

    def show(self, results: Sequence[ConfigurationResult]) -> None:
        """Show results."""
        self.show_rows(results, race.race_columns(results, self.room, race.TITLE))

    def select(self, title: str) -> None:
        """Move the cursor to a configuration, if it is there."""
        titles = [each.title for each in self.shown]
        if title in titles:
            self.go_to(titles.index(title))

    def on_resize(self) -> None:
        self.show(self.shown)


def details(result: ConfigurationResult, marks: Sequence[str] = ()) -> Content:
    """The changes of a configuration, in what it is the best, and what was measured, each with its name."""
    options = Content.styled(result.configuration.options or "the plan as it is", "$accent")
    best = Content.styled(race.marks_text(marks), "$text-success")
    lines = [Content.assemble((printable(result.title), "bold"), "  ", options, "  ", best)]
    lines += [Content.assemble((f"{name:<12}", "$text-muted"), printable(text)) for name, text in _facts(result)]
    return Content("\n").join(lines)


def _facts(result: ConfigurationResult) -> Iterator[tuple[str, str]]:
    if result.reason:
        yield result.state.value, result.reason
    if result.is_measured:
        low, high = result.between or (0.0, 0.0)
        rate = numbers.compact(result.examples_per_second or 0.0)
        rounds = numbers.counted(len(result.rates), "turn")
        if race.is_alone(result):
            rounds += ", not beside this plan"
        yield "examples/s", f"{rate}, between {numbers.compact(low)} and {numbers.compact(high)} ({rounds})"
    elif result.state not in (ConfigurationState.FAILED, ConfigurationState.REFUSED):
        yield "state", race.state_text(result)
    measured = [
        f"memory {numbers.size(result.memory)} of the {result.memory_of}" if result.memory is not None else "",
        f"compiled in {race.compile_text(result)}" if result.compile_seconds is not None else "",
    ]
    if any(measured):
        yield "takes", ", ".join(filter(None, measured))
    if result.compile_seconds is not None:
        yield "energy", race.energy_text(result) + (" an example" if result.joules is not None else "")
    if result.losses:
        yield "losses", race.losses_text(result)


TAKE = Answer("take", "Stop and take it", "t")

_DONE = (ConfigurationState.FINISHED, ConfigurationState.ENDED_EARLY, ConfigurationState.FAILED)


class RaceScreen(JobScreen):
    """Races the configurations of a plan, each in separate processes, which end with the screen.

    Args:
        plan: The plan.
    """

    NOUN = "the race"
    STAYS = "What is measured stays on the screen."
    FIRST_WORDS = "checking the plan"
    BINDING_GROUP_TITLE = "Race"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "enter",
            "take",
            "Take it",
            id="race.take",
            tooltip="Fill the New run form in with the plan of this configuration",
        ),
        Binding(
            "ampersand", "fold", "Refused", id="race.fold", tooltip="Show or hide what this machine or plan refuses"
        ),
        Binding("Y", "copy", "Copy", id="race.copy", tooltip="Copy the command that trains this configuration"),
    ]

    _configurations = getters.query_one(RaceTable)

    def __init__(self, plan: Plan) -> None:
        super().__init__(f"Race  {printable(plan.title)}", RaceOptions())
        self._plan = plan
        self._results: dict[str, ConfigurationResult] = {}
        self._shows_refused = False
        self._remaining = RaceTime()

    def make_form(self) -> OptionForm:
        """The form of the kinds of changes, and how long each is measured."""
        return OptionForm(RaceOptions, ("seconds", "kinds"))

    def compose_result(self) -> ComposeResult:
        with Vertical(id="result"):
            yield RaceTable().add_class("panel")
            yield Static(classes="details panel", markup=False)
            yield Static(id="folded", markup=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Take a configuration that this machine allows."""
        if action in ("take", "copy"):
            selected = self._configurations.current if self.is_mounted and not self.has_class("-form") else None
            return selected is not None and selected.state is not ConfigurationState.REFUSED
        if action == "fold":
            return bool(self._refused) and not self.has_class("-form")
        return super().check_action(action, parameters)

    def work_detail(self, *, closes: bool) -> str:
        """How far the race is."""
        return f"{self._progress} so far. {super().work_detail(closes=closes)}"

    @awaiting
    async def action_take(self) -> None:
        """Fill the form in with the selected configuration; asks first while the race runs."""
        if result := self._configurations.current:
            detail = f"{self._progress} so far. The race stops, and this screen closes."
            question = QuestionScreen(f"Take {printable(result.title)}?", detail, (CANCEL, TAKE))
            if not self.is_working or await self.ask(question) == TAKE.id:
                self._use(result)

    def _use(self, result: ConfigurationResult) -> None:
        self.cancel()  # which was asked about
        options = result.configuration.options
        text = f"changed: {options}" if options else "the plan as it was"
        self.app.notify(text, title=f"New run: {result.title}", markup=False)
        open_screen(self, Screens.NEW_RUN, result.configuration.plan)

    def action_copy(self) -> None:
        """Copy the command that trains the selected configuration."""
        if result := self._configurations.current:
            copy_text(self, settings_of(self).command(result.configuration.plan))

    @on(RaceTable.Moved)
    def _show_details(self) -> None:
        current = self._configurations.current
        marks = race.marks_of(self._sorted).get(current.title, ()) if current else ()
        self.query_one(".details", Static).update(details(current, marks) if current else "")
        self.refresh_bindings()

    def run(self, job: Job, prepared: RaceOptions) -> tuple[ConfigurationResult, ...]:
        """Race all configurations; those that were measured, if it is cancelled."""
        app, devices = self.app, detect().devices
        resolved = resolve_to_train(self._plan, devices)
        check_raceable(resolved)
        raced = Race(resolved, devices, prepared, job.send, should_stop=lambda: job.is_cancelled or not app.is_running)
        self.warn((*device_warnings(raced.devices), isolation.warning(resolved)))
        return raced.run()

    def begin(self, prepared: RaceOptions) -> None:
        """Forget the results of before."""
        self._results, self._remaining = {}, RaceTime(prepared.seconds)

    def take(self, part: ConfigurationResult) -> None:
        """Take note of the result of a configuration."""
        self._results[part.title] = part
        self._remaining.note(part)

    @property
    def _sorted(self) -> Sequence[ConfigurationResult]:
        return sorted(self._results.values(), key=lambda each: each.state is ConfigurationState.REFUSED)

    @property
    def _refused(self) -> list[ConfigurationResult]:
        return [each for each in self._results.values() if each.state is ConfigurationState.REFUSED]

    def action_fold(self) -> None:
        """Show what is refused, or hide it."""
        self._shows_refused = not self._shows_refused
        self.draw()

    def draw(self) -> None:
        """Show the bars, what is refused in a line, and how far the race is."""
        refused = self._refused
        is_folded = not self._shows_refused and len(refused) < len(self._results)
        self._configurations.show([each for each in self._sorted if not is_folded or each not in refused])
        folded, refuses = self.query_one("#folded", Static), printable(", ".join(each.title for each in refused))
        folded.display = bool(refused) and is_folded
        folded.update(f"▸ {len(refused)} refused, & shows why: {refuses}")
        if self._results and self.is_working:
            now = next((each for each in self._sorted if each.state is ConfigurationState.COMPILING), None)
            doing = f"compiling {now.title}" if now else "taking turns"
            self.progress.show(f"{self._progress}, {doing}", self._remaining.of_race())

    @property
    def _progress(self) -> str:
        """How many configurations are measured."""
        racing = [each for each in self._sorted if each.state is not ConfigurationState.REFUSED]
        done = sum(each.is_measured or each.state in _DONE for each in racing)
        return f"{done} of {numbers.counted(len(racing), 'configuration')} measured"

    async def finish(self, found: tuple[ConfigurationResult, ...] | None) -> Sequence[str]:
        """Show the fastest configuration."""
        best, has_moved = race.best_of(self._sorted), self._configurations.current not in self._configurations.shown[:1]
        if best and not has_moved:
            self._configurations.select(best.title)
        verdict = race.race_verdict(self._sorted)
        return (verdict or "Nothing was measured.",) if verdict or found is not None else ()
