"""The app: screens, and the few things that outlive them."""

import gc
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import on, work
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.notifications import SeverityLevel
from textual.reactive import reactive
from textual.screen import Screen
from textual.theme import Theme
from textual.worker import Worker, WorkerState

from accel_engine.devices import Sampler
from accel_engine.errors import AccelError
from accel_engine.launch import WarmEngine
from accel_engine.plan import Plan
from accel_engine.text import printable, printable_line
from accel_tui import messages
from accel_tui.appearance.theme import DARK, THEMES, other
from accel_tui.engines import EngineApp
from accel_tui.palette import KeyCommands
from accel_tui.sampling import MakeSampler
from accel_tui.screens.help_screen import HelpScreen
from accel_tui.screens.new_run_screen import NewRunScreen
from accel_tui.screens.too_small_screen import TooSmallScreen, too_small
from accel_tui.settings.paths import settings_path
from accel_tui.settings.user_settings import Settings, SettingsError
from accel_tui.terminal.notifications import Notifier
from accel_tui.terminal.safe_unmount import SafeUnmountApp

if TYPE_CHECKING:
    from accel_tui.widgets.runs.runs_table import RunsTable

_HERE = Path(__file__).parent

GARBAGE_SECONDS = 60.0
"""Seconds between two searches for garbage of all generations: each takes as long as a key may."""

GARBAGE_OBJECTS = 10_000
"""So many are made until those are searched: most that an update makes are gone by then without it."""

_Screen = TypeVar("_Screen", bound=Screen[None])


