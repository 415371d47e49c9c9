"""Race screen: measures the configurations of a plan side by side, and takes one into the form."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from accel_engine.devices import detect
from accel_engine.plan import Plan, isolation
from accel_engine.plan.resolved_plan import check
from accel_engine.race.configuration import ConfigurationResult, ConfigurationState
from accel_engine.race.configurations import check_raceable
from accel_engine.race.race import Race
from accel_engine.race.remaining_time import RemainingTime
from accel_engine.text import printable
from accel_engine.words import numbers
from accel_tui.formatting import race
from accel_tui.formatting.runs import warnings
from accel_tui.host import Screens, open_screen, settings_of
from accel_tui.screens.engine_errors import reported
from accel_tui.screens.question_screen import CANCEL, Answer, QuestionScreen
from accel_tui.screens.working_screen import WorkingScreen
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.race.race_list import RaceList, details
from accel_tui.widgets.top_bar import TopBar

REDRAW_SECONDS = 0.25
"""Seconds between two pictures of the bars."""

TAKE = Answer("take", "Stop and take it", "t")

_DONE = (ConfigurationState.FINISHED, ConfigurationState.ENDED_EARLY, ConfigurationState.FAILED)


class RaceScreen(WorkingScreen):
    """Races the configurations of a plan, each in processes of its own, which end with the screen.

    Args:
        plan: The plan.
    """

    CSS_PATH = "race_screen.tcss"
    AUTO_FOCUS = "RaceList"
    BINDING_GROUP_TITLE = "Race"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "enter",
            "take",
            "Take it",
            id="race.take",
            tooltip="Fill the New run form in with the plan of this configuration",
        ),
        Binding("c", "copy", "Copy", id="race.copy", tooltip="Copy the command that trains this configuration"),
        Binding("s", "start", "Again", id="race.start", tooltip="Race again"),
        Binding("escape", "back", "Back", id="race.back", tooltip="Stop the race; then go back"),
    ]

    _configurations = getters.query_one(RaceList)
    _about = getters.query_one("#about", Static)

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan
        self._results: dict[str, ConfigurationResult] = {}
        self._remaining = RemainingTime()
        self._should_stop = threading.Event()
        self._is_running = False
        self._is_dirty = False

    def compose(self) -> ComposeResult:
        """Compose the configurations, what is known of the selected one, and the keys."""
        yield TopBar(f"Race  {printable(self._plan.title)}")
        yield Static(id="about", markup=False)
        yield Static(id="heading", markup=False)
        yield RaceList()
        yield Static(id="details", markup=False)
        yield KeyBar()

    def on_resize(self) -> None:
        """Show the headings of the columns that fit."""
        self.call_after_refresh(self._show_heading)

    def _show_heading(self) -> None:
        self.query_one("#heading", Static).update(self._configurations.heading)

    def on_mount(self) -> None:
        """Begin to race."""
        self.set_interval(REDRAW_SECONDS, self._draw)
        self.action_start()

    def on_unmount(self) -> None:
        """End the processes."""
        self._should_stop.set()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Take a configuration that this machine allows; race again after the end."""
        del parameters
        if action in ("take", "copy"):
            selected = self._configurations.selected if self.is_mounted else None
            return selected is not None and selected.state is not ConfigurationState.REFUSED
        return not self._is_running if action == "start" else True

    def action_start(self) -> None:
        """Race all configurations."""
        self._results, self._should_stop, self._is_running = {}, threading.Event(), True
        self._remaining = RemainingTime()
        self._about.update(Content.styled("checking the plan", "$text-accent"))
        self.refresh_bindings()
        self._race(self._should_stop)

    @property
    def work_in_progress(self) -> str:
        """The race, unless it is being stopped."""
        return "the race" if self._is_running and not self._should_stop.is_set() else ""

    @property
    def work_detail(self) -> str:
        """How far the race is."""
        return f"{self._progress} so far. What is measured stays on the screen."

    def action_back(self) -> None:
        """Stop the race if it runs, which asks first; else go back."""
        self.ask_to_end(self._stop if self.work_in_progress else self.leave)

    def _stop(self) -> None:
        if self._is_running:
            self._should_stop.set()
            self._about.update(Content.styled("stopping", "$text-accent"))

    def action_take(self) -> None:
        """Fill the form in with the selected configuration; asks first while the race runs."""
        result = self._configurations.selected
        if result is None:
            return
        if not self._is_running:
            self._take(result)
            return

        def take(answer: str | None) -> None:
            if answer == TAKE.id:
                self._take(result)

        detail = f"{self._progress} so far. The race stops, and this screen closes."
        self.app.push_screen(QuestionScreen(f"Take {printable(result.title)}?", detail, (CANCEL, TAKE)), take)

    def _take(self, result: ConfigurationResult) -> None:
        options = result.configuration.options
        text = f"changed: {options}" if options else "the plan as it was"
        self.app.notify(text, title=f"New run: {result.title}", markup=False)
        open_screen(self, Screens.NEW_RUN, result.configuration.plan)

    def action_copy(self) -> None:
        """Copy the command that trains the selected configuration."""
        if result := self._configurations.selected:
            self.app.copy_to_clipboard(settings_of(self).command(result.configuration.plan))
            self.notify("Command copied", timeout=2)

    @on(RaceList.Selected)
    def _show_details(self, event: RaceList.Selected) -> None:
        event.stop()
        self.query_one("#details", Static).update(details(event.result))
        self.refresh_bindings()

    @on(RaceList.OptionSelected)
    def _take_clicked(self, event: RaceList.OptionSelected) -> None:
        event.stop()  # a click selects

    @work(thread=True, exit_on_error=False, group="race")
    def _race(self, should_stop: threading.Event) -> None:
        def take(result: ConfigurationResult) -> None:
            self._post(should_stop, self._take_result, result)

        with reported(lambda problem: self._post(should_stop, self._finish, problem)):
            devices = detect().devices
            resolved = check(self._plan, devices)
            check_raceable(resolved)
            raced = Race(
                resolved,
                devices,
                on_result=take,
                should_stop=lambda: should_stop.is_set() or not self.app.is_running,
            )
            found = tuple(filter(None, (*warnings(raced.devices), isolation.warning(resolved))))
            self._post(should_stop, self._show_warnings, found)
            raced.run()
            self._post(should_stop, self._finish)

    def _post(self, should_stop: threading.Event, show: Callable[..., object], *arguments: Any) -> None:
        """Show something of this race from its thread, unless the screen is closed or another race has begun."""
        if self.is_attached and should_stop is self._should_stop:
            self.call_later(show, *arguments)

    def _show_warnings(self, found: Sequence[str]) -> None:
        for each in found:
            self.notify(each, severity="warning", markup=False)

    def _take_result(self, result: ConfigurationResult) -> None:
        self._results[result.title] = result
        self._remaining.note(result)
        self._is_dirty = True

    @property
    def _sorted(self) -> Sequence[ConfigurationResult]:
        return sorted(self._results.values(), key=lambda each: each.state is ConfigurationState.REFUSED)

    def _draw(self) -> None:
        if self._is_dirty:
            self._is_dirty = False
            self._configurations.show(self._sorted)
            self._show_heading()
        if self._results and self._is_running and not self._should_stop.is_set():
            self._show_progress()

    def _show_progress(self) -> None:
        now = next((each for each in self._sorted if each.state is ConfigurationState.COMPILING), None)
        doing = f"compiling {now.title}" if now else "taking turns"
        left = self._remaining.seconds_left()
        more = f", about {numbers.duration(left)} left" if left else ""
        about = Content.styled(printable(f"{self._progress}, {doing}{more}"), "$text-accent")
        if self._about.content != about:
            self._about.update(about)

    @property
    def _progress(self) -> str:
        """How many configurations are measured."""
        racing = [each for each in self._sorted if each.state is not ConfigurationState.REFUSED]
        done = sum(each.is_measured or each.state in _DONE for each in racing)
        return f"{done} of {numbers.counted(len(racing), 'configuration')} measured"

    def _finish(self, problem: str = "") -> None:
        """Show the fastest configuration, or why there is none."""
        stopped = "Stopped. " if self._should_stop.is_set() else ""
        self._is_running, self._is_dirty = False, True
        self._draw()
        if not self._configurations.highlighted and (best := race.best_of(self._sorted)):  # nobody has moved
            self._configurations.select(best.title)
        text = problem or race.verdict(self._sorted) or "Nothing was measured."
        style = "$text-error" if problem else "$text-success"
        self._about.update(Content.styled(printable(f"{stopped}{text}"), style))
        self.refresh_bindings()
