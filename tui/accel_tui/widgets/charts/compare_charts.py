"""The curves of several runs, each series in a chart of its own, on one axis of steps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from textual import getters, on
from textual.app import ComposeResult
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive

from accel_engine.run.schema import LEARNING_RATE
from accel_engine.run.steps import RATE
from accel_tui.formatting import figures
from accel_tui.run.learning_rate_curve import has_rate, rate_curve, rate_detail
from accel_tui.run.step_window import StepWindow, VisibleSteps, part_of
from accel_tui.runs.comparison import ComparedRun, series_of
from accel_tui.widgets.chart.axes import significant, step_axis
from accel_tui.widgets.chart.chart_options import ChartOptions
from accel_tui.widgets.chart.ranges import steps_of
from accel_tui.widgets.chart.series import NOTHING, Colour, Series
from accel_tui.widgets.charts.chart_bar import ChartBar, Item
from accel_tui.widgets.charts.chart_grid import EASY, SMALLEST, ChartGrid, room
from accel_tui.widgets.charts.chart_keys import ChartKeys, Cursor
from accel_tui.widgets.charts.lettered_chart import LetteredChart
from accel_tui.widgets.charts.run_panels import points_of
from accel_tui.widgets.charts.shared_axis import SharedAxis

_FEWEST = 2  # charts that are shown wherever they can be read
_MOST = 6
_MARK = "▸"
_FORMATS = {RATE: figures.compact, LEARNING_RATE: figures.learning_rate}
_STYLES: tuple[Colour, ...] = ("primary", "secondary", "success", "error", "warning")  # the accent is the first's


def letter(place: int) -> str:
    """What tells a run apart where there are no colours, or too few."""
    return "abcdefgh"[place]


def style_of(place: int) -> Colour:
    """The colour of a run's curves."""
    return _STYLES[place % len(_STYLES)]


