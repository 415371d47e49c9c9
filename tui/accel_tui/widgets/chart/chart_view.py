"""All inputs of a chart's frame: its series, options, axes and marks."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from accel_tui.run_state.curve import RecordedCurve
from accel_tui.run_state.marks import Marks
from accel_tui.widgets.chart.axes import Axis, LogAxis, significant
from accel_tui.widgets.chart.scale import XScale

X = Literal["step", "epoch", "time"]
"""Labels of the x-axis; curves are always spaced by step."""

SMOOTHINGS = (0.0, 0.6, 0.9, 0.98)
"""Smoothing weights that a key cycles through."""


@dataclass(frozen=True, slots=True)
class ChartOptions:
    """Options of how curves are drawn."""

    log: bool | None = None
    """Whether the value axis is logarithmic; ``None`` for where the range of the values asks for it."""
    smoothing: float = 0.0
    """Weight of the exponential moving average; 0 for none."""
    clip: bool = True
    """Whether the value axis ignores outliers, which are marked and counted."""
    x: X = "step"
    """Labels of the x-axis."""

    @property
    def exact(self) -> "ChartOptions":
        """The same for exact values, such as the learning rate: without smoothing and clipping."""
        return replace(self, log=bool(self.log), smoothing=0.0, clip=False)


PLAIN = ChartOptions()
"""The default options."""

ThemeColour = Literal["primary", "secondary", "success", "warning", "error"]
"""Colours of runs, devices and lines without a meaning, which can be distinguished with colour blindness."""

MeasureColour = Literal["loss", "loss-light", "metric", "metric-light", "speed", "rate", "gradient"]
"""Colours by what a series measures; the light ones are of its validation."""

Colour = ThemeColour | MeasureColour
"""Colours of series."""

NOTHING = RecordedCurve()
"""An empty curve; always the same object, so that it is not drawn again."""


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """A series of a chart: a line, points such as validations, or both."""

    name: str
    """Shown in the header if there are several series."""
    curve: RecordedCurve = NOTHING
    """A value per step."""
    points: tuple[tuple[float, float], ...] = ()
    """Pairs of step and value, by rising step."""
    style: Colour = "primary"
    """Colour of line, points and legend."""
    detail: RecordedCurve = NOTHING
    """A part of the curve at full resolution, drawn instead where it covers the visible steps."""
    is_resampled: bool = False
    """Whether the curve is not by steps, so that its values cannot be counted."""
    value: float | None = None
    """The value in the header, beside the name that says what it is; ``None`` for the last one of the curve."""

    @property
    def latest(self) -> float:
        """The value in the header; NaN if there is none."""
        if self.value is not None:
            return self.value
        if self.curve.end_step:
            return self.curve.last_value
        return self.points[-1][1] if self.points else math.nan

    @property
    def is_validation(self) -> bool:
        """Whether it has points, such as validations, and no curve."""
        return bool(self.points) and not self.curve.end_step

    def within(self, first: float, last: float) -> tuple[tuple[float, float], ...]:
        """The points from step ``first`` to ``last``, both inclusive."""
        return self.points[bisect_left(self.points, (first, -math.inf)) : bisect_right(self.points, (last, math.inf))]

    def curve_in(self, first: float, last: float) -> RecordedCurve:
        """The curve to draw for the steps from ``first`` to before ``last``."""
        covers = self.detail.first_step <= max(first, 0) and self.detail.end_step >= min(last, self.curve.end_step)
        return self.detail if covers and self.detail.end_step else self.curve


def steps_of(series: tuple[ChartSeries, ...]) -> int:
    """Number of steps of the longest series."""
    ends = [math.ceil(each.points[-1][0]) for each in series if each.points]
    return max([*ends, *(each.curve.end_step for each in series)], default=0)


def only_grew(drawn: tuple[ChartSeries, ...], series: tuple[ChartSeries, ...]) -> bool:
    """Whether only new steps were added since a chart was drawn."""
    return len(series) == len(drawn) and all(
        new is old
        or (
            (new.name, new.points, new.style, new.detail) == (old.name, old.points, old.style, old.detail)
            and new.curve.end_step >= old.curve.end_step
            and (new.curve is old.curve or math.isfinite(old.curve.last_value))
        )
        for new, old in zip(series, drawn, strict=True)
    )


LABELS = 4
"""Default width of value labels."""


_MIN_ROWS_OF_AXIS = 3


def value_axis_rows(rows: int, *, has_step_labels: bool = True) -> int:
    """Rows from one end of the value axis to the other; 0 if the chart has no axis below it.

    Args:
        rows: Height of the chart.
        has_step_labels: Whether it has labels of the steps.
    """
    others = 3 if has_step_labels else 2
    return rows - others if rows - others >= _MIN_ROWS_OF_AXIS else 0


END_WIDTH = 8
"""Columns for a value at the end of a line, with a space before it."""

NAME_WIDTH = 3
"""More columns where names of one letter and a mark stand there, too."""

VALIDATION_END = " val"
"""What stands there after the value of a validation."""

MIN_COLUMNS_WITH_ENDS = 56
"""Width from which a chart has values at the ends of its lines."""

MOST_ENDS = 3
"""Most series whose last values stand at the ends of their lines."""


@dataclass(frozen=True, slots=True)
class ChartView:
    """All inputs of a chart's frame."""

    columns: int
    """Width in cells."""
    rows: int
    """Height in cells."""
    x: Axis
    """Range of steps."""
    y: Axis
    """Range of values."""
    series: tuple[ChartSeries, ...] = ()
    """The series, the last on top."""
    title: str = ""
    """Title in the header."""
    empty: str = ""
    """Text in the middle while there is nothing to draw."""
    value: Callable[[float], str] = significant
    """Format of the latest values."""
    options: ChartOptions = PLAIN
    """How curves are drawn."""
    scale: XScale | None = None
    """The x-axis if not steps."""
    marks: Marks = field(default_factory=dict)
    """Marks on the step axis."""
    shows_mark_legend: bool = False
    """Whether the header explains the marks if there is room."""
    min_label_width: int = LABELS
    """Minimum width of value labels, shared by charts below one another."""
    note: str = ""
    """A note at the end of the header if there is room."""
    has_dots: bool = True
    """Whether the terminal shows dots; else signs tell points from curves."""
    has_tints: bool = False
    """Whether the terminal shows tints of a colour behind characters; else bands are dotted, as with several curves."""
    best: tuple[float, float] | None = None
    """The step and the value that are marked as the best."""
    has_end_values: bool = False
    """Whether the last values stand at the ends of lines, where there is room."""
    has_end_names: bool = False
    """Whether the names of the series stand before them; then of all series, and with the values of the header."""
    has_step_labels: bool = True
    """Whether the steps have labels; if not, the labels of a chart below are for this one, too."""

    @property
    def axis_rows(self) -> int:
        """Rows from one end of the value axis to the other; 0 if the chart has no axis below it."""
        return value_axis_rows(self.rows, has_step_labels=self.has_step_labels)

    @property
    def end_width(self) -> int:
        """Columns at the right for last values, as many in all charts below one another; 0 where there is no room."""
        if not self.has_end_values or self.columns < MIN_COLUMNS_WITH_ENDS:
            return 0
        return END_WIDTH + (NAME_WIDTH if self.has_end_names else len(VALIDATION_END))

    @property
    def has_ends(self) -> bool:
        """Whether the last values stand at the ends of lines."""
        return self.end_width > 0 and (self.has_end_names or len(self.series) <= MOST_ENDS)

    @property
    def has_validation_ends(self) -> bool:
        """Whether the values at the ends of lines tell which is of a validation."""
        return not self.has_end_names and len(self.series) > 1 and any(each.is_validation for each in self.series)

    @property
    def is_log(self) -> bool:
        """Whether the value axis is logarithmic."""
        return isinstance(self.y, LogAxis)

    @property
    def description(self) -> str:
        """How the curves are drawn, in words; empty for a linear axis and curves that are not smoothed."""
        smoothed = f"smoothed {self.options.smoothing:g}" if self.options.smoothing else ""
        return ", ".join(filter(None, (self.y.scale, smoothed)))
