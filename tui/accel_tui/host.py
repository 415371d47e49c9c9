"""What screens and widgets use of the app, which they do not import."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from textual.message_pump import MessagePump

from accel_engine.devices.device_types import Inventory
from accel_engine.plan import Plan
from accel_tui.run_launcher import RunLauncher
from accel_tui.settings.user_settings import Settings
from accel_tui.terminal.notifications import Notifier

if TYPE_CHECKING:
    from accel_engine.requests.evaluate import EvaluationOptions
    from accel_tui.run_state.cure_trials import AdviceNotes


class Host(Protocol):
    """The app, as screens use it."""

    settings: Settings
    launcher: RunLauncher
    notifier: Notifier
    advice_notes: dict[Path, "AdviceNotes"]
    """What was measured and selected of the advice on runs."""
    inventory: Inventory | None
    """The machine's devices, once detected."""

    def show_plan(self, plan: Plan | None = None) -> None:
        """Go to New run, and fill the form in if a plan is given."""

    def show_runs(self) -> None:
        """Go to Runs."""

    def show_run(self, directory: Path) -> None:
        """Open a run."""

    def show_queue(self) -> None:
        """Go to Queue."""

    def show_searches(self) -> None:
        """Go to the list of searches."""

    def show_search(self, directory: Path) -> None:
        """Open a search."""

    def open_searches(self) -> None:
        """Open the only search, or the list if there are several."""

    def show_comparison(self, directories: Sequence[Path]) -> None:
        """Compare runs side by side."""

    def show_evaluation(self, directories: Sequence[Path]) -> None:
        """Evaluate runs on the same examples."""

    def show_rate_finder(self, source: Plan | Path, take: Callable[[float], object]) -> None:
        """Find the learning rate of a plan or a run, and give the one that the user takes to a function."""

    def show_size_finder(self, plan: Plan, take: Callable[[int, float | None], object]) -> None:
        """Find the batch size of a plan, and give the one that the user takes to a function."""

    def show_bench(self, directories: Sequence[Path]) -> None:
        """Measure the inference of runs."""

    def show_race(self, plan: Plan) -> None:
        """Race the configurations of a plan."""

    def show_export(self, directory: Path) -> None:
        """Export the trained model of a run."""

    def show_predictions(self, directory: Path) -> None:
        """Predict examples with the trained model of a run."""

    def show_evaluated(self, directory: Path, options: "EvaluationOptions") -> None:
        """Open the diagnostics of the examples that a run was evaluated on."""

    def show_advice(self, directory: Path) -> None:
        """Open the advice on a run."""

    def show_evidence(self, directory: Path, steps: tuple[int, int], series: str) -> None:
        """Open a run with its charts zoomed to the steps of some evidence."""

    def show_diagnostics(self, directory: Path) -> None:
        """Open the diagnostics of a run."""


def host_of(node: MessagePump) -> Host:
    """The app of a screen or widget."""
    return cast(Host, node.app)


def settings_of(node: MessagePump) -> Settings:
    """The user settings; the defaults for a widget in another app."""
    return getattr(node.app, "settings", None) or Settings()
