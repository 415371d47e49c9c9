"""All that a chart's picture depends on."""

from collections.abc import Callable
from dataclasses import dataclass, field

from accel_tui.run.marks import Marks
from accel_tui.widgets.chart.axes import Axis, significant
from accel_tui.widgets.chart.chart_options import PLAIN, ChartOptions
from accel_tui.widgets.chart.scale import Scale
from accel_tui.widgets.chart.series import Series

LABELS = 4
"""Cells that there are for the labels of values, where no chart has longer ones."""


@dataclass(frozen=True, slots=True)
class ChartView:
    """All that a chart's picture depends on.

    Attributes:
        columns: Width in cells.
        rows: Height in cells.
        x: Range of steps.
        y: Range of values.
        series: What is drawn, the last on top.
        title: First words of the first line.
        empty: Said in the middle while there is nothing to draw.
        value: How the latest values are written.
        lens: How the curves are looked at; the value axis is one of it.
        scale: What the labels below count, where it is not steps.
        marks: What happened at single steps.
        explains: Whether it is said what the marks mean, where there is room.
        room: Cells that there are for labels of values at least, so that charts below one another begin at one place.
    """

    columns: int
    rows: int
    x: Axis
    y: Axis
    series: tuple[Series, ...] = ()
    title: str = ""
    empty: str = ""
    value: Callable[[float], str] = significant
    lens: ChartOptions = PLAIN
    scale: Scale | None = None
    marks: Marks = field(default_factory=dict)
    explains: bool = False
    room: int = LABELS
