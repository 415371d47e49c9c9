"""The charts of the Compare screen: one per series, with a curve per run."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from textual.app import ComposeResult
from textual.message import Message
from textual.reactive import reactive

from accel_engine.run import RunInfo
from accel_engine.run.store.series_names import BATCH_SIZE, LEARNING_RATE, VALIDATION_PREFIX
from accel_engine.run.store.steps import THROUGHPUT
from accel_engine.words import numbers
from accel_tui.formatting.bench_figures import bench_figure
from accel_tui.run_list.comparison import ComparedRun, compared_series_names, kinds_of_value
from accel_tui.run_state.step_window import StepWindow, VisibleSteps, steps_to_load
from accel_tui.widgets.chart.axes import significant, step_axis
from accel_tui.widgets.chart.background import plot_region
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart.chart_view import NOTHING, ChartOptions, ChartSeries, ChartView, Colour, steps_of
from accel_tui.widgets.chart.raster import EDGE, dot_rows
from accel_tui.widgets.chart_panels.chart_grid import ChartBar, ChartGrid, default_charts
from accel_tui.widgets.chart_panels.chart_keys import ChartKeys, Cursor
from accel_tui.widgets.chart_panels.run_panels import limits_of, points_of
from accel_tui.widgets.chart_panels.shared_axis import BatchAxis, SharedAxis

_MAX_CHARTS = 6

HERO_SHARE = 0.6
"""Share of the height for the chart of the metric that counts."""
_MARK = "▸"
_FORMATS = {THROUGHPUT: numbers.compact, LEARNING_RATE: numbers.learning_rate}
_STYLES: tuple[Colour, ...] = ("primary", "secondary", "success", "error", "warning")  # the accent marks focus


def letter(place: int) -> str:
    """Letter of a run, which tells runs apart without colours."""
    return "abcdefgh"[place]


def style_of(place: int) -> Colour:
    """Colour of a run's curves."""
    return _STYLES[place % len(_STYLES)]


_APART = 28  # cells between two letters of a curve


class LetteredChart(Chart):
    """A chart that writes the one-letter names of its series at the ends of their curves, or else on them."""

    has_end_names = True

    def _draw_frame(self) -> Frame:
        plain = super()._draw_frame()
        return with_letters(plain, self._view) if self._view else plain


