"""Draws marks on the axis below a plot; each kind has its own sign."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import numpy as np

from accel_tui.run_state.marks import MarkKind, Marks, Track
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.cell_frame import STYLE_ID, Frame

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
)  # rare, and often the cause of a change
_TICKS = {GLYPHS[MarkKind.EPOCH]: "┼", VALIDATED: "╋"}  # at labelled ticks
_CELLS_APART = 8


def draw_marks(frame: Frame, marks: Marks, x: Axis, plot: tuple[int, int, int]) -> None:
    """Draw marks on the axis below a plot; rare ones also draw a vertical line where the plot is empty.

    Args:
        frame: The chart with its axes; drawn on.
        marks: The marks.
        x: Range of steps.
        plot: First column of the plot, its width, and the row of the axis.
    """
    left, width, row = plot
    taken: set[int] = set()
    for kind, glyph, _, cells in _seen(marks, x, width):
        for cell in cells:
            free = next((each for each in (cell, cell - 1) if each >= 0 and each not in taken), None)
            if free is None:
                continue
            taken.add(free)
            column = left + free
            tick = kind is MarkKind.EPOCH and frame.characters[row, column] == ord("┬")
            frame.write(column, row, _TICKS[glyph] if tick else glyph, _STYLES.get(kind, "title"))
            if kind in _LINED:
                _line(frame, column, row)


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
    """How many events a sign may stand for: 1, 2 or 5 times a power of ten, or a multiple of ``kept_stride``."""
    max_signs = max(1, width // _CELLS_APART)
    if kept_stride > 1:
        return next(kept_stride << doubled for doubled in range(64) if events <= max_signs * kept_stride << doubled)
    step_sizes = (digit * 10**power for power in range(20) for digit in (1, 2, 5))
    stride: int = next(step_size for step_size in step_sizes if events <= max_signs * step_size)
    return stride


def _line(frame: Frame, column: int, below: int) -> None:
    plot = frame.part(column, 1, 1, below - 1)
    empty = np.isin(plot.characters, (ord(" "), ord("┈")))
    plot.characters[empty] = ord("┊")
    plot.styles[empty] = STYLE_ID["axis"]
