"""The Textual app: screens, theme and settings."""

import gc
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import on, work
from textual.actions import SkipAction
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.notifications import SeverityLevel
from textual.reactive import reactive
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from accel_engine.devices import Sampler
from accel_engine.devices.device_types import Inventory, Sample
from accel_engine.errors import AccelError, RunError
from accel_engine.launch.warm_engine import WarmEngine
from accel_engine.plan import Plan
from accel_engine.text import printable, printable_fields, printable_line
from accel_tui import keymap, screens, widgets
from accel_tui.appearance.theme import DARK, THEMES, counterpart
from accel_tui.device_sampling import DeviceSampling, MakeSampler
from accel_tui.palette import KeyCommands
from accel_tui.run_launcher import LaunchState, MakeEngine, RunLauncher
from accel_tui.run_state.device_meter import Meter, record
from accel_tui.screens.new_run_screen import NewRunScreen
from accel_tui.screens.too_small_screen import TooSmallScreen, is_too_small
from accel_tui.settings.settings_paths import settings_path
from accel_tui.settings.user_settings import Settings, SettingsError
from accel_tui.terminal.early_input import EarlyInputApp
from accel_tui.terminal.notifications import Notifier

if TYPE_CHECKING:
    from accel_engine.launch.evaluation import EvaluationOptions
    from accel_tui.host import Host
    from accel_tui.run_state.cure_trials import AdviceNotes
    from accel_tui.widgets.runs.runs_table import RunsTable

_HERE = Path(__file__).parent

GARBAGE_SECONDS = 60.0
"""Seconds between two full garbage collections; each blocks the event loop as long as a key press may."""

GARBAGE_OBJECTS = 10_000
"""Allocations that trigger a collection of the youngest generation."""

_Screen = TypeVar("_Screen", bound=Screen[None])


