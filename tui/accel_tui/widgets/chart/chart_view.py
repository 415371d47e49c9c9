"""All inputs of a chart's frame."""

from collections.abc import Callable
from dataclasses import dataclass, field

from accel_tui.run_state.marks import Marks
from accel_tui.widgets.chart.axes import Axis, significant
from accel_tui.widgets.chart.chart_options import PLAIN, ChartOptions
from accel_tui.widgets.chart.scale import XScale
from accel_tui.widgets.chart.series import Series

LABELS = 4
"""Default width of value labels."""


@dataclass(frozen=True, slots=True)
class ChartView:
    """All inputs of a chart's frame.

    Attributes:
        columns: Width in cells.
        rows: Height in cells.
        x: Range of steps.
        y: Range of values.
        series: The series, the last on top.
        title: Title in the header.
        empty: Text in the middle while there is nothing to draw.
        value: Format of the latest values.
        options: How curves are drawn.
        scale: The x-axis if not steps.
        marks: Marks on the step axis.
        shows_mark_legend: Whether the header explains the marks if there is room.
        min_label_width: Minimum width of value labels, shared by charts below one another.
    """

    columns: int
    rows: int
    x: Axis
    y: Axis
    series: tuple[Series, ...] = ()
    title: str = ""
    empty: str = ""
    value: Callable[[float], str] = significant
    options: ChartOptions = PLAIN
    scale: XScale | None = None
    marks: Marks = field(default_factory=dict)
    shows_mark_legend: bool = False
    min_label_width: int = LABELS