class CompareCharts(ChartKeys):
    """A chart for each series that any of the runs has, as many as there is room for; a key shows the others.

    Every chart has a curve for each run, with its validations as points.
    """

    @dataclass
    class Looked(Message):
        """Somebody looks closely at a part of the runs, or no longer at any."""

        part: VisibleSteps | None

    sides: reactive[tuple[ComparedRun, ...]] = reactive((), repaint=False, init=False)
    """The runs."""

    first: reactive[int] = reactive(0, repaint=False, init=False)
    """The place of the series that the first chart shows."""

    part: reactive[VisibleSteps | None] = reactive(None, repaint=False, init=False)
    """What the ``details`` of the states should be of."""

    _axis: SharedAxis | None = None  # where runs are not laid out by their steps

    _bar = getters.query_one(ChartBar)
    _grid = getters.query_one(ChartGrid)

    def compose(self) -> ComposeResult:
        """The line above, and the charts."""
        yield ChartBar()
        with ChartGrid():
            for place in range(_MOST):
                yield LetteredChart(id=f"chart-{place}")

    def on_mount(self) -> None:
        """Mark the first chart."""
        self.set_reactive(CompareCharts.marked, "chart-0")

    def on_resize(self) -> None:
        """See for how many there is room, and whether more can be told apart."""
        self._draw()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Mark a chart only for who has the keys."""
        super().watch_has_focus(has_focus)
        self._draw()

    def watch_sides(self) -> None:
        """Draw what is new."""
        before = self._axis
        self._axis = axis = SharedAxis.of([side.state for side in self.sides], self.lens.x, before)
        if before and axis and axis.unit != before.unit:  # it has grown: what is looked at stays
            self.window = self.window.scaled(before.unit / axis.unit)
            if self.cursor:
                self.cursor = Cursor(round(self.cursor.step * before.unit / axis.unit), self.cursor.stays)
        self._draw()

    watch_first = watch_window = watch_marked = watch_full = watch_sides

    def watch_lens(self, before: ChartOptions, lens: ChartOptions) -> None:
        """Look at all charts in this way; on another axis, at all of the runs again."""
        if before.x != lens.x:
            self._axis = SharedAxis.of([side.state for side in self.sides], lens.x, None)
            self.window, self.cursor = StepWindow(), None
        self._draw()

    def watch_cursor(self) -> None:
        """Read all charts there."""
        for chart in self._charts:
            chart.cursor = self.cursor.step if self.cursor else None
        self._tell()

    def watch_part(self, part: VisibleSteps | None) -> None:
        """Ask for it."""
        self.post_message(self.Looked(part))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Others are shown only where not all are."""
        if action == "choose":
            return len(self.names) > self._shown or None
        return super().check_action(action, parameters)

    @property
    def names(self) -> list[str]:
        """The series that there are, the throughput, and the learning rate."""
        known = any(has_rate(side.state) for side in self.sides)
        return [*series_of(self.sides), RATE, *([LEARNING_RATE] if known else [])]

    @property
    def steps(self) -> int:
        """Steps of the longest run, or its ticks where the axis counts something else."""
        return self._axis.ticks if self._axis else max((side.state.step for side in self.sides), default=0)

    @property
    def _goes_to(self) -> int | None:
        if self._axis:
            return self.steps if all(side.state.over for side in self.sides) else None
        ends = [side.state.goes_to for side in self.sides]
        return None if None in ends else max((end for end in ends if end is not None), default=None)

    @property
    def stride(self) -> int:
        """The steps that are known as one, or those of a dot."""
        low, high = self.window.bounds(self.steps) or (0, self.steps)
        return max(1, round((high - low) / (2 * self._widest)))

    @property
    def markable(self) -> Sequence[str]:
        """The charts that are shown; those that would be, where one of them fills the screen."""
        return [f"chart-{place}" for place in range(self._shown)]

    @property
    def _charts(self) -> list[LetteredChart]:
        return list(self.query(LetteredChart))

    @property
    def _shown(self) -> int:
        size = Size(self.size.width, self.size.height - 1)  # below the bar
        if size.width < 1 or size.height < 1:
            return 1
        most = max(min(room(size, SMALLEST), _FEWEST), room(size, EASY))
        return min(most, _MOST, len(self.names))

    @property
    def _widest(self) -> int:
        return max((chart.size.width for chart in self._charts), default=0) or max(1, self.size.width)

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        names, shown = self.names, self._shown
        bounds = self.window.bounds(self.steps)
        whole = 0, math.ceil(step_axis(self.steps, self._goes_to).high)
        drawn: list[str] = []
        for place, chart in enumerate(self._charts):
            chart.display = chart.id == self.marked if self.full else place < shown
            if place < shown:
                name = names[(self.first + place) % len(names)]
                if chart.display:
                    drawn.append(name)
                marked = self.has_focus and chart.id == self.marked and shown > 1
                title = name.replace("_", " ")
                chart.title = f"{_MARK} {title}" if marked else title
                chart.format = _FORMATS.get(name, significant)
                chart.empty = "no step was taken" if self.sides else "reading the runs"
                chart.lens = self.lens.exact if name == LEARNING_RATE else self.lens
                chart.end = self._goes_to
                series = [_series(at, side, name) for at, side in enumerate(self.sides)]
                axis = self._axis
                chart.scale = axis.scale if axis else None
                laid = tuple(axis.laid(at, one) if axis else one for at, one in enumerate(series))
                # What only short runs have is on the axis of all runs, too.
                chart.window = bounds or (None if steps_of(laid) >= self.steps else whole)
                chart.series = laid
        self._align()
        known = max((side.state.throughput.width for side in self.sides), default=1)
        self.part = None if self._axis else part_of(bounds, 2 * self._widest, known, drawn)
        self._tell()

    def _tell(self) -> None:
        at = self.cursor
        words = at and (self._axis.words(at.step) if self._axis else f"step {at.step:,}")
        self._bar.items = (
            Item("whole run", "whole", "0", on=self.window.span is None),
            Item("follow", "end", "end", on=self.window.follows, spare=not self.window.follows),
            Item(words or "cursor", "cursor", "v", on=bool(at and at.stays)),
            Item(f"{self._shown} of {len(self.names)} charts", "choose", "a", spare=True),
            Item("fill", "fill", "f", on=self.full, spare=True),
            *self.lens_items,
        )

    @on(ChartBar.Clicked)
    async def _do(self, message: ChartBar.Clicked) -> None:
        message.stop()
        await self.run_action(message.action)

    def action_choose(self) -> None:
        """Show the series that are not shown."""
        self.first = (self.first + self._shown) % len(self.names)


def _series(place: int, side: ComparedRun, name: str) -> Series:
    """What a run has of a series; nothing, where it has none of that name."""
    state = side.state
    if name == LEARNING_RATE:
        return Series(letter(place), rate_curve(state), style=style_of(place), detail=rate_detail(state))
    curve = state.throughput if name == RATE else state.curves.get(name, NOTHING)
    points = points_of(state.validation_of(name))
    detail = state.details.get(name, NOTHING)
    return Series(letter(place), curve, points, style_of(place), detail)
