"""The Textual app: devices, theme and settings."""

import asyncio
import gc
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import on, work
from textual.actions import SkipAction
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.events import Key, Resize
from textual.notifications import SeverityLevel
from textual.reactive import reactive
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from accel_engine.devices import Sampler
from accel_engine.devices.device_types import Inventory
from accel_engine.errors import RunError, UsageError
from accel_engine.process.warm_engine import WarmEngine
from accel_engine.text import printable, printable_fields, printable_line
from accel_tui import keymap, screens, widgets
from accel_tui.app_protocol import AppProtocol, Screens, errors_shown, tell_why_not
from accel_tui.appearance.theme import DARK, THEMES, counterpart, measure_colours
from accel_tui.device_sampling import DeviceSampling, MakeSampler
from accel_tui.palette import KeyCommands
from accel_tui.run_launcher import LaunchState, MakeEngine, RunLauncher
from accel_tui.run_state.device_meter import Meter, record_device
from accel_tui.screens.asking import AskingScreen, QuestionScreen, WorkingScreen, ask_user, awaiting
from accel_tui.screens.new_run_screen import NewRunScreen
from accel_tui.screens.too_small_screen import TooSmallScreen, is_too_small
from accel_tui.settings.user_settings import Settings, SettingsError, settings_path
from accel_tui.terminal.incremental_app import EarlyInputApp, ScreenshotApp
from accel_tui.terminal.notifications import Notifier
from accel_tui.terminal.pixel_images import PixelImages

if TYPE_CHECKING:
    from accel_engine.run import RunSummary
    from accel_tui.run_state.advice_state import AdviceState
    from accel_tui.widgets.runs_table import RunsTable

_HERE = Path(__file__).parent

GARBAGE_SECONDS = 60.0
"""Seconds between two full garbage collections; each blocks the event loop as long as a key press may."""

COUNT_SECONDS = 4.0
"""Seconds between two counts of the live runs, unless a list of runs is on the screen."""

GARBAGE_OBJECTS = 10_000
"""Allocations that trigger a collection of the youngest generation."""


_OPENED_BY = {
    "show_plan": Screens.NEW_RUN,
    "show_runs": Screens.RUNS,
    "show_queue": Screens.QUEUE,
    "show_hosts": Screens.HOSTS,
    "open_searches": Screens.SEARCHES,
}
"""The screens that keys open everywhere, by their actions."""


