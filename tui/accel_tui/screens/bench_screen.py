"""Bench screen: measures the inference of trained models, and shows it while it is measured."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.app import App, ComposeResult
from textual.containers import Horizontal, ScrollableContainer, Vertical
from textual.content import Content
from textual.widgets import Static

from accel_engine.errors import RunError
from accel_engine.inference.candidate import Candidate
from accel_engine.inference.measurement.percentiles import LiveWindow
from accel_engine.process.inference_bench import InferenceBench
from accel_engine.requests.bench_models import BenchOptions
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.text import printable
from accel_engine.trained.bench_runs import BenchRuns
from accel_engine.words import numbers
from accel_tui.formatting.bench import conclusions, notes, setup_tables
from accel_tui.formatting.runs import device_warnings
from accel_tui.screens.job import Job
from accel_tui.screens.job_screen import JobScreen
from accel_tui.widgets.chart_panels.compare_charts import letter, style_of
from accel_tui.widgets.jobs.bench_charts import LatencyHistogram, ThroughputChart
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.text_table import table_content

_STYLES = {"yes": "$text-success"}
"""Styles of the last column of tables."""


class BenchScreen(JobScreen):
    """Measures runs one after the other, each in an engine process of its own.

    Args:
        directories: The runs' directories.
    """

    NOUN = "the measurement"
    KEPT = "The batch sizes that are measured already are saved."
    BINDING_GROUP_TITLE = "Bench"

    def __init__(self, directories: Sequence[Path]) -> None:
        super().__init__()
        self._directories = tuple(directories)
        self._candidates: tuple[Candidate, ...] = ()
        self._warned: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """The title in the top bar."""
        return f"Bench {numbers.counted(len(self._directories), 'run')}"

    def make_form(self) -> OptionForm:
        """How to measure."""
        rows = ("target_latency", "target_rate", "seconds", "devices", "xla", "precisions", "scenario")
        return OptionForm(BenchOptions, rows, ", ".join(each.name for each in self._directories))

    def compose_result(self) -> ComposeResult:
        """Compose the charts, and the room for tables and conclusions."""
        with Vertical(id="result"):
            with Horizontal(id="charts"):
                yield LatencyHistogram()
                yield ThroughputChart()
            with ScrollableContainer(id="tables"):
                yield Static(classes="table", markup=False)

    def run(self, job: Job, prepared: BenchOptions) -> tuple[str, ...]:
        """Measure, and save what was measured."""
        app, saved = self.app, BenchRuns(prepared)
        self.warn(device_warnings(prepared.devices))
        bench = InferenceBench(self._directories, prepared)

        def take(part: ExamplesDone | LiveWindow | Candidate) -> None:
            if isinstance(part, Candidate):
                saved.add(part)
            job.tell(part)

        try:
            with job.ended_by(bench.cancel):
                return bench.measure(take, is_live=True)
        finally:
            self._warned = bench.notes
            _save(saved, app)

    def begin(self, prepared: BenchOptions) -> None:
        """Forget what was measured before."""
        self._candidates = ()
        histogram = self.query_one(LatencyHistogram)
        histogram.live = None
        is_offline = prepared.scenario == "offline"
        histogram.empty = "no latencies in the scenario offline" if is_offline else LatencyHistogram.WAITING
        self.query_one(ThroughputChart).show(())
        self.query_one(".table", Static).update("")
        self.query_one("#tables").anchor()  # shows the newest batch size

    def take(self, part: ExamplesDone | LiveWindow | Candidate) -> None:
        """Take note of what was measured."""
        match part:
            case ExamplesDone():
                self.progress.tell_examples(part, "reading ")
            case LiveWindow():
                self._show_live(part)
            case Candidate():
                self._candidates = (*self._candidates, part)
                self.query_one(ThroughputChart).show(self._candidates)
                self.query_one(".table", Static).update(self._tables)

    def _show_live(self, window: LiveWindow) -> None:
        self.query_one(LatencyHistogram).live = window
        measuring = f"measuring {window.title}: batch {window.batch_size}"
        figures = f"{numbers.compact(window.throughput)} examples/s"
        if self.options.scenario == "server":
            measuring += f", tried {numbers.compact(window.rate)} requests/s"
            figures = f"{numbers.compact(window.throughput)}/s answered"
        self.progress.tell(f"{measuring}  {figures}")

    @property
    def _tables(self) -> Content:
        parts: list[Content] = []
        for place, table in enumerate(setup_tables(self._candidates)):
            sign = Content.styled(f"━{letter(place)} ", f"${style_of(place)} bold") if place < 8 else Content("")
            parts += [sign + Content.styled(printable(table.title), "bold")]
            parts += [table_content(table.header, table.rows, _STYLES), Content("")]
        return Content("\n").join([*parts, *(Content(printable(note)) for note in notes(self._candidates))])

    async def finish(self, found: tuple[str, ...] | None) -> Sequence[str]:
        """Show the conclusions from what was measured, if only before a problem, and warnings."""
        options, lines = self.options, list[str]()
        if self._candidates:
            lines = conclusions(self._candidates, options.scenario, options.target_latency, options.target_rate)
        room = self.query_one("#tables")
        room.release_anchor()
        room.scroll_home(animate=False)
        return *lines, *(self._warned if found is None else found)


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
