"""The charts of a bench: the latencies of the candidate that is being measured, and the throughput of all."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import ClassVar

import numpy as np
from rich.segment import Segment
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from accel_engine.inference.candidate import Candidate
from accel_engine.inference.measurement.percentiles import LiveWindow
from accel_engine.words import numbers
from accel_tui.run_state.curve import RecordedCurve
from accel_tui.widgets.chart.axes import LogAxis, round_down, round_up
from accel_tui.widgets.chart.cell_frame import STYLES, Frame
from accel_tui.widgets.chart.chart_view import ChartSeries
from accel_tui.widgets.chart.plot import Plot, PlotSeries, draw_plot
from accel_tui.widgets.chart.style_rules import style_rules
from accel_tui.widgets.chart_panels.batch_axis import BatchAxis
from accel_tui.widgets.chart_panels.compare_charts import LetteredChart, letter, style_of

_MILLISECOND = 1e-3
_WIDE = 42  # cells that the title takes with both percentiles

_MAX_CURVES = 8
"""Curves that have a letter of their own; further setups are only in the tables."""


class LatencyHistogram(Widget):
    """Requests by latency, with p50 and p99; a text while there is nothing to show."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"histogram--{name}" for name in STYLES}
    DEFAULT_CSS = """
    LatencyHistogram {
        width: 1fr;
        height: 1fr;
        min-height: 3;
    }
    """ + style_rules("LatencyHistogram", "histogram")

    live: reactive[LiveWindow | None] = reactive(None)
    """What is shown."""

    WAITING: ClassVar[str] = "waiting for the first request"

    empty: reactive[str] = reactive(WAITING)
    """The text without latencies."""

    _ends: tuple[float, float] | None = None  # of the axis, which grows while a candidate is measured
    _drawn: tuple[Size, Frame] | None = None

    def watch_live(self, before: LiveWindow | None, live: LiveWindow | None) -> None:
        """Draw it at the next repaint; a new candidate, or a new rate in the scenario server, has a new axis."""
        self._drawn = None
        if before is None or live is None or _measured(before) != _measured(live):
            self._ends = None
        if live is not None and live.counts:
            self._ends = self._widened(live)

    def render_line(self, y: int) -> Strip:
        """A line of the plot."""
        if self.live is None or not self.live.counts:
            text = self.empty if y == 0 else ""
            return Strip([Segment(text, self.get_component_rich_style("histogram--note"))])
        frame = self._frame(self.live)
        if y >= frame.characters.shape[0]:
            return Strip.blank(self.size.width)
        style = self.get_component_rich_style
        return Strip([Segment(text, style(f"histogram--{name}")) for text, name in frame.runs(y)])

    def _frame(self, live: LiveWindow) -> Frame:
        """The plot at this size, which is drawn once for all its lines."""
        if self._drawn is None or self._drawn[0] != self.size:
            self._drawn = self.size, draw_plot(self.plot(live), *self.size)
        return self._drawn[1]

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


def _measured(live: LiveWindow) -> tuple[str, int, float]:
    """What the latencies are of."""
    return live.title, live.batch_size, live.rate


class ThroughputChart(LetteredChart):
    """Examples per second, or requests in the scenario server, by batch size."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set()

    def on_mount(self) -> None:
        """Format the values as in the tables."""
        super().on_mount()
        self.format = numbers.compact
        self.empty = "waiting for the first batch size"

    def show(self, candidates: Sequence[Candidate]) -> None:
        """Draw what has been measured."""
        unit = "requests/s" if any(each.scenario == "server" for each in candidates) else "examples/s"
        self.title = f"{unit} by batch size"
        setups = [[each for each in group if not each.problem] for _, group in groupby(candidates, attrgetter("title"))]
        setups = setups[:_MAX_CURVES]
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