class AccelApp(ScreenshotApp, EarlyInputApp):
    """The dashboard.

    It owns the sampling of devices, and the launcher of runs. Blocking work runs in threads, whose results are handled
    in its message loop. What the first screen does not need is imported after its first paint.

    Args:
        open_run: Directory of a run to open instead of the New run form.
        settings: User settings.
        keeps_engine: Whether a process is kept that answers requests about trained models; else each has its own.
        has_pixels: Whether the terminal shows pictures in real pixels.
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
        Binding("r,ctrl+r", "show_runs", "Runs", id="app.runs", tooltip="List all runs"),
        Binding(
            "W",
            "save_charts",
            show=False,
            id="app.save-charts",
            tooltip="Write the charts that are shown to SVG and PNG files in the working directory",
        ),
        Binding("N", "show_plan", "New run", id="app.new-run", tooltip="Go to the New run form"),
        Binding("Q", "show_queue", "Queue", id="app.queue", tooltip="Show the runs that wait for free devices"),
        Binding("I", "show_hosts", "Hosts", id="app.hosts", tooltip="Show all machines: their devices and runs"),
        Binding("S", "open_searches", "Searches", id="app.searches", tooltip="Show the searches for the best plan"),
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

    run_counts: reactive[tuple[int, int] | None] = reactive(None, repaint=False)
    """Number of live runs, and of runs that wait in the queue; ``None`` before the runs were read."""

    can_list_runs: reactive[bool] = reactive(False, repaint=False)
    """Whether the modules for the list of runs are imported."""

    def __init__(
        self,
        open_run: Path | None = None,
        *,
        settings: Settings = Settings(),  # noqa: B008 (it is frozen)
        keeps_engine: bool = False,
        has_pixels: bool = False,
        make_engine: MakeEngine = WarmEngine,
        make_sampler: MakeSampler | None = None,
    ) -> None:
        # Textual loads a screen's CSS when it is pushed, and the default screen never is.
        sheets = ("app.tcss", "screens/run_screen.tcss" if open_run else "screens/new_run_screen.tcss")
        super().__init__([_HERE / sheet for sheet in sheets])
        self.launcher = RunLauncher(self, make_engine)
        self._sampling = DeviceSampling(self, make_sampler or partial(Sampler, interval=settings.devices))
        self.settings = settings
        self.advice_states: dict[Path, AdviceState] = {}
        self.notifier = Notifier(self.send, settings, os.environ)
        self.settings_error: SettingsError | None = None
        """Why the app exits: invalid settings."""
        self._open_run = open_run
        self._counted_at = float("-inf")
        self._keeps_engine, self._ends = keeps_engine, ExitStack()
        self.pixel_images = PixelImages(self.send) if has_pixels else None
        """The pictures that the terminal shows in real pixels; ``None`` if it shows none."""
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
            return self._made(Screens.NEW_RUN)
        return self._made(Screens.RUN, self._open_run)

    def get_system_commands(self, screen: "Screen[object]") -> Iterable[SystemCommand]:
        """Textual's commands that no key of ours covers."""
        ours = ("Theme", "Screenshot")
        yield from (command for command in super().get_system_commands(screen) if command.title in ours)
        from accel_engine.deployment.deployments import running_text  # seldom needed

        about = f"Show the models that this machine serves: {running_text()}"
        yield SystemCommand("Deployments", about, self.action_show_deployments)
        yield SystemCommand("Save theme", "Use the current theme from now on: save it in the settings", self.save_theme)

    def on_mount(self) -> None:
        """Start what the first paint does not need."""
        if self.pixel_images:
            self.app_resume_signal.subscribe(self, lambda _: self.action_repaint())
        self.call_after_refresh(self._sampling.start)
        self.call_after_refresh(self._import_remaining)

    def on_unmount(self) -> None:
        """Stop sampling, close the warm engine, and restore the terminal's title."""
        self._sampling.stop()
        self.launcher.close()
        self._ends.close()
        if self.pixel_images:
            self.pixel_images.close()
        self.notifier.restore()

    def action_repaint(self) -> None:
        """Repaint the screen, with pictures that the terminal may have lost."""
        if self.pixel_images:
            self.pixel_images.send_again()
        super().action_repaint()

    def watch_launch(self, before: LaunchState, launch: LaunchState) -> None:
        """Notify of why a run could not be started or continued, unless the form shows it."""
        if launch.problem and launch.problem != before.problem and not isinstance(self.screen, NewRunScreen):
            self.notify(launch.problem, title="Not started", severity="error")

    @on(RunLauncher.Changed)
    def _take_launch_state(self, event: RunLauncher.Changed) -> None:
        self.launch = event.state

    @on(RunLauncher.Started)
    def _open_started(self, event: RunLauncher.Started) -> None:
        """Open the run, unless the user has gone on to something else meanwhile."""
        if event.asked_on.is_active:
            self.open_screen(Screens.RUN, event.directory)
        else:
            self.notify(f"{event.directory.name}: r lists it", title="Started")

    @on(DeviceSampling.Detected)
    def _set_inventory(self, event: DeviceSampling.Detected) -> None:
        self.inventory = printable_fields(event.inventory)

    @on(DeviceSampling.Sampled)
    def _add_samples(self, event: DeviceSampling.Sampled) -> None:
        self.meters = record_device(self.meters, event.samples)

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
        super().notify(
            printable(message), title=printable_line(title), severity=severity, timeout=timeout, markup=False
        )

    def on_key(self, event: Key) -> None:
        """Say why a key does nothing that is shown dimmed."""
        active = self.screen.active_bindings.get(event.key)
        if active and not active.enabled:
            event.prevent_default()  # no other binding of the key instead
            tell_why_not(self, active)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer no key that opens the screen that is shown."""
        opened = _OPENED_BY.get(action)
        screen = next((screen for screen in reversed(self.screen_stack) if not screen.is_modal), None)
        return opened is None or type(screen).__name__ != opened.value.partition(".")[2]

    def action_help(self) -> None:
        """Show the keys of this screen."""
        self.open_screen(Screens.HELP, self.screen)

    async def action_quit(self) -> None:
        """Quit; asks first where work would end."""
        self._quit()

    @awaiting
    async def _quit(self) -> None:
        """Ask the screens that work, then quit by the action of the screen below them if it has one."""
        if not isinstance(self.screen, QuestionScreen | TooSmallScreen):  # it asks already, or has no room
            if not await self._may_end(self.screen_stack, quits=True):
                return
            stack = reversed(self.screen_stack)
            screen = next(each for each in stack if not (each.is_modal or isinstance(each, WorkingScreen)))
            if hasattr(screen, "action_quit"):
                await self.run_action("quit", screen)
                return
        await super().action_quit()

    async def action_interrupt(self) -> None:
        """Quit, unless text is selected: then another binding of the key copies it."""
        if self.screen.get_selected_text() or getattr(self.focused, "selected_text", ""):
            raise SkipAction
        await self.action_quit()

    @work(exclusive=True, exit_on_error=False, group="save-chart")
    async def action_save_charts(self) -> None:
        """Write the charts of this screen to files."""
        from accel_tui.widgets.chart.figure_saver import drawing_widgets, figures_of, stem_of, write_figures  # NumPy

        figures = await asyncio.to_thread(figures_of, drawing_widgets(self.screen))
        if not figures:
            self.notify("This screen shows no chart.", title="Chart not saved", severity="warning")
            return
        await asyncio.to_thread(write_figures, self, stem_of(self.screen), figures)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Variables that Textual's own themes do not have."""
        return measure_colours(self.current_theme)

    def action_toggle_theme(self) -> None:
        """Switch between the dark and the light theme."""
        self.theme = counterpart(self.current_theme).name

    def save_theme(self) -> None:
        """Save the current theme in the user settings."""
        from accel_tui.settings.user_settings import save_setting  # rarely needed

        file = self.settings.source.path or settings_path()
        with errors_shown(self, "Theme not saved"):
            save_setting(file, "theme", self.theme)
            self.notify(f"{self.theme}, in {file}", title="Theme saved")

    @awaiting
    async def open_screen(self, screen: Screens, *subject: Any) -> None:
        """Open a screen, or go back to it; see :meth:`accel_tui.app_protocol.AppProtocol.open_screen`."""
        if await self._may_open(screen):
            self._open(screen, *subject)

    async def _may_open(self, screen: Screens) -> bool:
        """Whether the screens may be closed that a screen closes as it is opened; those that work ask."""
        stack = self.screen_stack
        last = max((at for at, each in enumerate(stack) if isinstance(each, screen.kind)), default=len(stack))
        return not screen.is_single or await self._may_end(stack[last + 1 :])

    async def _may_end(self, closed: Sequence[Screen[Any]], *, quits: bool = False) -> bool:
        """Whether screens may be closed, asked from the top; those that work ask."""
        for each in reversed(closed):
            if isinstance(each, WorkingScreen) and not await each.may_end(closes=True, quits=quits):
                return False
        return True

    def _open(self, screen: Screens, *subject: Any) -> None:
        if screen.asks_engines:
            self.expect_requests()
        is_back = screen.is_single and self._go_back_to(screen.kind)
        if is_back and (not subject or cast(Any, self.screen).show_subject(*subject)):
            return
        if is_back and len(self.screen_stack) > 1:
            self.switch_screen(self._made(screen, *subject))  # which the default screen cannot be
        elif screen is Screens.NEW_RUN:  # later, in the app's own message loop: data_bind works only there
            self.call_later(lambda: self.push_screen(self._made(screen, *subject)))
        else:
            self.push_screen(self._made(screen, *subject))

    def expect_requests(self) -> None:
        """See :meth:`accel_tui.app_protocol.AppProtocol.expect_requests`."""
        if self._keeps_engine:
            from accel_engine.process.engine_call import warm_kept_engine  # imported later, see _import_remaining

            self.run_worker(warm_kept_engine, thread=True, exit_on_error=False, group="requests")

    async def ask_screen(self, screen: Screens, *subject: Any) -> Any:
        """Open a screen; returns what is chosen there, see :meth:`accel_tui.app_protocol.AppProtocol.ask_screen`."""
        return await ask_user(self, self._made(screen, *subject))

    def _go_back_to(self, kind: type[Screen[Any]]) -> bool:
        """Close the screens above one of a kind; returns whether there is one."""
        if not any(isinstance(screen, kind) for screen in self.screen_stack):
            return False
        while not isinstance(self.screen, kind):
            self.screen.dismiss(None)  # so that whoever awaits it goes on
        return True

    def _made(self, screen: Screens, *subject: Any) -> Screen[Any]:
        """A screen with its size classes from the start; Textual sets them only after the first layout."""
        made = screen.kind(*subject)
        if isinstance(made, NewRunScreen):
            made.data_bind(AccelApp.inventory, AccelApp.meters, AccelApp.can_list_runs, AccelApp.launch)
        for breakpoints, cells in (
            (self.HORIZONTAL_BREAKPOINTS, self.size.width),
            (self.VERTICAL_BREAKPOINTS, self.size.height),
        ):
            made.add_class(max(point for point in breakpoints or () if point[0] <= cells)[1])
        return made

    @awaiting
    async def action_show_plan(self) -> None:
        """Go to New run, with the form as it was left."""
        await self._go_to(Screens.NEW_RUN)

    @awaiting
    async def action_show_runs(self) -> None:
        """Go to Runs."""
        await self._go_to(Screens.RUNS)

    @awaiting
    async def action_show_queue(self) -> None:
        """Go to Queue."""
        await self._go_to(Screens.QUEUE)

    @awaiting
    async def action_show_hosts(self) -> None:
        """Go to Hosts."""
        await self._go_to(Screens.HOSTS)

    @awaiting
    async def action_show_deployments(self) -> None:
        """Go to Deployments."""
        await self._go_to(Screens.DEPLOYMENTS)

    @work(exclusive=True, exit_on_error=False, group="searches")
    async def action_open_searches(self) -> None:
        """Open the only search, or the list if there are several."""
        from accel_engine.search.study_paths import studies  # seldom needed

        found = await asyncio.to_thread(studies)
        if len(found) == 1:
            self.open_screen(Screens.SEARCH, found[0])
        else:
            await self._go_to(Screens.SEARCHES)

    async def _go_to(self, screen: Screens) -> None:
        """Open a screen, or go back to it, as :meth:`open_screen`; tell what continues on the screen that is left."""
        if not await self._may_open(screen):
            return
        if isinstance(self.screen, AskingScreen) and not isinstance(self.screen, screen.kind):
            self.screen.tell_left()
        self._open(screen)

    def on_runs_table_listed(self, event: "RunsTable.Listed") -> None:
        """Count the runs that a list has read."""
        if event.whole:
            self._set_counts(event.runs)

    def _set_counts(self, runs: "Iterable[RunSummary]") -> None:
        from accel_engine.run import Status  # the form is painted without it

        self._counted_at = time.monotonic()
        statuses = [run.status for run in runs]
        queued = statuses.count(Status.QUEUED)
        self.run_counts = sum(each is not None and each.live for each in statuses) - queued, queued

    @work(thread=True, exclusive=True, exit_on_error=False, group="counts")
    def _count_runs(self) -> None:
        """Read the runs for the badge, where no list on the screen does."""
        from accel_tui.widgets.runs_table import RunsTable

        if time.monotonic() - self._counted_at >= COUNT_SECONDS:
            RunsTable.listing.refresh()
            self.call_later(self._set_counts, RunsTable.listing.runs)

    def on_runs_table_opened(self, event: "RunsTable.Opened") -> None:
        """Open the run, or show why it cannot be read."""
        if event.row.info:
            self.open_screen(Screens.RUN, event.row.directory)
        else:
            self.notify(event.row.problem, title=event.row.id, severity="warning")

    @work(thread=True, exclusive=True, exit_on_error=False, group="import")
    def _import_remaining(self) -> None:
        """Import what the first screen does not need, mostly NumPy, so that no later key press waits for it."""
        for screen in Screens:
            screen.kind  # noqa: B018 (imports it)
        import accel_tui.plan.preview_lines
        import accel_tui.widgets.data_pictures
        import accel_tui.widgets.runs_table  # noqa: F401
        from accel_engine.hosts.host_list import read_hosts
        from accel_engine.hosts.mirrored_runs import show_on_screen
        from accel_engine.hosts.reading import HostFollower
        from accel_engine.run_queue.queue import set_default_limit
        from accel_engine.run_queue.queue_database import ensure_waiter

        show_on_screen()
        with suppress(UsageError):  # the list is invalid, which the screen of hosts tells
            for host in read_hosts():
                self._ends.callback(HostFollower(host, lambda _: None).stop)
        with suppress(RunError):  # the queue cannot be written, which who uses it learns
            set_default_limit(self.settings.queue_at_once)
        if self._keeps_engine:
            from accel_engine.process.engine_call import KeptEngine, keeping

            self._ends.enter_context(keeping(KeptEngine()))
        ensure_waiter()  # where a process was killed that starts the runs that wait
        self.call_later(self._finish_import)
        if self.settings.keys and (errors := keymap.key_errors(self.settings, key_bindings())):
            self.call_later(self._exit_with_error, SettingsError(errors))

    def _finish_import(self) -> None:
        """Let the form list runs, and start garbage collection."""
        self.can_list_runs = True
        self._count_runs()
        self.set_interval(COUNT_SECONDS, self._count_runs)
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
    _PROTOCOL: type[AppProtocol] = AccelApp  # the app is all that screens use of it