class AccelApp(EarlyInputApp):
    """The dashboard.

    It owns the screens, the sampling of devices, and the launcher of runs. Blocking work runs in threads, whose results
    are handled in its message loop. What the first screen does not need is imported after its first paint.

    Args:
        open_run: Directory of a run to open instead of the New run form.
        settings: User settings.
        make_engine: Makes a warm engine.
        make_sampler: Makes a device sampler.
    """

    TITLE = "accel-tui"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (104, "-wide"), (160, "-ultra")]  # noqa: RUF012 (as the base class has it)
    VERTICAL_BREAKPOINTS = [(0, "-short"), (34, "-tall")]  # noqa: RUF012
    COMMANDS = {KeyCommands}  # noqa: RUF012 (as the base class has it)
    BINDING_GROUP_TITLE = "All screens"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "help", "Help", id="app.help", tooltip="Show the keys of this screen"),
        Binding(
            "t,f2", "toggle_theme", "Light/dark", id="app.theme", tooltip="Switch between the dark and the light theme"
        ),
        Binding("ctrl+l", "repaint", id="app.repaint", tooltip="Repaint the screen"),
        Binding(
            "ctrl+z", "suspend_process", id="app.suspend", tooltip="Suspend accel-tui; fg in the shell brings it back"
        ),
        Binding("q", "quit", "Quit", id="app.quit", tooltip="Quit accel-tui; active runs keep training"),
        Binding(
            "ctrl+c",
            "interrupt",
            priority=True,
            id="app.interrupt",
            tooltip="Quit, also from a text field or a dialog; copies the selected text if there is any",
        ),
        Binding(
            "ctrl+p", "command_palette", "Commands", priority=True, id="app.palette", tooltip="Search for a command"
        ),
    ]

    inventory: reactive[Inventory | None] = reactive(None, repaint=False)
    """The machine's devices, once detected."""

    meters: reactive[Mapping[str, Meter]] = reactive(dict, repaint=False)
    """The latest metrics of each device, by its id."""

    launch: reactive[LaunchState] = reactive(LaunchState(), repaint=False)
    """State of the warm engine, and of starting a run."""

    can_list_runs: reactive[bool] = reactive(False, repaint=False)
    """Whether the modules for the list of runs are imported."""

    def __init__(
        self,
        open_run: Path | None = None,
        *,
        settings: Settings = Settings(),  # noqa: B008 (it is frozen)
        make_engine: MakeEngine = WarmEngine,
        make_sampler: MakeSampler | None = None,
    ) -> None:
        # Textual loads a screen's CSS when it is pushed, and the default screen never is.
        sheets = ("app.tcss", "screens/run_screen.tcss" if open_run else "screens/new_run_screen.tcss")
        super().__init__([_HERE / sheet for sheet in sheets])
        self.launcher = RunLauncher(
            self,
            make_engine,
            on_change=partial(setattr, self, "launch"),
            on_start=self.show_run,
        )
        self._sampling = DeviceSampling(
            self,
            make_sampler or partial(Sampler, interval=settings.devices),
            on_inventory=self._set_inventory,
            on_samples=self._add_samples,
        )
        self.settings = settings
        self.advice_notes: dict[Path, AdviceNotes] = {}
        self.notifier = Notifier(self.send, settings, os.environ)
        self.settings_error: SettingsError | None = None
        """Why the app exits: invalid settings."""
        self._open_run = open_run
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = DARK.name if settings.theme == "auto" else settings.theme
        self.set_keymap(dict(settings.keys))
        if settings.glyphs == "ascii":
            from accel_tui.appearance.glyphs import to_ascii

            self._canvas.transliterate = to_ascii

    def get_default_screen(self) -> "Screen[None]":
        """The New run screen, or the run to open."""
        if self._open_run is None:
            return self._make_plan_screen()
        from accel_tui.screens.run_screen import RunScreen  # imported later, see _import_remaining

        return self._with_size_classes(RunScreen(self._open_run))

    def get_system_commands(self, screen: "Screen[object]") -> Iterable[SystemCommand]:
        """Textual's commands that no key of ours covers."""
        ours = ("Theme", "Screenshot")
        yield from (command for command in super().get_system_commands(screen) if command.title in ours)
        yield SystemCommand("Queue", "Show the runs that wait for free devices", self.show_queue)
        yield SystemCommand("Save theme", "Use the current theme from now on: save it in the settings", self.save_theme)

    def on_mount(self) -> None:
        """Start what the first paint does not need."""
        self.call_after_refresh(self._sampling.start)
        self.call_after_refresh(self._import_remaining)

    def on_unmount(self) -> None:
        """Stop sampling, close the warm engine, and restore the terminal's title."""
        self._sampling.stop()
        self.launcher.close()
        self.notifier.restore()

    def watch_launch(self, before: LaunchState, launch: LaunchState) -> None:
        """Notify of why a run could not be started or continued, unless the form shows it."""
        if launch.problem and launch.problem != before.problem and not isinstance(self.screen, NewRunScreen):
            self.notify(launch.problem, title="Not started", severity="error")

    def _set_inventory(self, inventory: Inventory) -> None:
        self.inventory = printable_fields(inventory)

    def _add_samples(self, samples: tuple[Sample, ...]) -> None:
        self.meters = record(self.meters, samples)

    def on_resize(self, event: Resize) -> None:
        """Show or hide the screen for terminals that are too small."""
        is_covered = isinstance(self.screen, TooSmallScreen)
        if is_too_small(event.size) and not is_covered:
            self.push_screen(TooSmallScreen())
        elif is_covered and not is_too_small(event.size):
            self.pop_screen()

    @on(Worker.StateChanged)
    def _worker_failed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR:
            self.notify(f"{event.worker.group}: {event.worker.error}", title="Internal error", severity="error")

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a notification, always without markup."""
        del markup
        super().notify(
            printable(message), title=printable_line(title), severity=severity, timeout=timeout, markup=False
        )

    def action_help(self) -> None:
        """Show the keys of this screen."""
        from accel_tui.screens.help_screen import HelpScreen  # see get_default_screen

        self.push_screen(HelpScreen(self.screen))

    async def action_quit(self) -> None:
        """Quit by the action of the screen below all dialogs if it has one, which may ask first."""
        from accel_tui.screens.question_screen import QuestionScreen  # see get_default_screen

        screen = next(screen for screen in reversed(self.screen_stack) if not screen.is_modal)
        cannot_ask = isinstance(self.screen, QuestionScreen | TooSmallScreen)  # it asks already, or has no room
        if hasattr(screen, "action_quit") and not cannot_ask:
            await self.run_action("quit", screen)
        else:
            await super().action_quit()

    async def action_interrupt(self) -> None:
        """Quit, unless text is selected: then another binding of the key copies it."""
        if self.screen.get_selected_text() or getattr(self.focused, "selected_text", ""):
            raise SkipAction
        await self.action_quit()

    def action_toggle_theme(self) -> None:
        """Switch between the dark and the light theme."""
        self.theme = counterpart(self.current_theme).name

    def save_theme(self) -> None:
        """Save the current theme in the user settings."""
        from accel_tui.settings.settings_editor import save_setting  # rarely needed

        file = self.settings.source.path or settings_path()
        try:
            save_setting(file, "theme", self.theme)
        except AccelError as error:
            self.notify(str(error), title="Theme not saved", severity="error")
        else:
            self.notify(f"{self.theme}, in {file}", title="Theme saved")

    def action_show_plan(self) -> None:
        """Go to New run, with the form as it was left."""
        self.show_plan()

    def action_show_runs(self) -> None:
        """Go to Runs."""
        self.show_runs()

    def action_open_searches(self) -> None:
        """Open the only search, or the list if there are several."""
        self.open_searches()

    def show_plan(self, plan: Plan | None = None) -> None:
        """Go to New run, and fill the form in if a plan is given. There is at most one screen of each kind."""
        if not self._go_back_to(NewRunScreen):
            # Called later, in the app's own message loop: data_bind works only there.
            self.call_later(lambda: self.push_screen(self._make_plan_screen(plan)))
        elif plan is not None and isinstance(self.screen, NewRunScreen):
            self.screen.load(plan)

    def show_runs(self) -> None:
        """Go to Runs."""
        from accel_tui.screens.runs_screen import RunsScreen  # see get_default_screen

        if not self._go_back_to(RunsScreen):
            self.push_screen(self._with_size_classes(RunsScreen()))

    def action_show_queue(self) -> None:
        """Go to Queue."""
        self.show_queue()

    def show_queue(self) -> None:
        """Go to Queue."""
        from accel_tui.screens.queue_screen import QueueScreen  # see get_default_screen

        if not self._go_back_to(QueueScreen):
            self.push_screen(self._with_size_classes(QueueScreen()))

    def show_run(self, directory: Path) -> None:
        """Open a run."""
        from accel_tui.screens.run_screen import RunScreen  # see get_default_screen

        self._go_back_to(RunScreen)
        shown = self.screen
        if isinstance(shown, RunScreen) and shown.directory == directory:
            return  # it follows a continued run
        if isinstance(shown, RunScreen) and len(self.screen_stack) > 1:
            self.switch_screen(self._with_size_classes(RunScreen(directory)))
        else:
            self.push_screen(self._with_size_classes(RunScreen(directory)))  # the default screen cannot be switched

    def show_searches(self) -> None:
        """Go to the list of searches."""
        from accel_tui.screens.searches_screen import SearchesScreen  # see get_default_screen

        if not self._go_back_to(SearchesScreen):
            self.push_screen(self._with_size_classes(SearchesScreen()))

    def show_search(self, directory: Path) -> None:
        """Open a search."""
        from accel_tui.screens.search_screen import SearchScreen  # see get_default_screen

        self.push_screen(self._with_size_classes(SearchScreen(directory)))

    def open_searches(self) -> None:
        """Open the only search, or the list if there are several."""
        self._find_searches()

    @work(thread=True, exclusive=True, exit_on_error=False, group="searches")
    def _find_searches(self) -> None:
        from accel_engine.search.study_paths import studies  # see get_default_screen

        found = studies()
        self.call_later(partial(self.show_search, found[0]) if len(found) == 1 else self.show_searches)

    def show_comparison(self, directories: Sequence[Path]) -> None:
        """Compare runs side by side."""
        from accel_tui.screens.compare_screen import CompareScreen  # see get_default_screen

        self.push_screen(self._with_size_classes(CompareScreen(directories)))

    def show_evaluation(self, directories: Sequence[Path]) -> None:
        """Evaluate runs on the same examples."""
        from accel_tui.screens.evaluate_screen import EvaluateScreen  # see get_default_screen

        self.push_screen(self._with_size_classes(EvaluateScreen(directories)))

    def show_rate_finder(self, source: Plan | Path, take: Callable[[float], object]) -> None:
        """Find the learning rate of a plan or a run, and give the one that the user takes to a function."""
        from accel_tui.screens.find_rate_screen import FindRateScreen  # see get_default_screen

        self.push_screen(self._with_size_classes(FindRateScreen(source, take)))

    def show_size_finder(self, plan: Plan, take: Callable[[int, float | None], object]) -> None:
        """Find the batch size of a plan, and give the one that the user takes to a function."""
        from accel_tui.screens.find_size_screen import FindSizeScreen  # see get_default_screen

        self.push_screen(self._with_size_classes(FindSizeScreen(plan, take)))

    def show_bench(self, directories: Sequence[Path]) -> None:
        """Measure the inference of runs."""
        from accel_tui.screens.bench_screen import BenchScreen  # see get_default_screen

        self.push_screen(self._with_size_classes(BenchScreen(directories)))

    def show_race(self, plan: Plan) -> None:
        """Race the ways to run a plan."""
        from accel_tui.screens.race_screen import RaceScreen  # see get_default_screen

        self.push_screen(self._with_size_classes(RaceScreen(plan)))

    def show_export(self, directory: Path) -> None:
        """Export the trained model of a run."""
        from accel_tui.screens.export_screen import ExportScreen  # see get_default_screen

        self.push_screen(self._with_size_classes(ExportScreen(directory)))

    def show_predictions(self, directory: Path) -> None:
        """Predict examples with the trained model of a run."""
        from accel_tui.screens.predict_screen import PredictScreen  # see get_default_screen

        self.push_screen(self._with_size_classes(PredictScreen(directory)))

    def show_evaluated(self, directory: Path, options: "EvaluationOptions") -> None:
        """Open the diagnostics of the examples that a run was evaluated on."""
        from accel_tui.screens.evaluated_screen import EvaluatedScreen  # see get_default_screen

        self.push_screen(self._with_size_classes(EvaluatedScreen(directory, options)))

    def show_advice(self, directory: Path) -> None:
        """Open the advice on a run."""
        from accel_tui.screens.advice_screen import AdviceScreen  # see get_default_screen

        self.push_screen(self._with_size_classes(AdviceScreen(directory)))

    def show_evidence(self, directory: Path, steps: tuple[int, int], series: str) -> None:
        """Open a run with its charts zoomed to the steps of some evidence."""
        self.show_run(directory)
        from accel_tui.screens.run_screen import RunScreen  # see get_default_screen

        if isinstance(self.screen, RunScreen):
            self.screen.show_evidence(*steps, series)

    def show_diagnostics(self, directory: Path) -> None:
        """Open the diagnostics of a run."""
        from accel_tui.screens.diagnostics_screen import DiagnosticsScreen  # see get_default_screen

        self.push_screen(self._with_size_classes(DiagnosticsScreen(directory)))

    def on_runs_table_opened(self, event: "RunsTable.Opened") -> None:
        """Open the run, or show why it cannot be read."""
        if event.run.info:
            self.show_run(event.run.directory)
        else:
            self.notify(event.run.problem, title=event.run.id, severity="warning")

    def _with_size_classes(self, screen: _Screen) -> _Screen:
        """Give a screen its size classes from the start; Textual sets them only after the first layout."""
        for breakpoints, cells in (
            (self.HORIZONTAL_BREAKPOINTS, self.size.width),
            (self.VERTICAL_BREAKPOINTS, self.size.height),
        ):
            screen.add_class(max(point for point in breakpoints if point[0] <= cells)[1])
        return screen

    def _make_plan_screen(self, plan: Plan | None = None) -> NewRunScreen:
        return self._with_size_classes(NewRunScreen(plan)).data_bind(
            AccelApp.inventory,
            AccelApp.meters,
            AccelApp.can_list_runs,
            AccelApp.launch,
        )

    def _go_back_to(self, kind: "type[Screen[None]]") -> bool:
        if not any(isinstance(screen, kind) for screen in self.screen_stack):
            return False
        while not isinstance(self.screen, kind):
            self.pop_screen()
        return True

    @work(thread=True, exclusive=True, exit_on_error=False, group="import")
    def _import_remaining(self) -> None:
        """Import what the first screen does not need, mostly NumPy, so that no later key press waits for it."""
        import accel_tui.screens.advice_screen
        import accel_tui.screens.bench_screen
        import accel_tui.screens.compare_screen
        import accel_tui.screens.diagnostics_screen
        import accel_tui.screens.evaluate_screen
        import accel_tui.screens.evaluated_screen
        import accel_tui.screens.export_screen
        import accel_tui.screens.find_rate_screen
        import accel_tui.screens.find_size_screen
        import accel_tui.screens.help_screen
        import accel_tui.screens.predict_screen
        import accel_tui.screens.queue_screen
        import accel_tui.screens.race_screen
        import accel_tui.screens.run_screen
        import accel_tui.screens.runs_screen
        import accel_tui.screens.search_screen
        import accel_tui.screens.searches_screen
        import accel_tui.widgets.runs.runs_table  # noqa: F401
        from accel_engine.run_queue.queue import set_default_limit
        from accel_engine.run_queue.wake import wake

        with suppress(RunError):  # the queue cannot be written, which who uses it learns
            set_default_limit(self.settings.queue_at_once)
        wake()  # where a process was killed that starts the runs that wait
        self.call_later(self._finish_import)
        if self.settings.keys and (errors := keymap.key_errors(self.settings, key_bindings())):
            self.call_later(self._exit_with_error, SettingsError(errors))

    def _finish_import(self) -> None:
        """Let the form list runs, and start garbage collection."""
        self.can_list_runs = True
        if not gc.isenabled():  # disabled by the command that opens the dashboard
            gc.freeze()  # objects that exist now are never collected
            # full collections run only by the timer below
            gc.set_threshold(GARBAGE_OBJECTS, gc.get_threshold()[1], 1_000_000)
            gc.enable()
            self.set_interval(GARBAGE_SECONDS, self._collect_garbage)

    def _collect_garbage(self) -> None:
        gc.collect()  # Textual cannot call a builtin

    def _exit_with_error(self, error: SettingsError) -> None:
        self.settings_error = error
        self.exit(return_code=error.exit_status)


def key_bindings() -> dict[str, keymap.KeyBinding]:
    """All key bindings, by id; imports all screens and widgets."""
    return keymap.keys([AccelApp, *keymap.classes_in(screens), *keymap.classes_in(widgets)])


if TYPE_CHECKING:
    _HOST: type[Host] = AccelApp  # the app is all that screens use of it