def with_letters(frame: Frame, view: ChartView) -> Frame:
    """The frame with the letters of the series along their curves."""
    plot = plot_region(view)
    if not plot:
        return frame
    frame = frame.copy()
    for index, series in enumerate(view.series):
        if not series.curve.end_step:
            continue
        curve = series.curve_in(view.x.low, view.x.high)
        means = view.y.fraction(curve.columns(view.x.low, view.x.high, 2 * plot.width)[2])[::2]
        means[(means < -EDGE) | (means > 1 + EDGE)] = np.nan  # the curve is not drawn there
        known = np.flatnonzero(~np.isnan(means))
        if not known.size:
            continue
        first, last = int(known[0]), int(known[-1])
        # Staggered, so that letters of close curves do not overlap.
        turns = range(first + 3 + index * _APART // max(4, len(view.series)), last - 2, _APART)
        ends = [last] if last < plot.width - 1 or not view.end_width else []  # else a label is right beside it
        for column in (*(turns if not view.end_width else ()), *ends):
            if not np.isnan(means[column]):
                row = int(dot_rows(means[column : column + 1], plot.height)[0]) // 4
                frame.write(plot.x + column, plot.y + row, series.name, series.style)
    return frame


class HeroGrid(ChartGrid):
    """Container whose first chart is large."""

    first_share = HERO_SHARE


class CompareCharts(ChartKeys):
    """A chart per series of any of the runs, as many as fit; a key shows the others.

    Every chart has a curve and validation points per run.
    """

    @dataclass
    class VisibleStepsChanged(Message):
        """Other steps are visible, and should be loaded."""

        visible_steps: VisibleSteps | None

    runs: reactive[tuple[ComparedRun, ...]] = reactive((), repaint=False, init=False)
    """The compared runs."""

    first_share = HERO_SHARE

    first: reactive[int] = reactive(0, repaint=False, init=False)
    """Index of the series in the first chart."""

    visible_steps: reactive[VisibleSteps | None] = reactive(None, repaint=False, init=False)
    """The steps to load for ``visible_series`` of the states."""

    _axis: SharedAxis | BatchAxis | None = None  # unless the x-axis is steps

    def compose(self) -> ComposeResult:
        yield ChartBar()
        with HeroGrid():
            for index in range(_MAX_CHARTS):
                yield LetteredChart(id=f"chart-{index}")

    def on_mount(self) -> None:
        self.set_reactive(CompareCharts.active_chart, "chart-0")

    def on_resize(self) -> None:
        self._draw()
        self._align()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Show the active chart only with the focus."""
        super().watch_has_focus(has_focus)
        self._draw()

    def watch_runs(self) -> None:
        before = self._axis
        self._axis = axis = self._axis_of_runs(before)
        self.x_name = BATCH_SIZE.replace("_", " ") if isinstance(axis, BatchAxis) else ""
        if before and axis and axis.unit != before.unit:  # the unit has grown: keep the visible range
            self.window = self.window.scaled(before.unit / axis.unit)
            if self.cursor:
                self.cursor = Cursor(round(self.cursor.step * before.unit / axis.unit), self.cursor.is_pinned)
        self._draw()

    watch_first = watch_window = watch_active_chart = watch_is_full_screen = watch_runs

    def watch_options(self, before: ChartOptions, options: ChartOptions) -> None:
        """Draw with the new options; another x-axis shows the whole runs."""
        if before.x != options.x:
            self._axis = self._axis_of_runs(None)
            self.window, self.cursor = StepWindow(), None
        self._draw()

    def _axis_of_runs(self, before: SharedAxis | BatchAxis | None) -> SharedAxis | BatchAxis | None:
        states = [compared.state for compared in self.runs]
        by_batch_size = BatchAxis.of(states, before if isinstance(before, BatchAxis) else None)
        earlier = before if isinstance(before, SharedAxis) else None
        return by_batch_size or SharedAxis.of(states, self.options.x, earlier)

    def watch_visible_steps(self, visible_steps: VisibleSteps | None) -> None:
        self.post_message(self.VisibleStepsChanged(visible_steps))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer other charts only if some are not shown."""
        if action == "choose":
            return len(self.names) > self._shown or None
        return super().check_action(action, parameters)

    def why_not(self, action: str) -> str:
        """Why an action is not possible whose key is dimmed."""
        return "All charts are shown already." if action == "choose" else ""

    @property
    def names(self) -> list[str]:
        """All series, the throughput, and the learning rate; of benches only the figures."""
        if isinstance(self._axis, BatchAxis):
            return compared_series_names(self.runs)
        known = any(compared.state.has_learning_rate for compared in self.runs)
        names = compared_series_names(self.runs)
        counts = Counter(each.run.monitor.removeprefix(VALIDATION_PREFIX) for each in self.runs).most_common(1)
        names.sort(key=lambda name: name != counts[0][0] if counts else False)  # the metric that counts is first
        return [*names, THROUGHPUT, *([LEARNING_RATE] if known else [])]

    @property
    def steps(self) -> int:
        """Steps of the longest run, or ticks of the shared axis."""
        return self._axis.ticks if self._axis else max((compared.state.step for compared in self.runs), default=0)

    @property
    def stops(self) -> Sequence[int]:
        """The measured batch sizes of benches."""
        return self._axis.stops if isinstance(self._axis, BatchAxis) else ()

    @property
    def _last_step(self) -> int | None:
        if self._axis:
            return self.steps if all(compared.state.has_ended for compared in self.runs) else None
        ends = [compared.state.last_step for compared in self.runs]
        return None if None in ends else max((end for end in ends if end is not None), default=None)

    @property
    def chart_ids(self) -> Sequence[str]:
        """The charts that are shown, or would be without full screen."""
        return [f"chart-{index}" for index in range(self._shown)]

    @property
    def _charts(self) -> list[LetteredChart]:
        return list(self.query(LetteredChart))

    @property
    def _shown(self) -> int:
        return min(default_charts(self._room), _MAX_CHARTS, len(self.names))

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        names, shown = self.names, self._shown
        bounds = self.window.bounds(self.steps)
        whole_run = 0, math.ceil(step_axis(self.steps, self._last_step).high)
        drawn: list[str] = []
        for index, chart in enumerate(self._charts):
            chart.display = chart.id == self.active_chart if self.is_full_screen else index < shown
            if index < shown:
                name = names[(self.first + index) % len(names)]
                if chart.display:
                    drawn.append(name)
                active_chart = self.has_focus and chart.id == self.active_chart and shown > 1
                title = self._title(name)
                chart.title = f"{_MARK} {title}" if active_chart else title
                chart.note = "" if isinstance(self._axis, BatchAxis) else kinds_of_value(self.runs, name)
                chart.format = self._format(name)
                chart.y_limits = limits_of(name)
                chart.empty = "no steps recorded" if self.runs else "reading the runs…"
                chart.options = self.options.exact if name == LEARNING_RATE else self.options
                chart.end = self._last_step
                series = [_series(at, compared, name) for at, compared in enumerate(self.runs)]
                axis = self._axis
                chart.scale = axis.scale if axis else None
                placed = tuple(self._placed(at, each, name) for at, each in enumerate(series))
                # A series of short runs only is on the axis of all runs, too.
                chart.window = bounds or self._first_window or (None if steps_of(placed) >= self.steps else whole_run)
                chart.series = placed
        self._align()
        known = max((compared.state.throughput.width for compared in self.runs), default=1)
        self.visible_steps = None if self._axis else steps_to_load(bounds, 2 * self._widest, known, drawn)
        self._update_bar()

    def _title(self, name: str) -> str:
        if isinstance(self._axis, BatchAxis):
            return bench_figure(name, self._axis_info).chart_title
        return name.replace("_", " ")

    def _format(self, name: str) -> Callable[[float], str]:
        """How the values of a chart are shown."""
        return bench_figure(name).chart_text if isinstance(self._axis, BatchAxis) else _FORMATS.get(name, significant)

    @property
    def _first_window(self) -> tuple[int, int] | None:
        """The range of an axis of batch sizes that does not begin with 1."""
        return self._axis.bounds if isinstance(self._axis, BatchAxis) else None

    @property
    def _axis_info(self) -> RunInfo | None:
        return self.runs[0].run.info if self.runs else None

    def _placed(self, run: int, series: ChartSeries, name: str) -> ChartSeries:
        """A run's series on the shared axis."""
        if isinstance(self._axis, BatchAxis):
            return self._axis.place_on_axis(run, series, bench_figure(name).size)
        return self._axis.place_on_axis(run, series) if self._axis else series

    def _update_bar(self) -> None:
        at = self.cursor
        label = "" if at is None else self._axis.label(at.step) if self._axis else f"step {at.step:,}"
        self._bar.items = self._bar_items(label, "", self._shown, len(self.names))

    def action_choose(self) -> None:
        self.first = (self.first + self._shown) % len(self.names)


def _series(index: int, compared: ComparedRun, name: str) -> ChartSeries:
    """A run's series; empty if it has none of that name."""
    state = compared.state
    curve = state.throughput if name == THROUGHPUT else state.curves.get(name, NOTHING)
    detail = state.visible_series.get(name, NOTHING)
    if name == LEARNING_RATE:
        return ChartSeries(letter(index), curve, style=style_of(index), detail=detail)
    points = points_of(state.validation_of(name))
    return ChartSeries(letter(index), curve, points, style_of(index), detail, value=compared.value_of(name))
