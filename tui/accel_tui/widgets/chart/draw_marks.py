"""Draws marks on the axis below a plot; each kind has its own sign."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import numpy as np

from accel_tui.run.marks import Kind, Marks, Track
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.cell_frame import STYLE_ID, Frame

GLYPHS = {
    Kind.EPOCH: "┴",
    Kind.VALIDATION: "●",
    Kind.CHECKPOINT: "◆",
    Kind.XLA: "×",  # noqa: RUF001 - its letter, and x in ASCII
    Kind.MICRO_BATCHES: "÷",
    Kind.RATE_DOWN: "▼",
    Kind.RATE_UP: "▲",
    Kind.RESUMED: "►",
    Kind.PAUSED: "║",
}
"""Signs of marks; of two at one place the later in this order stays, and the other is moved aside."""

VALIDATED = "┻"
"""Sign of an epoch that ends with a validation, as most do."""

_STYLES = {Kind.EPOCH: "axis", Kind.VALIDATION: "note", Kind.CHECKPOINT: "note"}
_LINED = (Kind.RATE_DOWN, Kind.RATE_UP, Kind.RESUMED, Kind.PAUSED)  # rare, and often the cause of a change
_TICKS = {GLYPHS[Kind.EPOCH]: "┼", VALIDATED: "╋"}  # at labelled ticks
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
            tick = kind is Kind.EPOCH and frame.characters[row, column] == ord("┬")
            frame.write(column, row, _TICKS[glyph] if tick else glyph, _STYLES.get(kind, "title"))
            if kind in _LINED:
                _line(frame, column, row)


def mark_legend(marks: Marks, x: Axis, width: int) -> list[str]:
    """Legends of the visible marks.

    Returns:
        Legends from short to long; the most frequent marks are left out first.
    """
    told: list[str] = []
    for kind, glyph, stride, cells in _seen(marks, x, width):
        if cells:
            more = f"{glyph} {kind}" if stride == 1 else f"{glyph} = {stride} {kind}s"
            more += ", validation" * (glyph == VALIDATED)
            told.append(f"{more}  {told[-1]}" if told else more)
    return told


def _seen(marks: Marks, x: Axis, width: int) -> Iterator[tuple[Kind, str, int, list[int]]]:
    """The visible marks, the rarest first: kind, sign, how many events a sign stands for, columns."""
    found = {kind: _cells(marks[kind], x, width) for kind in reversed(GLYPHS) if kind in marks}
    both: set[int] = set()
    if Kind.EPOCH in found and Kind.VALIDATION in found:
        both = set(found[Kind.EPOCH][1]).intersection(found[Kind.VALIDATION][1])
    for kind, (stride, cells) in found.items():
        if both and kind is Kind.EPOCH:
            yield kind, VALIDATED, stride, sorted(both)
        alone = [cell for cell in cells if cell not in both] if kind in (Kind.EPOCH, Kind.VALIDATION) else cells
        yield kind, GLYPHS[kind], stride, alone


def _cells(track: Track, x: Axis, width: int) -> tuple[int, list[int]]:
    """How many events a sign stands for, and the columns of the signs."""
    first, last = bisect_left(track.steps, x.low), bisect_right(track.steps, x.high)
    stride = _stride((last - first) * track.every, width, track.every)
    by = stride // track.every
    a_step = width / (x.high - x.low)
    shown = track.steps[first + (-first - 1) % by : last : by]
    return stride, [min(max(int((step - x.low) * a_step), 0), width - 1) for step in shown]


def _stride(events: int, width: int, least: int) -> int:
    """How many events a sign may stand for: 1, 2 or 5 times a power of ten, or a multiple of ``least``."""
    most = max(1, width // _CELLS_APART)
    if least > 1:
        return next(least << doubled for doubled in range(64) if events <= most * least << doubled)
    rungs = (digit * 10**power for power in range(20) for digit in (1, 2, 5))
    stride: int = next(rung for rung in rungs if events <= most * rung)
    return stride


def _line(frame: Frame, column: int, below: int) -> None:
    plot = frame.part(column, 1, 1, below - 1)
    empty = np.isin(plot.characters, (ord(" "), ord("┈")))
    plot.characters[empty] = ord("┊")
    plot.styles[empty] = STYLE_ID["axis"]
