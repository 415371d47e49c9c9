"""The charts of a run, on a shared step axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from textual import getters
from textual.app import ComposeResult
from textual.message import Message
from textual.reactive import reactive

from accel_engine.advice import Finding
from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_engine.words import numbers
from accel_tui.formatting.bench_figures import bench_figure
from accel_tui.formatting.runs import part_title
from accel_tui.run_state.marks import Marks, with_advice
from accel_tui.run_state.state import RunState
from accel_tui.run_state.step_window import StepWindow, VisibleSteps, describe_window, steps_to_load
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart.chart_view import ChartSeries
from accel_tui.widgets.chart.draw_values import BEST
from accel_tui.widgets.chart_panels import chart_grid
from accel_tui.widgets.chart_panels.chart_keys import ChartKeys
from accel_tui.widgets.chart_panels.run_panels import (
    Panel,
    panel_format,
    panel_series,
    panels_of,
    readings_of,
    scale_of,
)
from accel_tui.widgets.chart_panels.shared_axis import BatchAxis
from accel_tui.widgets.run.run_view import RunView

_MARK = "▸"


class RunCharts(ChartKeys, RunView):
    """Charts of loss, other series, throughput, learning rate and device metrics.

    All share the visible steps and the cursor.
    """

    @dataclass
    class VisibleStepsChanged(Message):
        """Other steps or device metrics are visible, and should be loaded."""

        visible_steps: VisibleSteps | None
        readings: frozenset[str]

    @dataclass
    class SelectionRequested(Message):
        """The user wants to select which charts are shown."""

        panels: tuple[Panel, ...]
        shown: tuple[str, ...]

    visible_steps: reactive[VisibleSteps | None] = reactive(None, repaint=False, init=False)
    """The steps to load for ``visible_series`` of the state."""

    readings: reactive[frozenset[str]] = reactive(frozenset[str](), repaint=False, init=False)
    """The device metrics to load for ``device_curves`` of the state."""

    selected: reactive[tuple[str, ...]] = reactive((), repaint=False, init=False)
    """Keys of the selected charts; as many as fit for none, and while the run has none of them."""

    shown: reactive[tuple[Panel, ...]] = reactive((), repaint=False, init=False)
    """The charts that are shown."""

    problem: reactive[str] = reactive("", repaint=False, init=False)
    """Why the run cannot be read: no step is waited for."""

    findings: reactive[tuple[Finding, ...]] = reactive((), repaint=False, init=False)
    """The advice whose evidence is marked."""

    _grid = getters.query_one(chart_grid.ChartGrid)
    _axis: BatchAxis | None = None  # of a bench

    def compose(self) -> ComposeResult:
        """Compose the line above the charts, and the grid, which is filled once its size is known."""
        yield chart_grid.ChartBar()
        yield chart_grid.ChartGrid()

    def on_mount(self) -> None:
        """Show the keys even before the first step."""
        self._charts_by_id: dict[str, Chart] = {}
        self._available_readings: frozenset[str] = frozenset()
        self._panels_key: object = None  # inputs that decide which charts are available
        self._shared_inputs: tuple[object, ...] = ()  # inputs shared by all charts
        self._marked: tuple[Marks, tuple[Finding, ...], Marks] = ({}, (), {})  # of the run, the advice, both
        self._panels = panels_of(self.state, self._available_readings)
        self._update_bar()

    def update_view(self) -> None:
        """Draw what depends on the time."""
        self._draw()

    def on_show(self) -> None:
        """Take the focus if nothing else has it."""
        if self.screen.focused is None:
            self.focus(scroll_visible=False)

    def on_resize(self) -> None:
        """Update which charts fit, and the steps to load."""
        self._update_shown()
        self._align()
        self._update_window()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Show the active chart only with the focus."""
        super().watch_has_focus(has_focus)
        if self.is_mounted:  # from Python 3.12 on, focus comes before the children are mounted
            self._update_labels()

    def set_state(self, state: RunState) -> None:
        """Draw the new state."""
        before, self.state = self.state, state
        self._axis = BatchAxis.of([state], self._axis)
        self.x_name = state.info.x_name if state.info and self._axis else ""
        if state.meters is not before.meters:
            self._available_readings |= readings_of(state)
        charted = (
            state.built,
            tuple(state.curves),
            tuple(state.validation),
            bool(state.learning_rates),
            self._available_readings,
            state.has_ended,
        )
        if charted != self._panels_key:
            self._panels_key = charted
            self._panels = panels_of(state, self._available_readings)
            self._update_shown()
            self._update_labels()
        if state.validation is not before.validation:
            self._update_notes()
        self._draw()
        if self.window.span is not None or self.cursor:
            self._update_window()  # they follow the last steps

    def watch_problem(self) -> None:
        if self.is_mounted:
            self._update_labels()

    def watch_active_chart(self) -> None:
        if self.is_full_screen:
            self._update_shown()
        self._update_labels()

    def watch_shown(self, _: tuple[Panel, ...], shown: tuple[Panel, ...]) -> None:
        """Make new charts, and hide those that are not shown."""
        new = [panel for panel in shown if panel.id not in self._charts_by_id]
        for panel in new:
            chart = self._charts_by_id[panel.id] = Chart(panel.title, id=panel.id)
            chart.cursor = self.cursor.step if self.cursor else None
        if new:
            self._grid.mount_all(self._charts_by_id[panel.id] for panel in new)
            order = [panel.id for panel in self._panels]
            self._grid.sort_children(key=lambda chart: order.index(chart.id) if chart.id in order else len(order))
        for panel in shown:  # a place may have another series now
            chart = self._charts_by_id[panel.id]
            chart.y_bounds, chart.y_limits = panel.bounds, panel.limits
            chart.format = panel_format(panel, self.state.info)
        ids = {panel.id for panel in shown}
        for id_, chart in self._charts_by_id.items():
            chart.mark_stale()
            chart.display = id_ in ids
        self._align()
        read = frozenset(panel.name for panel in shown if panel.of_devices)
        self.readings = (
            read | self.readings if self.is_full_screen else read
        )  # the other charts return when full screen ends
        self._update_labels()
        self._update_notes()
        self._shared_inputs = ()
        self._draw()
        self._update_window()

    def watch_visible_steps(self) -> None:
        self.post_message(self.VisibleStepsChanged(self.visible_steps, self.readings))

    watch_readings = watch_visible_steps

    def _update_shown(self) -> None:
        """Decide which charts are shown."""
        size = self._room
        if size.width < 1 or size.height < 1:
            return
        panels = self._panels
        if self.is_full_screen:
            self.shown = tuple(panel for panel in panels if panel.id == self.active_chart) or panels[:1]
            return
        selected = tuple(panel for panel in panels if panel.key in self.selected)
        self.shown = (
            selected[: chart_grid.max_charts(size, chart_grid.MIN_SIZE)] or panels[: chart_grid.default_charts(size)]
        )
        if self.active_chart not in {panel.id for panel in self.shown}:
            self.active_chart = self.shown[0].id

    watch_selected = watch_is_full_screen = _update_shown

    def watch_findings(self) -> None:
        if self.is_mounted:
            self._draw()

    def watch_options(self) -> None:
        self._draw()
        self._update_bar()

    def _draw(self) -> None:
        scale = self._axis.scale if self._axis else scale_of(self.state, self.options.x)
        shared_inputs = (scale, self._marks(), self.options)
        inputs_changed = any(new is not old for new, old in zip_longest(shared_inputs, self._shared_inputs))
        self._shared_inputs = shared_inputs
        for panel in self.shown:
            chart = self._charts_by_id[panel.id]
            if inputs_changed:
                chart.scale, chart.marks, chart.options = shared_inputs
                if panel.is_exact:
                    chart.options = self.options.exact
            chart.series = self._series(panel)

    def _marks(self) -> Marks:
        """The marks of the run and its advice; the same object until they change."""
        marks, findings, both = self._marked
        if marks is not self.state.marks or findings is not self.findings:
            both = with_advice(self.state.marks, [each.steps[0] for each in self.findings if each.steps])
            self._marked = self.state.marks, self.findings, both
        return both

    def show_steps(self, first: int, stop: int, series: str = "") -> None:
        """Zoom to some steps, and activate the chart of a series; a chart that is not shown is maximized.

        Args:
            first: The first step.
            stop: The step after the last one.
            series: Name of the series, with ``validation_`` before one of validation; empty for the active chart.
        """
        names = (series, series.removeprefix(VALIDATION_PREFIX))
        if found := next((panel for panel in self._panels if panel.name in names), None):
            self.is_full_screen = self.is_full_screen or found not in self.shown
            self.active_chart = found.id
        self.window = StepWindow.around(self.steps, first, stop)

    def _series(self, panel: Panel) -> tuple[ChartSeries, ...]:
        """The series of a chart; in a bench, they are by batch size."""
        found = panel_series(self.state, panel)
        if self._axis is None:
            return found
        return tuple(self._axis.place_on_axis(0, each, bench_figure(panel.name).size) for each in found)

    def _update_labels(self) -> None:
        explaining = self._panel_with_room()
        for panel in self.shown:
            chart = self._charts_by_id[panel.id]
            active_chart = self.has_focus and panel.id == self.active_chart and len(self.shown) > 1
            chart.title = f"{_MARK} {panel.title}" if active_chart else panel.title
            has_no_more = self.state.has_ended or self.problem
            chart.empty = "no steps recorded" if has_no_more else "waiting for the first step"
            chart.end = self._axis.ticks if self._axis else self.state.last_step
            chart.shows_mark_legend = panel == explaining
        self._update_bar()

    def _panel_with_room(self) -> Panel | None:
        """The chart with the most room for a legend of the marks: of the widest, the throughput's, or else the last."""
        widths = [region.width for region in chart_grid.chart_regions(len(self.shown), self._room)]
        widest = [panel for panel, width in zip(self.shown, widths, strict=True) if width == max(widths)]
        return next((panel for panel in widest if panel.id == "throughput"), widest[-1] if widest else None)

    def _update_notes(self) -> None:
        """Mark the best value of the metric that counts in its chart."""
        monitored, best, note = self.state.monitor.removeprefix(VALIDATION_PREFIX), self.state.best, _best(self.state)
        for panel in self.shown:
            chart, counts = self._charts_by_id[panel.id], panel.name == monitored
            chart.note, chart.best = note if counts else "", (best[0] - 1, best[1]) if counts and best else None

    def _update_window(self) -> None:
        bounds = self.window.bounds(self.steps)
        for panel in self.shown:
            chart = self._charts_by_id[panel.id]
            window = bounds or (self._axis.bounds if self._axis else None)
            if chart.window != window:
                chart.window = window
        series = (panel.name for panel in self.shown if not panel.of_devices)
        known = self.state.throughput.width
        self.visible_steps = None if self._axis else steps_to_load(bounds, 2 * self._widest, known, series)
        self._update_bar()

    watch_window = _update_window

    def _update_bar(self) -> None:
        at, axis = self.cursor, self._axis
        step = "" if at is None else axis.label(at.step) if axis else self._step_text(at.step)
        visible = "" if axis else describe_window(self.window, self.steps)
        self._bar.items = self._bar_items(step, visible, len(self.shown), len(self._panels))

    @property
    def file_stem(self) -> str:
        """The run's id."""
        return self.state.info.id if self.state.info else "run"

    @property
    def steps(self) -> int:
        """Number of steps taken, or ticks of the axis of a bench."""
        return self._axis.ticks if self._axis else self.state.step

    @property
    def stops(self) -> Sequence[int]:
        """The measured batch sizes of a bench."""
        return self._axis.stops if self._axis else ()

    @property
    def chart_ids(self) -> Sequence[str]:
        """The shown charts, or all in full screen."""
        return [panel.id for panel in (self._panels if self.is_full_screen else self.shown)]

    @property
    def _bucket(self) -> int:
        """Steps per bucket of the visible steps."""
        if self._axis:
            return 1
        return (
            self.visible_steps.width
            if self.visible_steps and self.state.visible_series
            else self.state.throughput.width
        )

    def _step_text(self, step: int) -> str:
        """The step, or the steps of its bucket, the epoch unless the axis tells it, and the part of a script."""
        width, state = self._bucket, self.state
        first = step - step % width
        steps = f"step {step:,}" if width == 1 else f"steps {first:,} to {min(first + width, state.step) - 1:,}"
        epoch, part = state.epoch_of(step) if self.options.x != "epoch" else None, state.part_at(step)
        return ", ".join(filter(None, (steps, f"epoch {epoch:,}" if epoch else "", part_title(part) if part else "")))

    def action_choose(self) -> None:
        """Ask which charts are shown."""
        self.is_full_screen = False
        self.post_message(self.SelectionRequested(self._panels, tuple(panel.key for panel in self.shown)))


def _best(state: RunState) -> str:
    """The best value of the metric that counts, and its step: ``best 0.9861 ★ 1,200``; empty if unknown."""
    if state.best is None:
        return ""
    step, value = state.best
    return f"best {numbers.metric(value)} {BEST} {step:,}"