class AccelApp(SafeUnmountApp, EngineApp):
    """The dashboard.

    It owns the screens; its base classes have the devices and the engine, which outlive them. Whatever blocks is
    done in a thread that only posts messages, and whatever the first screen does not need is imported and begun once
    that is painted.

    Args:
        open_run: Directory of a run to open at first, in place of the form.
        settings: What the user has settled for good.
        make_engine: Makes a warm engine; called in a thread with what to call as its state changes.
        make_sampler: Makes a sampler of devices; called in a thread with what to call with samples.
    """

    TITLE = "accel-tui"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (104, "-wide"), (160, "-ultra")]  # noqa: RUF012 (as the base class has it)
    VERTICAL_BREAKPOINTS = [(0, "-short"), (34, "-tall")]  # noqa: RUF012
    COMMANDS = {KeyCommands}  # noqa: RUF012 (as the base class has it)
    BINDING_GROUP_TITLE = "Everywhere"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "help", "Help", id="app.help", tooltip="Explain the keys of this screen"),
        Binding("t,f2", "toggle_theme", "Light/dark", id="app.theme", tooltip="Change between dark and light"),
        Binding("ctrl+l", "repaint", show=False, id="app.repaint", tooltip="Paint the whole screen anew"),
        Binding(
            "ctrl+z",
            "suspend_process",
            show=False,
            id="app.suspend",
            tooltip="Go to the shell for a while; its fg comes back",
        ),
        Binding("q", "quit", "Quit", id="app.quit", tooltip="Leave the program; a run that goes on goes on"),
        Binding(
            "ctrl+c",
            "quit",
            show=False,
            id="app.interrupt",
            tooltip="Leave as Quit does, from fields too; copy what is selected",
        ),
        Binding(
            "ctrl+p",
            "command_palette",
            "Commands",
            priority=True,
            id="app.palette",
            tooltip="Find a command by its name",
        ),
    ]

    lists_runs: reactive[bool] = reactive(False, repaint=False)
    """Whether what lists runs was imported."""

    def __init__(
        self,
        open_run: Path | None = None,
        *,
        settings: Settings = Settings(),  # noqa: B008 (it is frozen)
        make_engine: Callable[[Callable[[], None]], WarmEngine] = WarmEngine,
        make_sampler: MakeSampler | None = None,
    ) -> None:
        # Textual loads the sheet of a screen when it is pushed, and the first screen never is.
        sheets = ("app.tcss", "screens/run_screen.tcss" if open_run else "screens/new_run_screen.tcss")
        super().__init__(
            [_HERE / sheet for sheet in sheets],
            make_engine=make_engine,
            make_sampler=make_sampler or (lambda tell: Sampler(tell, interval=settings.devices)),
        )
        self.settings = settings
        self.announcer = Notifier(self.send, settings, os.environ)
        self.refusal: SettingsError | None = None
        """Why the program leaves again, where its settings are the reason."""
        self._open_run = open_run
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = DARK.name if settings.theme == "auto" else settings.theme
        self.set_keymap(dict(settings.keys))
        if settings.glyphs == "ascii":
            from accel_tui.appearance.glyphs import to_ascii

            self._canvas.spell = to_ascii

    def get_default_screen(self) -> "Screen[None]":
        """The form, or the run that was asked for."""
        if self._open_run is None:
            return self._make_plan_screen()
        from accel_tui.screens.run_screen import RunScreen  # as below

        return self._fitted(RunScreen(self._open_run))

    def get_system_commands(self, screen: "Screen[object]") -> Iterable[SystemCommand]:
        """Of Textual's own, those that no key of ours does."""
        ours = ("Theme", "Screenshot")
        yield from (command for command in super().get_system_commands(screen) if command.title in ours)
        yield SystemCommand("Keep this theme", "Begin with it from now on: write it into the settings", self.keep_theme)

    def on_mount(self) -> None:
        """Begin what the first screen can be painted without."""
        self.call_after_refresh(self.sample_devices)
        self.call_after_refresh(self._import_the_rest)

    def on_unmount(self) -> None:
        """Let go of the terminal's title."""
        self.announcer.restore()

    def on_resize(self, event: Resize) -> None:
        """Say so where there is no room."""
        told = isinstance(self.screen, TooSmallScreen)
        if too_small(event.size) and not told:
            self.push_screen(TooSmallScreen())
        elif told and not too_small(event.size):
            self.pop_screen()

    @on(Worker.StateChanged)
    def _worker_failed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR:
            self.notify(f"{event.worker.group}: {event.worker.error}", title="This should not happen", severity="error")

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Tell something in a corner of the screen; never as markup, whoever tells it."""
        del markup
        super().notify(
            printable(message), title=printable_line(title), severity=severity, timeout=timeout, markup=False
        )

    def action_help(self) -> None:
        """Explain the keys."""
        self.push_screen(HelpScreen(self.screen))

    async def action_quit(self) -> None:
        """Leave as the screen has it, which may ask first; Textual's own key for it comes here too."""
        if hasattr(self.screen, "action_quit"):
            await self.run_action("quit", self.screen)
        else:
            await super().action_quit()

    def action_toggle_theme(self) -> None:
        """Change between dark and light."""
        self.theme = other(self.current_theme).name

    def keep_theme(self) -> None:
        """Write the theme into the user's settings."""
        from accel_tui.settings.settings_editor import save_setting  # seldom wanted

        file = self.settings.source.path or settings_path()
        try:
            save_setting(file, "theme", self.theme)
        except AccelError as error:
            self.notify(str(error), title="The theme was not kept", severity="error")
        else:
            self.notify(f"{self.theme} from now on, as {file} says", title="Kept the theme")

    def action_show_plan(self) -> None:
        """Go to the form as it was left."""
        self.show_plan()

    def action_show_runs(self) -> None:
        """List the runs."""
        self.show_runs()

    def show_plan(self, plan: Plan | None = None) -> None:
        """Go to the form; fill it in from a plan if one is given. There is at most one screen of each kind."""
        if not self._go_back_to(NewRunScreen):
            # Later, from the app's own message loop: only there can the screen be bound to the app's state.
            self.call_later(lambda: self.push_screen(self._make_plan_screen(plan)))
        elif plan is not None and isinstance(self.screen, NewRunScreen):
            self.screen.load(plan)

    def show_runs(self) -> None:
        """Go to the list of runs."""
        from accel_tui.screens.runs_screen import RunsScreen  # as below

        if not self._go_back_to(RunsScreen):
            self.push_screen(self._fitted(RunsScreen()))

    def show_run(self, directory: Path) -> None:
        """Go to a run."""
        from accel_tui.screens.run_screen import RunScreen  # as below

        self._go_back_to(RunScreen)
        shown = self.screen
        if isinstance(shown, RunScreen) and shown.directory == directory:
            return  # it follows on when the run is taken up again
        if isinstance(shown, RunScreen) and len(self.screen_stack) > 1:
            self.switch_screen(self._fitted(RunScreen(directory)))
        else:
            self.push_screen(self._fitted(RunScreen(directory)))  # the first screen of all cannot be switched

    def show_comparison(self, directories: Sequence[Path]) -> None:
        """Lay runs side by side."""
        from accel_tui.screens.compare_screen import CompareScreen  # as below

        self.push_screen(self._fitted(CompareScreen(directories)))

    def show_inside(self, directory: Path) -> None:
        """Show what a run looks like inside."""
        from accel_tui.screens.diagnostics_screen import DiagnosticsScreen  # as below

        self.push_screen(self._fitted(DiagnosticsScreen(directory)))

    def on_runs_table_opened(self, event: "RunsTable.Opened") -> None:
        """Go to a run that was chosen from a list; say why one cannot be read."""
        if event.run.info:
            self.show_run(event.run.directory)
        else:
            self.notify(event.run.problem, title=event.run.id, severity="warning")

    def _fitted(self, screen: _Screen) -> _Screen:
        """Give a screen the classes of its size from the start: Textual does so when it has laid it out once."""
        for breakpoints, cells in (
            (self.HORIZONTAL_BREAKPOINTS, self.size.width),
            (self.VERTICAL_BREAKPOINTS, self.size.height),
        ):
            screen.add_class(max(point for point in breakpoints if point[0] <= cells)[1])
        return screen

    def _make_plan_screen(self, plan: Plan | None = None) -> NewRunScreen:
        return self._fitted(NewRunScreen(plan or self.defaults)).data_bind(
            AccelApp.inventory,
            AccelApp.meters,
            AccelApp.lists_runs,
            AccelApp.engine_status,
            AccelApp.ready_engine,
            AccelApp.is_starting,
            AccelApp.start_problem,
        )

    @property
    def defaults(self) -> Plan | None:
        """The plan that a form begins with where that is not the program's own."""
        return Plan.from_mapping(self.settings.plan) if self.settings.plan else None

    def _go_back_to(self, kind: "type[Screen[None]]") -> bool:
        if not any(isinstance(screen, kind) for screen in self.screen_stack):
            return False
        while not isinstance(self.screen, kind):
            self.pop_screen()
        return True

    def _variables_of(self, theme: Theme) -> dict[str, str]:
        """What a theme gives to sheets, as Textual makes it of the current one."""
        return {**self.get_theme_variable_defaults(), **theme.to_color_system().generate(), **theme.variables}

    @work(thread=True, exclusive=True, exit_on_error=False, group="import")
    def _import_the_rest(self) -> None:
        """Import what the form does not need, most of it NumPy's, so that no key has to wait for that later."""
        import accel_tui.screens.compare_screen
        import accel_tui.screens.diagnostics_screen
        import accel_tui.screens.run_screen
        import accel_tui.screens.runs_screen
        import accel_tui.widgets.runs.runs_table  # noqa: F401

        sheets = sorted(_HERE.glob("screens/*.tcss"))
        self.post_message(messages.RestImported(self.stylesheet.parse_ahead(sheets)))
        self.stylesheet.know(self.stylesheet.parse_ahead(sheets, self._variables_of(other(self.current_theme))))
        if self.settings.keys:
            from accel_tui.settings import keymap

            if errors := keymap.key_errors(self.settings):
                self.post_message(messages.SettingsRefused(SettingsError(errors)))

    @on(messages.RestImported)
    def _settle(self, event: messages.RestImported) -> None:
        """Do what else would make a key wait later."""
        self.lists_runs = True
        # Rules that come with their screen would have every widget's style worked out anew.
        self.stylesheet.take(event.rules)
        if not gc.isenabled():  # as the command has it that opens the dashboard
            gc.freeze()  # what is there now stays
            # All of it is looked through only when we say so.
            gc.set_threshold(GARBAGE_OBJECTS, gc.get_threshold()[1], 1_000_000)
            gc.enable()
            self.set_interval(GARBAGE_SECONDS, self._collect_garbage)

    @on(messages.SettingsRefused)
    def _refuse_settings(self, event: messages.SettingsRefused) -> None:
        self.refusal = event.error
        self.exit(return_code=event.error.exit_status)

    def _collect_garbage(self) -> None:
        gc.collect()
