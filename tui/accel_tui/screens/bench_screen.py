"""Bench screen: measures the inference of trained models, and shows it while it is measured."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual import getters, on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, ScrollableContainer, Vertical
from textual.content import Content
from textual.widgets import Static

from accel_engine.errors import RunError
from accel_engine.inference.candidate import Candidate
from accel_engine.inference.live_window import LiveWindow
from accel_engine.process.inference_bench import InferenceBench
from accel_engine.requests.bench_models import BenchOptions
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.text import printable
from accel_engine.trained.bench_runs import BenchRuns
from accel_engine.words import numbers
from accel_tui.formatting.bench import conclusions, notes, tables
from accel_tui.formatting.runs import warnings
from accel_tui.screens.engine_errors import reported
from accel_tui.screens.working_screen import WorkingScreen
from accel_tui.widgets.bench.bench_charts import LatencyHistogram, ThroughputChart
from accel_tui.widgets.bench.bench_form import BenchForm
from accel_tui.widgets.chart_panels.compare_charts import letter, style_of
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.text_table import table_content
from accel_tui.widgets.top_bar import TopBar

_STYLES = {"yes": "$text-success"}
"""Styles of the last column of tables."""


class BenchScreen(WorkingScreen):
    """Measures runs one after the other, each in an engine process of its own.

    Args:
        directories: The runs' directories.
    """

    CSS_PATH = "bench_screen.tcss"
    AUTO_FOCUS = "#target_latency"
    BINDING_GROUP_TITLE = "Bench"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "start", "Start", id="bench.start", tooltip="Start measuring; in a field, enter does"),
        Binding("o", "options", "Options", id="bench.options", tooltip="Choose again what to measure"),
        Binding("escape", "back", "Back", id="bench.back", tooltip="Go back; asks first while it measures"),
    ]

    _form = getters.query_one(BenchForm)
    _about = getters.query_one("#about", Static)
    _verdict = getters.query_one("#verdict", Static)

    def __init__(self, directories: Sequence[Path]) -> None:
        super().__init__()
        self._directories = tuple(directories)
        self._options = BenchOptions()
        self._target_rate: float | None = None
        self._candidates: tuple[Candidate, ...] = ()
        self._bench: InferenceBench | None = None
        self._is_running = False
        self._is_closed = False

    def compose(self) -> ComposeResult:
        """Compose the choices, and the room for what is measured."""
        yield TopBar(f"Bench {numbers.counted(len(self._directories), 'run')}")
        yield Static(_names(self._directories), id="about", markup=False)
        yield BenchForm()
        with Vertical(id="measured"):
            with Horizontal(id="charts"):
                yield LatencyHistogram()
                yield ThroughputChart()
            with ScrollableContainer(id="results"):
                yield Static(id="verdict", markup=False)
                yield Static(id="tables", markup=False)
        yield KeyBar()

    def on_unmount(self) -> None:
        """End the engine."""
        self._is_closed = True
        if self._bench:
            self._bench.cancel()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Start from the form; return to it after the end."""
        del parameters
        is_form = not self.has_class("-measuring")
        if action == "start":
            return is_form
        return not is_form and not self._is_running if action == "options" else True

    @property
    def work_in_progress(self) -> str:
        """The measurement."""
        return "the measurement" if self._is_running else ""

    @property
    def work_detail(self) -> str:
        """What is kept."""
        return "The batch sizes that are measured already are saved."

    def action_options(self) -> None:
        """Go back to the form."""
        self.remove_class("-measuring")
        self._about.update(_names(self._directories))
        self._form.focus_first()
        self.refresh_bindings()

    def action_start(self) -> None:
        """Start measuring with the choices."""
        self._form.submit()

    @on(BenchForm.Submitted)
    def _start(self, event: BenchForm.Submitted) -> None:
        event.stop()
        self._options, self._target_rate = event.choices.options(), event.choices.rate()
        self._is_running = True
        self._clear()
        self.add_class("-measuring")
        results = self.query_one("#results")
        results.focus()
        results.anchor()  # shows the newest batch size
        self.refresh_bindings()
        self._about.update(Content.styled("starting an engine", "$text-accent"))
        self._measure(self._options)

    def _clear(self) -> None:
        """Forget what was measured before."""
        self._bench = None
        self._candidates = ()
        histogram = self.query_one(LatencyHistogram)
        histogram.live = None
        is_offline = self._options.scenario == "offline"
        histogram.empty = "no latencies in the scenario offline" if is_offline else LatencyHistogram.WAITING
        self.query_one(ThroughputChart).show(())
        for text in ("#verdict", "#tables"):
            self.query_one(text, Static).update("")

    @work(thread=True, exit_on_error=False, group="bench")
    def _measure(self, options: BenchOptions) -> None:
        app, saved = self.app, BenchRuns(options)

        def take(part: ExamplesDone | LiveWindow | Candidate) -> None:
            match part:
                case ExamplesDone():
                    self._post(self._show_progress, part)
                case LiveWindow():
                    self._post(self._show_live, part)
                case Candidate():
                    saved.add(part)
                    self._post(self._show_candidate, part)

        try:
            with reported(partial(self._post, self._finish)):
                self._post(self._show_warnings, tuple(warnings(options.devices)))
                self._bench = InferenceBench(self._directories, options)
                if not self._is_closed:
                    self._bench.measure(take, is_live=True)
                    self._post(self._finish)
        finally:
            _save(saved, app)

    def _post(self, show: Callable[..., object], *arguments: Any) -> None:
        """Show something from another thread, unless the screen is closed."""
        if not self._is_closed:
            self.call_later(show, *arguments)

    def _show_progress(self, part: ExamplesDone) -> None:
        self._about.update(Content.styled(f"reading {numbers.examples_done(part.done, part.of)}", "$text-accent"))

    def _show_warnings(self, found: Sequence[str]) -> None:
        for each in found:
            self.notify(each, severity="warning", markup=False)

    def _show_live(self, window: LiveWindow) -> None:
        self.query_one(LatencyHistogram).live = window
        measuring = f"measuring {window.title}: batch {window.batch_size}"
        figures = f"{numbers.compact(window.throughput)} examples/s"
        if self._options.scenario == "server":
            measuring += f", tried {numbers.compact(window.rate)} requests/s"
            figures = f"{numbers.compact(window.throughput)}/s answered"
        self._about.update(Content.assemble((printable(measuring), "$text-accent"), f"  {figures}"))

    def _show_candidate(self, candidate: Candidate) -> None:
        self._candidates = (*self._candidates, candidate)
        self.query_one(ThroughputChart).show(self._candidates)
        parts: list[Content] = []
        for place, table in enumerate(tables(self._candidates)):
            sign = Content.styled(f"━{letter(place)} ", f"${style_of(place)} bold") if place < 8 else Content("")
            parts += [sign + Content.styled(printable(table.title), "bold")]
            parts += [table_content(table.header, table.rows, _STYLES), Content("")]
        self.query_one("#tables", Static).update(Content("\n").join([*parts, *map(_plain, notes(self._candidates))]))

    def _finish(self, problem: str = "") -> None:
        """Show the conclusions from what was measured, if only before a problem, and warnings."""
        self._is_running = False
        options, found = self._options, list[str]()
        if self._candidates:
            found = conclusions(self._candidates, options.scenario, options.target_latency, self._target_rate)
        warned = self._bench.notes if self._bench else ()
        lines = [*(Content.styled(printable(each), "$text-success") for each in found), *map(_plain, warned)]
        self._verdict.update(Content("\n").join([*lines, Content("")]))
        style = "$text-error" if problem else "$text-success"
        self._about.update(Content.styled(printable(problem) or "measured", style))
        results = self.query_one("#results")
        results.release_anchor()
        results.scroll_home(animate=False)
        self.refresh_bindings()


def _names(directories: Sequence[Path]) -> str:
    return ", ".join(printable(each.name) for each in directories)


def _plain(text: str) -> Content:
    return Content(printable(text))


def _save(saved: BenchRuns, app: App[Any]) -> None:
    """Save what was measured, and tell the user, also after the screen was closed."""
    try:
        runs = saved.save()
    except RunError as error:
        app.notify(str(error), title="Bench not saved", severity="error", markup=False)
    else:
        if runs:
            title = f"Saved as {numbers.counted(len(runs), 'run')}"
            app.notify("\n".join(runs), title=title, markup=False)
