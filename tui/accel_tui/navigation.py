"""Opens the screens."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from textual import work
from textual.screen import Screen

from accel_engine.plan import Plan
from accel_tui.screens.new_run_screen import NewRunScreen
from accel_tui.terminal.incremental_app import EarlyInputApp, ScreenshotApp

if TYPE_CHECKING:
    from accel_engine.requests.evaluate import EvaluationOptions
    from accel_tui.widgets.runs.runs_table import RunsTable

_Screen = TypeVar("_Screen", bound=Screen[None])


class NavigationApp(ScreenshotApp, EarlyInputApp):
    """An app that opens the screens of the dashboard, and goes back to them."""

    def make_plan_screen(self, plan: Plan | None = None) -> NewRunScreen:
        """A New run screen, with its form filled in if a plan is given."""
        raise NotImplementedError

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
            self.call_later(lambda: self.push_screen(self.make_plan_screen(plan)))
        elif plan is not None and isinstance(self.screen, NewRunScreen):
            self.screen.load(plan)

    def show_runs(self) -> None:
        """Go to Runs."""
        from accel_tui.screens.runs_screen import RunsScreen  # imported later, see the app's _import_remaining

        if not self._go_back_to(RunsScreen):
            self.push_screen(self.with_size_classes(RunsScreen()))

    def action_show_queue(self) -> None:
        """Go to Queue."""
        self.show_queue()

    def show_queue(self) -> None:
        """Go to Queue."""
        from accel_tui.screens.queue_screen import QueueScreen  # as above

        if not self._go_back_to(QueueScreen):
            self.push_screen(self.with_size_classes(QueueScreen()))

    def show_run(self, directory: Path) -> None:
        """Open a run."""
        from accel_tui.screens.run_screen import RunScreen  # as above

        self._go_back_to(RunScreen)
        shown = self.screen
        if isinstance(shown, RunScreen) and shown.directory == directory:
            return  # it follows a continued run
        if isinstance(shown, RunScreen) and len(self.screen_stack) > 1:
            self.switch_screen(self.with_size_classes(RunScreen(directory)))
        else:
            self.push_screen(self.with_size_classes(RunScreen(directory)))  # the default screen cannot be switched

    def show_searches(self) -> None:
        """Go to the list of searches."""
        from accel_tui.screens.searches_screen import SearchesScreen  # as above

        if not self._go_back_to(SearchesScreen):
            self.push_screen(self.with_size_classes(SearchesScreen()))

    def show_search(self, directory: Path) -> None:
        """Open a search."""
        from accel_tui.screens.search_screen import SearchScreen  # as above

        self.push_screen(self.with_size_classes(SearchScreen(directory)))

    def open_searches(self) -> None:
        """Open the only search, or the list if there are several."""
        self._find_searches()

    @work(thread=True, exclusive=True, exit_on_error=False, group="searches")
    def _find_searches(self) -> None:
        from accel_engine.search.study_paths import studies  # as above

        found = studies()
        self.call_later(partial(self.show_search, found[0]) if len(found) == 1 else self.show_searches)

    def show_comparison(self, directories: Sequence[Path]) -> None:
        """Compare runs side by side."""
        from accel_tui.screens.compare_screen import CompareScreen  # as above

        self.push_screen(self.with_size_classes(CompareScreen(directories)))

    def show_evaluation(self, directories: Sequence[Path]) -> None:
        """Evaluate runs on the same examples."""
        from accel_tui.screens.evaluate_screen import EvaluateScreen  # as above

        self.push_screen(self.with_size_classes(EvaluateScreen(directories)))

    def show_rate_finder(self, source: Plan | Path, take: Callable[[float], object]) -> None:
        """Find the learning rate of a plan or a run, and give the one that the user takes to a function."""
        from accel_tui.screens.find_rate_screen import FindRateScreen  # as above

        self.push_screen(self.with_size_classes(FindRateScreen(source, take)))

    def show_size_finder(self, plan: Plan, take: Callable[[int, float | None], object]) -> None:
        """Find the batch size of a plan, and give the one that the user takes to a function."""
        from accel_tui.screens.find_size_screen import FindSizeScreen  # as above

        self.push_screen(self.with_size_classes(FindSizeScreen(plan, take)))

    def show_bench(self, directories: Sequence[Path]) -> None:
        """Measure the inference of runs."""
        from accel_tui.screens.bench_screen import BenchScreen  # as above

        self.push_screen(self.with_size_classes(BenchScreen(directories)))

    def show_race(self, plan: Plan) -> None:
        """Race the configurations of a plan."""
        from accel_tui.screens.race_screen import RaceScreen  # as above

        self.push_screen(self.with_size_classes(RaceScreen(plan)))

    def show_export(self, directory: Path) -> None:
        """Export the trained model of a run."""
        from accel_tui.screens.export_screen import ExportScreen  # as above

        self.push_screen(self.with_size_classes(ExportScreen(directory)))

    def show_predictions(self, directory: Path) -> None:
        """Predict examples with the trained model of a run."""
        from accel_tui.screens.predict_screen import PredictScreen  # as above

        self.push_screen(self.with_size_classes(PredictScreen(directory)))

    def show_evaluated(self, directory: Path, options: "EvaluationOptions") -> None:
        """Open the diagnostics of the examples that a run was evaluated on."""
        from accel_tui.screens.evaluated_screen import EvaluatedScreen  # as above

        self.push_screen(self.with_size_classes(EvaluatedScreen(directory, options)))

    def show_advice(self, directory: Path) -> None:
        """Open the advice on a run."""
        from accel_tui.screens.advice_screen import AdviceScreen  # as above

        self.push_screen(self.with_size_classes(AdviceScreen(directory)))

    def show_evidence(self, directory: Path, steps: tuple[int, int], series: str) -> None:
        """Open a run with its charts zoomed to the steps of some evidence."""
        self.show_run(directory)
        from accel_tui.screens.run_screen import RunScreen  # as above

        if isinstance(self.screen, RunScreen):
            self.screen.show_evidence(*steps, series)

    def show_diagnostics(self, directory: Path) -> None:
        """Open the diagnostics of a run."""
        from accel_tui.screens.diagnostics_screen import DiagnosticsScreen  # as above

        self.push_screen(self.with_size_classes(DiagnosticsScreen(directory)))

    def on_runs_table_opened(self, event: "RunsTable.Opened") -> None:
        """Open the run, or show why it cannot be read."""
        if event.run.info:
            self.show_run(event.run.directory)
        else:
            self.notify(event.run.problem, title=event.run.id, severity="warning")

    def with_size_classes(self, screen: _Screen) -> _Screen:
        """Give a screen its size classes from the start; Textual sets them only after the first layout."""
        for breakpoints, cells in (
            (self.HORIZONTAL_BREAKPOINTS, self.size.width),
            (self.VERTICAL_BREAKPOINTS, self.size.height),
        ):
            screen.add_class(max(point for point in breakpoints or () if point[0] <= cells)[1])
        return screen

    def _go_back_to(self, kind: "type[Screen[None]]") -> bool:
        if not any(isinstance(screen, kind) for screen in self.screen_stack):
            return False
        while not isinstance(self.screen, kind):
            self.pop_screen()
        return True
