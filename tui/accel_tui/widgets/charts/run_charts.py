"""The curves of a run, in as many charts as there is room for, all on one axis of steps."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from textual import getters, on
from textual.app import ComposeResult
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive

from accel_engine.run.schema import LEARNING_RATE
from accel_tui.formatting import figures
from accel_tui.run import step_window
from accel_tui.run.state import RunState
from accel_tui.run.step_window import VisibleSteps, part_of
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.charts.chart_bar import ChartBar, Item
from accel_tui.widgets.charts.chart_grid import EASY, SMALLEST, ChartGrid, room
from accel_tui.widgets.charts.chart_keys import ChartKeys
from accel_tui.widgets.charts.run_panels import Panel, panels_of, readings_of, scale_of, series_of
from accel_tui.widgets.run.run_view import RunView

_FEWEST = 2  # charts that are shown wherever they can be read
_MARK = "▸"


class RunCharts(ChartKeys, RunView):
    """The loss, the other series, the throughput, the learning rate and what was read of devices.

    All show the same window on the run's steps and the same cursor, which keys and the mouse change.
    """

    @dataclass
    class Looked(Message):
        """Somebody looks closely at a part of the run or no longer at any, and at readings of devices."""

        part: VisibleSteps | None
        readings: frozenset[str]

    @dataclass
    class Choosing(Message):
        """Somebody wants to choose among the charts that there can be."""

        panels: tuple[Panel, ...]
        shown: tuple[str, ...]

    part: reactive[VisibleSteps | None] = reactive(None, repaint=False, init=False)
    """What the ``details`` of the state should be of."""

    readings: reactive[frozenset[str]] = reactive(frozenset[str](), repaint=False, init=False)
    """What the ``readings`` of the state should be."""

    chosen: reactive[tuple[str, ...]] = reactive((), repaint=False, init=False)
    """The ids of the charts that shall be shown; none of them for as many as there is room for."""

    shown: reactive[tuple[Panel, ...]] = reactive((), repaint=False, init=False)
    """The charts that are shown."""

    _bar = getters.query_one(ChartBar)
    _grid = getters.query_one(ChartGrid)

    def compose(self) -> ComposeResult:
        """The line above, and the charts; which of them are shown is seen when there is room for them."""
        yield ChartBar()
        yield ChartGrid()

    def on_mount(self) -> None:
        """Say what keys there are even before there is a step."""
        self._made: dict[str, Chart] = {}
        self._read: frozenset[str] = frozenset()
        self._charted: object = None  # what says which charts there can be, and how they wait
        self._around: tuple[object, ...] = ()  # what the charts that are shown were told of their surroundings
        self._seldom: object = None  # what says whether lines that only get longer are drawn
        self._panels = panels_of(self.state, self._read)
        self._tell()

    def tell(self) -> None:
        """Draw what goes by the clock."""
        self._draw()

    def on_show(self) -> None:
        """Take the keys, when nothing else on the screen has them."""
        if self.screen.focused is None:
            self.focus(scroll_visible=False)

    def on_resize(self) -> None:
        """See how many charts there is room for, and whether more can be told apart in them."""
        self._arrange()
        self._look()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Mark a chart only for who has the keys."""
        super().watch_has_focus(has_focus)
        if self.is_mounted:  # from Python 3.12 on, a screen gives the keys before its widgets are there
            self._label()

    def take(self, state: RunState) -> None:
        """Draw what is new."""
        before, self.state = self.state, state
        if state.meters is not before.meters:
            self._read |= readings_of(state)
        charted = (state.built, tuple(state.curves), tuple(state.validation), bool(state.rates), self._read, state.over)
        if charted != self._charted:
            self._charted = charted
            self._panels = panels_of(state, self._read)
            self._arrange()
            self._label()
        self._draw()
        if self.window.span is not None or self.cursor:
            self._look()  # they go along

    def watch_chosen(self) -> None:
        """Show those and no others."""
        self._arrange()

    def watch_full(self) -> None:
        """Give the marked chart all the room, or no longer."""
        self._arrange()

    def watch_marked(self) -> None:
        """Show which one it is."""
        if self.full:
            self._arrange()
        self._label()

    def watch_shown(self, _: tuple[Panel, ...], shown: tuple[Panel, ...]) -> None:
        """Make the charts that are new, and hide those that are not to be seen."""
        fresh = [panel for panel in shown if panel.id not in self._made]
        for panel in fresh:
            chart = self._made[panel.id] = Chart(panel.title, y_bounds=panel.bounds, id=panel.id)
            if panel.of_devices or panel.id == "throughput":
                chart.format = figures.compact
            elif panel.name == LEARNING_RATE:
                chart.format = figures.learning_rate
            chart.cursor = self.cursor.step if self.cursor else None
        if fresh:
            self._grid.mount_all(self._made[panel.id] for panel in fresh)
            order = [panel.id for panel in self._panels]
            self._grid.sort_children(key=lambda chart: order.index(chart.id) if chart.id in order else len(order))
        ids = {panel.id for panel in shown}
        for id_, chart in self._made.items():
            chart.await_layout()
            chart.display = id_ in ids
        self._align()
        read = frozenset(panel.name for panel in shown if panel.of_devices)
        self.readings = read | self.readings if self.full else read  # the other charts come back in a moment
        self._label()
        self._around = ()
        self._draw()
        self._look()

    def watch_window(self) -> None:
        """Draw at once what is known of it, and have the rest read."""
        self._look()

    def watch_part(self) -> None:
        """Ask for it."""
        self.post_message(self.Looked(self.part, self.readings))

    watch_readings = watch_part

    def watch_cursor(self) -> None:
        """Read all charts there."""
        step = self.cursor.step if self.cursor else None
        for chart in self._made.values():
            chart.cursor = step
        self._tell()

    def _arrange(self) -> None:
        """Decide which charts are shown."""
        size = Size(self.size.width, self.size.height - 1)  # below the bar
        if size.width < 1 or size.height < 1:
            return
        panels = self._panels
        if self.full:
            self.shown = tuple(panel for panel in panels if panel.id == self.marked) or panels[:1]
            return
        most = room(size, SMALLEST)
        if self.chosen:
            panels = tuple(panel for panel in panels if panel.id in self.chosen)
        else:
            most = max(min(most, _FEWEST), room(size, EASY))
        self.shown = panels[:most]
        if self.marked not in {panel.id for panel in self.shown}:
            self.marked = self.shown[0].id

    def watch_lens(self) -> None:
        """Look at all charts in this way."""
        self._draw()
        self._tell()

    def _draw(self) -> None:
        around = (scale_of(self.state, self.lens.x), self.state.marks, self.lens)
        fresh = any(new is not old for new, old in zip_longest(around, self._around))
        self._around = around
        seldom = (self.state.rates, self.state.live, int(time.monotonic()))
        for panel in self.shown:
            chart = self._made[panel.id]
            if fresh:
                chart.scale, chart.marks, chart.lens = around
                if panel.name == LEARNING_RATE:
                    chart.lens = self.lens.exact
            told = panel.name == LEARNING_RATE and LEARNING_RATE not in self.state.curves
            if chart.series and told and seldom == self._seldom:
                continue  # a line that only gets longer
            chart.series = series_of(self.state, panel)
        self._seldom = seldom

    def _label(self) -> None:
        # Where there is the most room for it: the throughput is a single curve.
        explaining = next((panel for panel in self.shown if panel.id == "throughput"), self.shown[:1] and self.shown[0])
        for panel in self.shown:
            chart = self._made[panel.id]
            marked = self.has_focus and panel.id == self.marked and len(self.shown) > 1
            chart.title = f"{_MARK} {panel.title}" if marked else panel.title
            chart.empty = "no step was taken" if self.state.over else "waiting for the first step"
            chart.end = self.state.goes_to
            chart.explains = panel == explaining
        self._tell()

    def _look(self) -> None:
        bounds = self.window.bounds(self.state.step)
        for panel in self.shown:
            chart = self._made[panel.id]
            if chart.window != bounds:
                chart.window = bounds
        series = (panel.name for panel in self.shown if not panel.of_devices)
        self.part = part_of(bounds, 2 * self._widest, self.state.throughput.width, series)
        self._tell()

    def _tell(self) -> None:
        step = self.cursor and words_of_step(self.cursor.step, self._bucket, self.state)
        self._bar.items = (
            Item("whole run", "whole", "0", on=self.window.span is None),
            Item("follow", "end", "end", on=self.window.follows, spare=not self.window.follows),
            *([Item(shown, spare=True)] if (shown := step_window.words(self.window, self.state.step)) else []),
            Item(step or "cursor", "cursor", "v", on=bool(self.cursor and self.cursor.stays)),
            Item(f"{len(self.shown)} of {len(self._panels)} charts", "choose", "a", spare=True),
            Item("fill", "fill", "f", on=self.full, spare=True),
            *self.lens_items,
        )

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return self.state.step

    @property
    def stride(self) -> int:
        """The steps that are known as one, or those of a dot."""
        low, high = self.window.bounds(self.steps) or (0, self.steps)
        return max(1, self._bucket, round((high - low) / (2 * self._widest)))

    @property
    def markable(self) -> Sequence[str]:
        """Those that are shown; all where one of them fills the screen."""
        return [panel.id for panel in (self._panels if self.full else self.shown)]

    @property
    def _widest(self) -> int:
        """Columns of the widest chart."""
        return max((self._made[panel.id].size.width for panel in self.shown), default=0) or max(1, self.size.width)

    @property
    def _bucket(self) -> int:
        """Steps that are known as one where somebody looks."""
        return self.part.width if self.part and self.state.details else self.state.throughput.width

    @on(ChartBar.Clicked)
    async def _do(self, message: ChartBar.Clicked) -> None:
        message.stop()
        await self.run_action(message.action)

    def action_choose(self) -> None:
        """Ask which charts are to be shown."""
        self.full = False
        self.post_message(self.Choosing(self._panels, tuple(panel.id for panel in self.shown)))


def words_of_step(step: int, width: int, state: RunState) -> str:
    """Where the cursor is: the step, or the steps that are known as one, and the epoch."""
    first = step - step % width
    steps = f"step {step:,}" if width == 1 else f"steps {first:,} to {min(first + width, state.step) - 1:,}"
    an_epoch = state.built and state.built.steps_per_epoch
    return f"{steps}, epoch {step // an_epoch + 1}" if an_epoch else steps
