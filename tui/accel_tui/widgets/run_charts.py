"""The curves of a run, in as many charts as there is room for, all on one axis of steps."""

from dataclasses import dataclass
from typing import ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive

from accel_tui import figures, window
from accel_tui.state import RunState
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart_bar import ChartBar, Item
from accel_tui.widgets.chart_grid import EASY, SMALLEST, ChartGrid, room
from accel_tui.widgets.run_panels import Panel, panels_of, series_of
from accel_tui.window import Part, Window, part_of

_SCROLL = 0.25  # of what is shown
_NUDGE = 0.1  # likewise, for a notch of the wheel
_FEWEST = 2  # charts that are shown wherever they can be read
_MARK = "▸"
_FAR = 10  # as many times further does the cursor go with shift


@dataclass(frozen=True, slots=True)
class Cursor:
    """The step at which all charts are read.

    Attributes:
        step: Counted from 0.
        stays: Whether it was put there, and does not follow the mouse.
    """

    step: int
    stays: bool = False


class RunCharts(Vertical, can_focus=True):
    """The loss, the other series, the throughput, the learning rate and what was read of devices.

    All show the same window on the run's steps and the same cursor, which keys and the mouse change.
    """

    BINDING_GROUP_TITLE = "Charts"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "plus,equals_sign",
            "zoom_in",
            "Zoom",
            id="charts.in",
            tooltip="Show half as many steps; the wheel shows fewer or more around the mouse",
        ),
        Binding("minus", "zoom_out", "Zoom out", show=False, id="charts.out", tooltip="Show twice as many steps"),
        Binding(
            "left",
            "move(-1)",
            "Earlier",
            show=False,
            id="charts.left",
            tooltip="Look at earlier steps, or move the cursor; so do dragging, and the wheel with shift",
        ),
        Binding(
            "right",
            "move(1)",
            "Later",
            show=False,
            id="charts.right",
            tooltip="Look at later steps, or move the cursor",
        ),
        Binding(
            "shift+left", "far(-1)", "Far left", show=False, id="charts.far-left", tooltip="Move the cursor far back"
        ),
        Binding(
            "shift+right", "far(1)", "Far right", show=False, id="charts.far-right", tooltip="Move the cursor far ahead"
        ),
        Binding("home", "beginning", "Beginning", show=False, id="charts.home", tooltip="Look at the first steps"),
        Binding("end", "end", "End", show=False, id="charts.end", tooltip="Follow the last steps"),
        Binding("0", "whole", "Whole run", show=False, id="charts.whole", tooltip="Show all steps again"),
        Binding(
            "v",
            "cursor",
            "Cursor",
            show=False,
            id="charts.cursor",
            tooltip="Read all charts at one step, or no longer; so do pointing and a click",
        ),
        Binding("up", "other(-1)", "Chart before", show=False, id="charts.up", tooltip="Mark the chart before"),
        Binding("down", "other(1)", "Next chart", show=False, id="charts.down", tooltip="Mark the next chart"),
        Binding(
            "f,enter",
            "fill",
            "Fill",
            show=False,
            id="charts.fill",
            tooltip="Let the marked chart fill the screen, or no longer; so does a double click on one",
        ),
        Binding("a", "choose", "Charts", show=False, id="charts.choose", tooltip="Choose which charts are shown"),
        Binding(
            "escape", "back", "Back", show=False, id="charts.back", tooltip="Take back the filling, then the cursor"
        ),
    ]

    @dataclass
    class Looked(Message):
        """Somebody looks closely at a part of the run or no longer at any, and at readings of devices."""

        part: Part | None
        readings: frozenset[str]

    @dataclass
    class Filled(Message):
        """A chart shall have the whole screen, or no longer."""

        full: bool

    @dataclass
    class Choosing(Message):
        """Somebody wants to choose among the charts that there can be."""

        panels: tuple[Panel, ...]
        shown: tuple[str, ...]

    state: reactive[RunState] = reactive(RunState(), repaint=False, init=False)
    """What is drawn; bind it with ``data_bind``."""

    window: reactive[Window] = reactive(Window(), repaint=False, init=False)
    """Which steps are shown."""

    part: reactive[Part | None] = reactive(None, repaint=False, init=False)
    """What the ``details`` of the state should be of."""

    readings: reactive[frozenset[str]] = reactive(frozenset[str](), repaint=False, init=False)
    """What the ``readings`` of the state should be."""

    chosen: reactive[tuple[str, ...]] = reactive((), repaint=False, init=False)
    """The ids of the charts that shall be shown; none of them for as many as there is room for."""

    shown: reactive[tuple[Panel, ...]] = reactive((), repaint=False, init=False)
    """The charts that are shown."""

    marked: reactive[str] = reactive("loss", repaint=False, init=False)
    """The id of the chart that keys are about."""

    full: reactive[bool] = reactive(default=False, repaint=False, init=False)
    """Whether the marked chart has all the room."""

    cursor: reactive[Cursor | None] = reactive(None, repaint=False, init=False)
    """Where all charts are read."""

    _before_press: Cursor | None = None

    _bar = getters.query_one(ChartBar)
    _grid = getters.query_one(ChartGrid)

    def compose(self) -> ComposeResult:
        """The line above, and the charts; which of them are shown is seen when there is room for them."""
        yield ChartBar()
        yield ChartGrid()

    def on_mount(self) -> None:
        """Say what keys there are even before there is a step."""
        self._made: dict[str, Chart] = {}
        self._tell()

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
        self._label()

    def watch_state(self, before: RunState, state: RunState) -> None:
        """Draw what is new."""
        if _kinds(state) != _kinds(before):
            self._arrange()
            self._label()
        self._draw()
        self._look()

    def watch_chosen(self) -> None:
        """Show those and no others."""
        self._arrange()

    def watch_full(self, full: bool) -> None:
        """Give the marked chart all the room, or no longer."""
        self.post_message(self.Filled(full))
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
        if fresh:
            self._grid.mount_all(self._made[panel.id] for panel in fresh)
            order = [panel.id for panel in panels_of(self.state)]
            self._grid.sort_children(key=lambda chart: order.index(chart.id) if chart.id in order else len(order))
        ids = {panel.id for panel in shown}
        for id_, chart in self._made.items():
            chart.display = id_ in ids
        self.readings = frozenset(panel.name for panel in shown if panel.of_devices)
        self._label()
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
        panels = panels_of(self.state)
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

    def _draw(self) -> None:
        for panel in self.shown:
            self._made[panel.id].series = series_of(self.state, panel)

    def _label(self) -> None:
        for panel in self.shown:
            chart = self._made[panel.id]
            marked = self.has_focus and panel.id == self.marked and len(self.shown) > 1
            chart.title = f"{_MARK} {panel.title}" if marked else panel.title
            chart.empty = "no step was taken" if self.state.over else "waiting for the first step"
            chart.end = self.state.total_steps
        self._tell()

    def _look(self) -> None:
        bounds = self.window.bounds(self.state.step)
        for chart in self._made.values():
            chart.window = bounds
        widest = max((chart.size.width for chart in self._made.values() if chart.display), default=0)
        self.part = part_of(bounds, 2 * (widest or self.size.width), self.state.throughput.width)
        self._tell()

    def _tell(self) -> None:
        step = self.cursor and words_of_step(self.cursor.step, self._bucket, self.state)
        there = len(panels_of(self.state))
        self._bar.items = (
            Item("whole run", "whole", "0", on=self.window.span is None),
            Item("follow", "end", "end", on=self.window.follows),
            *([Item(shown, spare=True)] if (shown := window.words(self.window, self.state.step)) else []),
            Item(step or "cursor", "cursor", "v", on=bool(self.cursor and self.cursor.stays)),
            Item(f"{len(self.shown)} of {there} charts", "choose", "a", spare=True),
            Item("fill", "fill", "f", on=self.full, spare=True),
        )

    @property
    def _bucket(self) -> int:
        """Steps that are known as one where somebody looks."""
        return self.part.width if self.part and self.state.details else self.state.throughput.width

    @on(Chart.Pointed)
    def _point(self, message: Chart.Pointed) -> None:
        message.stop()
        if not (self.cursor and self.cursor.stays):
            step = self._step(message.step)
            self.cursor = None if step is None else Cursor(step)

    @on(Chart.Pressed)
    def _press(self, message: Chart.Pressed) -> None:
        """Mark a chart, and put the cursor there or take it away; the second press of two fills the screen."""
        message.stop()
        self.marked = message.chart.id or self.marked
        if message.times == 2:
            self.cursor = self._before_press
            self.action_fill()
        elif message.times == 1:
            self._before_press = self.cursor
            step = self._step(message.step)
            put = None if step is None else Cursor(step, stays=True)
            self.cursor = None if put == self.cursor else put

    @on(Chart.Zoomed)
    def _zoom(self, message: Chart.Zoomed) -> None:
        message.stop()
        self.window = self.window.zoomed(self.state.step, message.factor, message.step)

    @on(Chart.Scrolled)
    def _scroll(self, message: Chart.Scrolled) -> None:
        message.stop()
        self.window = self.window.moved(self.state.step, message.direction * _NUDGE)

    @on(Chart.Dragged)
    def _drag(self, message: Chart.Dragged) -> None:
        message.stop()
        if bounds := self.window.bounds(self.state.step):
            self.window = self.window.shifted(self.state.step, round(message.first) - bounds[0])

    @on(ChartBar.Clicked)
    async def _do(self, message: ChartBar.Clicked) -> None:
        message.stop()
        await self.run_action(message.action)

    def _step(self, at: float | None) -> int | None:
        """The step next to a place on the axis; ``None`` before the first was taken."""
        return None if at is None or not self.state.step else min(max(round(at), 0), self.state.step - 1)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave escape to the screen where there is nothing to go back from."""
        del parameters
        return action != "back" or self.full or bool(self.cursor and self.cursor.stays)

    def action_zoom_in(self) -> None:
        """Show half as many steps, around the cursor if there is one."""
        self.window = self.window.zoomed(self.state.step, 0.5, self._stays_at)

    def action_zoom_out(self) -> None:
        """Show twice as many steps, around the cursor if there is one."""
        self.window = self.window.zoomed(self.state.step, 2, self._stays_at)

    @property
    def _stays_at(self) -> int | None:
        return self.cursor.step if self.cursor and self.cursor.stays else None

    def action_move(self, direction: int) -> None:
        """Move the cursor; without one, look at earlier or later steps."""
        if self._stays_at is None:
            self.window = self.window.moved(self.state.step, direction * _SCROLL)
        else:
            self._move_cursor(direction)

    def action_far(self, direction: int) -> None:
        """The same, many times."""
        if self._stays_at is None:
            self.window = self.window.moved(self.state.step, direction)
        else:
            self._move_cursor(direction * _FAR)

    def _move_cursor(self, times: int) -> None:
        low, high = self.window.bounds(self.state.step) or (0, self.state.step)
        dots = 2 * max(self._made[panel.id].size.width for panel in self.shown)
        stride = max(1, self._bucket, round((high - low) / dots))
        step = self._step((self._stays_at or 0) + times * stride)
        if step is not None:
            self.cursor = Cursor(step, stays=True)
            self.window = self.window.with_step(self.state.step, step)

    def action_cursor(self) -> None:
        """Put the cursor where the mouse is, else in the middle; or take it away."""
        if self._stays_at is not None:
            self.cursor = None
            return
        low, high = self.window.bounds(self.state.step) or (0, self.state.step)
        step = self.cursor.step if self.cursor else self._step((low + min(high, self.state.step)) / 2)
        self.cursor = None if step is None else Cursor(step, stays=True)

    def action_other(self, direction: int) -> None:
        """Mark the next chart, or the one before."""
        panels = panels_of(self.state) if self.full else self.shown
        ids = [panel.id for panel in panels]
        place = ids.index(self.marked) if self.marked in ids else 0
        self.marked = ids[(place + direction) % len(ids)]

    def action_fill(self) -> None:
        """Let the marked chart fill the screen, or no longer."""
        self.full = not self.full

    def action_back(self) -> None:
        """Take back the filling, then the cursor."""
        if self.full:
            self.full = False
        else:
            self.cursor = None

    def action_choose(self) -> None:
        """Ask which charts are to be shown."""
        self.post_message(self.Choosing(panels_of(self.state), tuple(panel.id for panel in self.shown)))

    def action_beginning(self) -> None:
        """Look at the first steps."""
        self.window = self.window.at_beginning()

    def action_end(self) -> None:
        """Follow the last steps."""
        self.window = self.window.at_end()

    def action_whole(self) -> None:
        """Show all steps again."""
        self.window = Window()


def words_of_step(step: int, width: int, state: RunState) -> str:
    """Where the cursor is: the step, or the steps that are known as one, and the epoch."""
    first = step - step % width
    steps = f"step {step:,}" if width == 1 else f"steps {first:,} to {min(first + width, state.step) - 1:,}"
    return f"{steps}, epoch {step // state.built.steps_per_epoch + 1}" if state.built else steps


def _kinds(state: RunState) -> tuple[object, ...]:
    """What it depends on which charts there can be, and what they say without curves."""
    return state.built, [*state.curves], [*state.meters], bool(state.rates), state.over
