"""The background of a chart: its layout, axes, labels, grid and marks."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from textual.geometry import Region

from accel_tui.run_state.marks import MarkKind, Marks, Track
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.cell_frame import STYLE_ID, Frame
from accel_tui.widgets.chart.chart_view import ChartView
from accel_tui.widgets.chart.value_axis import max_ticks

GLYPHS = {
    MarkKind.EPOCH: "┴",
    MarkKind.VALIDATION: "●",
    MarkKind.CHECKPOINT: "◆",
    MarkKind.XLA: "×",  # noqa: RUF001 - its letter, and x in ASCII
    MarkKind.MICRO_BATCHES: "÷",
    MarkKind.LEARNING_RATE_DOWN: "▼",
    MarkKind.LEARNING_RATE_UP: "▲",
    MarkKind.RESUMED: "►",
    MarkKind.PAUSED: "║",
    MarkKind.PART: "■",
    MarkKind.RECOVERED: "↻",
    MarkKind.ADVICE: "⚑",
}
"""Signs of marks; of two in one cell, the later in this order stays and the other moves one cell to the left."""

VALIDATED = "┻"
"""Sign of an epoch that ends with a validation."""

_STYLES = {MarkKind.EPOCH: "axis", MarkKind.VALIDATION: "note", MarkKind.CHECKPOINT: "note"}
_LINED = (
    MarkKind.LEARNING_RATE_DOWN,
    MarkKind.LEARNING_RATE_UP,
    MarkKind.RESUMED,
    MarkKind.PAUSED,
    MarkKind.PART,
    MarkKind.RECOVERED,
)  # rare, and often the cause of a change
_TICKS = {GLYPHS[MarkKind.EPOCH]: "┼", VALIDATED: "╋"}  # at labelled ticks
_CELLS_APART = 8


@dataclass(frozen=True, slots=True, eq=False)
class BackgroundLayout:
    """The parts of a background that change only with axes and size. Cached and shared, so never drawn on."""

    frame: Frame
    """Axes, labels and grid."""
    plot: Region
    """The rectangle of the plot; empty if there is no room. Its last row is the axis if the chart has one."""
    label_width: int
    """Width of the longest value label, whether it fits or not."""


def background_layout(view: ChartView) -> BackgroundLayout:
    """The layout of a chart. What does not fit is left out: step labels first, then value labels, then the plot."""
    steps = view.scale is None
    return _layout(
        view.columns, view.rows, view.x, view.y, view.min_label_width, view.end_width, view.axis_rows, steps=steps
    )


def plot_region(view: ChartView) -> Region:
    """The rectangle of the plot; empty if there is no room."""
    return background_layout(view).plot


def draw_background(view: ChartView, layout: BackgroundLayout) -> Frame:
    """Draw the background of a chart."""
    frame, plot = layout.frame.copy(), layout.plot
    if plot and view.axis_rows:
        if view.scale:
            _ticks(frame, view.scale.ticks(view.x, plot.width), plot, view.scale.name if plot.x else "")
        draw_marks(frame, view.marks, view.x, plot)
    return frame


@lru_cache(maxsize=32)
def _layout(
    columns: int, rows: int, x: Axis, y: Axis, min_label_width: int, end_width: int, axis_rows: int, *, steps: bool
) -> BackgroundLayout:
    frame = Frame.blank(columns, rows)
    has_axis = axis_rows > 0
    height = max(0, axis_rows + 1 if has_axis else rows - 1)
    found = y.ticks_on_rows(height - 1, max_ticks(height - 1)) if has_axis else [(y.low, height - 1), (y.high, 0)]
    texts = y.labels([value for value, _ in found])
    longest = max(map(len, texts), default=0)
    gutter = max(min_label_width, longest) + 2
    if columns < gutter + 12:
        gutter = 0
    plot = Region(gutter, 1, max(0, columns - gutter - end_width), height)
    if gutter and height:
        _value_axis(frame, plot, [(row + 1, text) for (_, row), text in zip(found, texts, strict=True)])
    if has_axis:
        frame.write(gutter, plot.bottom - 1, "─" * plot.width, "axis")
        if gutter:
            frame.write(gutter - 1, plot.bottom - 1, "└", "axis")
        if steps:
            ticks = x.ticks(max(2, plot.width // 8))
            columns_of_ticks = (x.fraction(np.array(ticks)) * plot.width).astype(np.int64).tolist()
            _ticks(frame, zip(columns_of_ticks, x.labels(ticks), strict=True), plot)
    return BackgroundLayout(frame, plot, longest)


def _value_axis(frame: Frame, plot: Region, ticks: Iterable[tuple[int, str]]) -> None:
    """Write value labels at their rows, and grid lines across the plot."""
    for y in range(plot.y, plot.bottom):
        frame.write(plot.x - 1, y, "│", "axis")
    for y, text in ticks:
        frame.write(plot.x - 2 - len(text), y, text, "label")
        frame.write(plot.x - 1, y, "┤", "axis")
        frame.write(plot.x, y, "┈" * plot.width, "grid")


def _ticks(frame: Frame, ticks: Iterable[tuple[int, str]], plot: Region, name: str = "") -> None:
    """Write as many step labels as do not touch, and the axis title left of them."""
    frame.write(0, plot.bottom, name, "note")
    free = first_free = len(name) + 1 if name else 0
    for column, text in ticks:
        x = plot.x + min(column, plot.width - 1)
        start = max(first_free, min(x - len(text) // 2, plot.right - len(text)))
        if start >= free:
            frame.write(x, plot.bottom - 1, "┬", "axis")
            frame.write(start, plot.bottom, text, "label")
            free = start + len(text) + 1


def draw_marks(frame: Frame, marks: Marks, x: Axis, plot: Region) -> None:
    """Draw marks on the axis below a plot; rare ones also draw a vertical line where the plot is empty.

    Args:
        frame: The chart with its axes; drawn on.
        marks: The marks.
        x: Range of steps.
        plot: The rectangle of the plot, whose last row is the axis.
    """
    row = plot.bottom - 1
    taken: set[int] = set()
    for kind, glyph, _, cells in _seen(marks, x, plot.width):
        for cell in cells:
            free = next((each for each in (cell, cell - 1) if each >= 0 and each not in taken), None)
            if free is None:
                continue
            taken.add(free)
            column = plot.x + free
            tick = kind is MarkKind.EPOCH and frame.characters[row, column] == ord("┬")
            frame.write(column, row, _TICKS[glyph] if tick else glyph, _STYLES.get(kind, "title"))
            if kind in _LINED:
                line = frame.part(column, plot.y, 1, plot.height - 1)
                empty = np.isin(line.characters, (ord(" "), ord("┈")))
                line.characters[empty] = ord("┊")
                line.styles[empty] = STYLE_ID["axis"]


def mark_legend(marks: Marks, x: Axis, width: int) -> list[str]:
    """Legends of the visible marks.

    Returns:
        Legends from short to long; the most frequent marks are left out first.
    """
    legends: list[str] = []
    for kind, glyph, stride, cells in _seen(marks, x, width):
        if cells:
            entry = f"{glyph} {kind}" if stride == 1 else f"{glyph} = {stride} {kind}s"
            entry += ", validation" * (glyph == VALIDATED)
            legends.append(f"{entry}  {legends[-1]}" if legends else entry)
    return legends


def _seen(marks: Marks, x: Axis, width: int) -> Iterator[tuple[MarkKind, str, int, list[int]]]:
    """The visible marks, the rarest first: kind, sign, how many events a sign stands for, columns."""
    found = {kind: _cells(marks[kind], x, width) for kind in reversed(GLYPHS) if kind in marks}
    both: set[int] = set()
    if MarkKind.EPOCH in found and MarkKind.VALIDATION in found:
        both = set(found[MarkKind.EPOCH][1]).intersection(found[MarkKind.VALIDATION][1])
    for kind, (stride, cells) in found.items():
        if both and kind is MarkKind.EPOCH:
            yield kind, VALIDATED, stride, sorted(both)
        alone = [cell for cell in cells if cell not in both] if kind in (MarkKind.EPOCH, MarkKind.VALIDATION) else cells
        yield kind, GLYPHS[kind], stride, alone


def _cells(track: Track, x: Axis, width: int) -> tuple[int, list[int]]:
    """How many events a sign stands for, and the columns of the signs."""
    first, last = bisect_left(track.steps, x.low), bisect_right(track.steps, x.high)
    stride = _stride((last - first) * track.stride, width, track.stride)
    slice_step = stride // track.stride
    columns_per_step = width / (x.high - x.low)
    shown = track.steps[first + (-first - 1) % slice_step : last : slice_step]
    return stride, [min(max(int((step - x.low) * columns_per_step), 0), width - 1) for step in shown]


def _stride(events: int, width: int, kept_stride: int) -> int:
    """How many events a sign stands for: 1, 2 or 5 times a power of ten, or ``kept_stride`` times a power of two."""
    max_signs = max(1, width // _CELLS_APART)
    if kept_stride > 1:
        return next(kept_stride << doubled for doubled in range(64) if events <= max_signs * kept_stride << doubled)
    step_sizes = (digit * 10**power for power in range(20) for digit in (1, 2, 5))
    return next(step_size for step_size in step_sizes if events <= max_signs * step_size)
