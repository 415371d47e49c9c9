"""The parts of the app that screens and widgets use without importing it, and the names of the screens."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from textual.binding import ActiveBinding
from textual.message_pump import MessagePump
from textual.screen import Screen

from accel_engine.devices.device_types import Inventory
from accel_engine.errors import AccelError
from accel_tui.run_launcher import RunLauncher
from accel_tui.run_state.device_meter import Meter
from accel_tui.settings.user_settings import Settings
from accel_tui.terminal.notifications import Notifier

if TYPE_CHECKING:
    from accel_tui.run_state.advice_state import AdviceState


class Screens(Enum):
    """The screens that others open: module and class, in ``accel_tui.screens``. They are imported after the start."""

    NEW_RUN = "new_run_screen.NewRunScreen"
    RUNS = "runs_screen.RunsScreen"
    RUN = "run_screen.RunScreen"
    QUEUE = "queue_screen.QueueScreen"
    HOSTS = "hosts_screen.HostsScreen"
    SEARCHES = "searches_screen.SearchesScreen"
    SEARCH = "search_screen.SearchScreen"
    COMPARE = "compare_screen.CompareScreen"
    COMPARE_MANY = "compare_many_screen.CompareManyScreen"
    DIAGNOSTICS = "diagnostics_screen.DiagnosticsScreen"
    ADVICE = "advice_screen.AdviceScreen"
    EVALUATE = "evaluate_screen.EvaluateScreen"
    EVALUATED = "evaluate_screen.EvaluatedScreen"
    BENCH = "bench_screen.BenchScreen"
    EXPORT = "export_screen.ExportScreen"
    DEPLOY = "deploy_screen.DeployScreen"
    UPDATE_DEPLOYMENT = "deploy_screen.UpdateScreen"
    DEPLOYMENTS = "deployments_screen.DeploymentsScreen"
    DEPLOYMENT = "deployment_screen.DeploymentScreen"
    DEPLOYMENT_BENCH = "deployment_bench_screen.DeploymentBenchScreen"
    PREDICT = "predict_screen.PredictScreen"
    PROFILE = "profile_screen.ProfileScreen"
    RACE = "race_screen.RaceScreen"
    FIND_RATE = "find_rate_screen.FindRateScreen"
    FIND_SIZE = "find_size_screen.FindSizeScreen"
    HELP = "help_screen.HelpScreen"

    @property
    def kind(self) -> type[Screen[Any]]:
        """The class; imports its module."""
        module, _, name = self.value.partition(".")
        return cast(type[Screen[Any]], getattr(import_module(f"accel_tui.screens.{module}"), name))

    @property
    def asks_engines(self) -> bool:
        """Whether it asks about trained models, or others are opened from it that do."""
        return self in (Screens.DIAGNOSTICS, Screens.PREDICT, Screens.EVALUATE, Screens.EXPORT)

    @property
    def is_single(self) -> bool:
        """Whether there is at most one: whoever opens it goes back to it, which closes the screens above."""
        return self in (
            Screens.NEW_RUN,
            Screens.RUNS,
            Screens.RUN,
            Screens.QUEUE,
            Screens.HOSTS,
            Screens.SEARCHES,
            Screens.DEPLOYMENTS,
        )


class AppProtocol(Protocol):
    """The app, as screens use it."""

    settings: Settings
    launcher: RunLauncher
    notifier: Notifier
    advice_states: dict[Path, "AdviceState"]
    """The state of the advice on each run, by its directory."""
    inventory: Inventory | None
    """The machine's devices, once detected."""
    meters: Mapping[str, Meter]
    """The latest metrics of each device, by its id."""

    def open_screen(self, screen: Screens, *subject: Any) -> None:
        """Open a screen, or go back to it; asks first where that closes a screen whose work would end.

        Args:
            screen: The screen.
            subject: What it is about: the arguments of its class. Without any, a screen that there is at most one of
                stays as it was left.
        """

    def expect_requests(self) -> None:
        """Let a process import TensorFlow, as a request about a trained model may follow soon."""

    async def ask_screen(self, screen: Screens, *subject: Any) -> Any:
        """Open a screen in which a value is chosen; returns the value, ``None`` if none was."""


def app_of(node: MessagePump) -> AppProtocol:
    """The app of a screen or widget."""
    return cast(AppProtocol, node.app)


def open_screen(node: MessagePump, screen: Screens, *subject: Any) -> None:
    """Open a screen from another screen or a widget; see :meth:`AppProtocol.open_screen`."""
    app_of(node).open_screen(screen, *subject)


@contextmanager
def errors_shown(node: MessagePump, title: str = "") -> Iterator[None]:
    """Show an error for users, which ends the block, as a notification."""
    try:
        yield
    except AccelError as error:
        node.app.notify(str(error), title=title, severity="error", markup=False)


def tell_why_not(node: MessagePump, active: ActiveBinding) -> None:
    """Say why a key does nothing that is shown dimmed."""
    why_not = getattr(active.node, "why_not", None)
    reason = why_not(active.binding.action) if why_not else ""
    node.app.notify(
        reason or "That is not possible now.",
        title=active.binding.description or active.tooltip,
        severity="warning",
        timeout=4,
        markup=False,
    )


def settings_of(node: MessagePump) -> Settings:
    """The user settings; the defaults for a widget in another app."""
    return getattr(node.app, "settings", None) or Settings()


def change_setting(node: MessagePump, name: str, value: str | tuple[str, ...]) -> None:
    """Change a setting from now on, and save it in the user settings; notify if it cannot be saved."""
    from accel_tui.settings.user_settings import ATTRIBUTES, save_setting, settings_path  # rarely needed

    settings = settings_of(node)
    changed: dict[str, Any] = {ATTRIBUTES[name]: value}
    app_of(node).settings = replace(settings, **changed)
    with errors_shown(node, "Not saved"):
        file = settings.source.path or settings_path()
        save_setting(file, name, value if isinstance(value, str) else list(value) or "auto")
