"""Bench screen: measures the inference of trained models, and shows it while it is measured."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.reactive import reactive

from accel_engine.inference.candidate import Candidate
from accel_engine.inference.measurement.percentiles import LiveWindow
from accel_engine.process.inference_bench import InferenceBench
from accel_engine.requests.bench_models import BenchOptions
from accel_engine.requests.protocol.request import Doing, ExamplesDone
from accel_engine.trained.bench_runs import BenchRuns
from accel_engine.words import numbers
from accel_tui.app_protocol import errors_shown
from accel_tui.formatting.bench import bench_notes, conclusions, setup_tables
from accel_tui.formatting.runs import device_warnings
from accel_tui.run_state.curve import RecordedCurve
from accel_tui.screens.job import Job
from accel_tui.screens.job_screen import JobScreen
from accel_tui.widgets.chart.axes import LogAxis, round_down, round_up
from accel_tui.widgets.chart.chart_view import ChartSeries
from accel_tui.widgets.chart.plot import Plot, PlotSeries, PlotView
from accel_tui.widgets.chart_panels.compare_charts import LetteredChart, letter, style_of
from accel_tui.widgets.chart_panels.shared_axis import BatchAxis
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.text_table import ResultTables

_MILLISECOND = 1e-3
_WIDE = 42  # cells that the title takes with both percentiles

MAX_CURVES = 8
"""Curves that have a letter; further setups are only in the tables."""


class LatencyHistogram(PlotView):
    """Requests by latency, with p50 and p99; a text while there is nothing to show."""

    DEFAULT_CSS = "LatencyHistogram { min-height: 3; }"

    WAITING: ClassVar[str] = "waiting for the first request"

    live: reactive[LiveWindow | None] = reactive(None, repaint=False)
    """The latencies to show; ``None`` for none."""

    _ends: tuple[float, float] | None = None  # of the axis, which grows while a candidate is measured

    def watch_live(self, before: LiveWindow | None, live: LiveWindow | None) -> None:
        """Show it; a new candidate, or a new rate in the scenario server, has a new axis."""
        if before is None or live is None or _measured(before) != _measured(live):
            self._ends = None
        if live is not None and live.counts:
            self._ends = self._widened(live)
            self.show(lambda _: self.plot(live))
        else:
            self.show(None)

    def _widened(self, live: LiveWindow) -> tuple[float, float]:
        """The ends of the axis with some windows, in milliseconds."""
        edges = live.edges() / _MILLISECOND
        low, high = round_down(float(edges[0])), round_up(float(edges[-1]))
        return (min(low, self._ends[0]), max(high, self._ends[1])) if self._ends else (low, high)

    def plot(self, live: LiveWindow) -> Plot:
        """The plot of some windows, in milliseconds."""
        edges = live.edges() / _MILLISECOND
        bars = PlotSeries(edges, np.array(live.counts, np.float64), "bars")
        rules = (
            PlotSeries(
                np.array([value / _MILLISECOND]),
                np.empty(0),
                "rule",
                style,  # type: ignore[arg-type]
                f"{name} {numbers.latency(value)}",
            )
            for name, value, style in (("p50", live.p50, "success"), ("p99", live.p99, "warning"))
        )
        title = "latency ms" if self.size.width >= _WIDE else "ms"
        return Plot(title, (bars, *rules), x=LogAxis(*self._widened(live)), y_name="requests")


def _log_axis(values: npt.NDArray[np.float64]) -> LogAxis:
    """An axis with round ends around some values, which may all be the same."""
    low, high = round_down(float(values.min())), round_up(float(values.max()))
    return LogAxis(low, high) if low < high else LogAxis(low / 2, high * 2)


class LatencyOverThroughput(PlotView):
    """What throughput costs in latency: a line through the batch sizes of each setup, once all are measured."""

    DEFAULT_CSS = "LatencyOverThroughput { min-height: 3; display: none; }"

    def show_measured(self, candidates: Sequence[Candidate], target: float | None) -> None:
        """Draw the p99 of what was measured, and the target latency in seconds if there is one."""
        setups = [[each for each in setup if "p99" in each.percentiles] for setup in _setups(candidates)]
        self.display = any(setups)
        self.show((lambda _: self.plot(setups, target)) if any(setups) else None)

    def plot(self, setups: Sequence[Sequence[Candidate]], target: float | None) -> Plot:
        """The plot, in milliseconds, on logarithmic axes; the letters of setups are the same as in the tables."""
        unit = "requests/s" if any(each.scenario == "server" for setup in setups for each in setup) else "examples/s"
        points = [
            (
                np.array([each.throughput for each in setup]),
                np.array([each.percentiles["p99"].value / _MILLISECOND for each in setup]),
            )
            for setup in setups
        ]
        across, up = (np.concatenate([each[axis] for each in points]) for axis in (0, 1))
        limit = [] if target is None else [target / _MILLISECOND]
        x, y = _log_axis(across), _log_axis(np.array([*up, *limit]))
        series = [
            PlotSeries(*each, kind, style_of(at), letter(at) if kind == "mark" else "")
            for at, each in enumerate(points)
            for kind in ("line", "mark")
        ]
        if limit:
            ends = np.array([x.low, x.high])
            name = f"target {numbers.latency(limit[0] * _MILLISECOND)}"
            series.insert(0, PlotSeries(ends, np.full(2, limit[0]), "line", "warning", name))
        return Plot(f"p99 ms over {unit}", tuple(series), x=x, y=y)


def _setups(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """The measured candidates of each setup that has a letter."""
    by_title = groupby(candidates, attrgetter("title"))
    return [[each for each in group if not each.problem] for _, group in by_title][:MAX_CURVES]


def _measured(live: LiveWindow) -> tuple[str, int, float]:
    """The candidate and the rate that the latencies belong to."""
    return live.title, live.batch_size, live.rate


class ThroughputChart(LetteredChart):
    """Examples per second, or requests in the scenario server, by batch size."""

    def on_mount(self) -> None:
        super().on_mount()
        self.format = numbers.compact
        self.empty = "waiting for the first batch size"

    def show(self, candidates: Sequence[Candidate]) -> None:
        """Draw the measured candidates."""
        unit = "requests/s" if any(each.scenario == "server" for each in candidates) else "examples/s"
        self.title = f"{unit} by batch size"
        setups = _setups(candidates)
        axis = BatchAxis.by(tuple(_curve([each.batch_size for each in setup]) for setup in setups))
        self.scale, self.end, self.window = axis.scale, axis.ticks, axis.bounds
        series = (
            ChartSeries(letter(at), _curve([each.throughput for each in setup]), style=style_of(at))
            for at, setup in enumerate(setups)
        )
        self.series = tuple(axis.place_on_axis(at, each) for at, each in enumerate(series))


def _curve(values: Sequence[float]) -> RecordedCurve:
    """A curve with a value for each row."""
    return RecordedCurve().extend(np.array(values, np.float64))


_SIGNS = tuple(Content.styled(f"━{letter(place)} ", f"${style_of(place)} bold") for place in range(MAX_CURVES))
"""The signs of the setups in the chart of throughputs."""


class BenchScreen(JobScreen):
    """Measures runs one after the other, each in another engine process.

    Args:
        directories: The runs' directories.
    """

    NOUN = "the measurement"
    KEPT = "The batch sizes that are measured already are saved."
    BINDING_GROUP_TITLE = "Bench"

    def __init__(self, directories: Sequence[Path]) -> None:
        super().__init__(f"Bench {numbers.counted(len(directories), 'run')}")
        self._directories = tuple(directories)
        self._candidates: tuple[Candidate, ...] = ()
        self._warned: tuple[str, ...] = ()

    def make_form(self) -> OptionForm:
        """How to measure."""
        rows = ("target_latency", "target_rate", "seconds", "devices", "xla", "precisions", "scenario")
        return OptionForm(BenchOptions, rows, ", ".join(each.name for each in self._directories))

    def compose_result(self) -> ComposeResult:
        with Vertical(id="result"):
            with Horizontal(id="charts", classes="panel"):
                yield LatencyHistogram()
                yield LatencyOverThroughput()
                yield ThroughputChart()
            yield ResultTables(colours={"yes": "success"}, id="tables")

    def run(self, job: Job, prepared: BenchOptions) -> tuple[str, ...]:
        """Measure, and save what was measured."""
        app, saved = self.app, BenchRuns(prepared)
        self.warn(device_warnings(prepared.devices))
        bench = InferenceBench(self._directories, prepared)

        def take(part: ExamplesDone | LiveWindow | Candidate) -> None:
            if isinstance(part, Candidate):
                saved.add(part)
            job.send(part)

        try:
            with job.ended_by(bench.cancel):
                return bench.measure(take, is_live=True, on_doing=lambda what: job.send(Doing(what)))
        finally:
            self._warned = bench.notes
            _save(saved, app)

    def begin(self, prepared: BenchOptions) -> None:
        """Forget what was measured before."""
        self._candidates = ()
        histogram = self.query_one(LatencyHistogram)
        self.query_one(LatencyOverThroughput).display = False
        histogram.live, histogram.display = None, True
        is_offline = prepared.scenario == "offline"
        histogram.empty = "no latencies in the scenario offline" if is_offline else LatencyHistogram.WAITING
        self.query_one(ThroughputChart).show(())
        self._show_tables()
        self.query_one(ResultTables).anchor()  # shows the newest batch size

    def take(self, part: ExamplesDone | LiveWindow | Candidate) -> None:
        """Take note of what was measured."""
        match part:
            case ExamplesDone():
                self.progress.show_examples(part)
            case LiveWindow():
                self._show_live(part)
            case Candidate():
                self._candidates = (*self._candidates, part)
                self.query_one(ThroughputChart).show(self._candidates)
                self._show_tables()

    def _show_live(self, window: LiveWindow) -> None:
        self.query_one(LatencyHistogram).live = window
        measuring = f"measuring {window.title}: batch {window.batch_size}"
        figures = f"{numbers.compact(window.throughput)} examples/s"
        if self.options.scenario == "server":
            measuring += f", tried {numbers.compact(window.rate)} requests/s"
            figures = f"{numbers.compact(window.throughput)}/s answered"
        self.progress.show(f"{measuring}  {figures}")

    def _show_tables(self) -> None:
        tables = list(setup_tables(self._candidates))
        if tables:
            tables[-1] = replace(tables[-1], note="\n".join(bench_notes(self._candidates)))
        self.query_one(ResultTables).show(tables, _SIGNS)

    async def finish(self, found: tuple[str, ...] | None) -> Sequence[str]:
        """Show the conclusions from what was measured, if only before a problem, and warnings."""
        options, lines = self.options, list[str]()
        if self._candidates:
            overview = self.query_one(LatencyOverThroughput)
            overview.show_measured(self._candidates, options.target_latency)
            self.query_one(LatencyHistogram).display = not overview.display or self.has_class("-ultra")
            lines = conclusions(self._candidates, options.scenario, options.target_latency, options.target_rate)
        room = self.query_one(ResultTables)
        room.release_anchor()
        room.scroll_home(animate=False)
        return *lines, *(self._warned if found is None else found)


def _save(saved: BenchRuns, app: App[Any]) -> None:
    """Save what was measured, and tell the user, also after the screen was closed."""
    with errors_shown(app, "Bench not saved"):
        if runs := saved.save():
            title = f"Saved as {numbers.counted(len(runs), 'run')}"
            app.notify("\n".join(runs), title=title, markup=False)
