"""Draws what happened on the line below a plot: what it was can be read from the shape alone."""

from bisect import bisect_left, bisect_right

import numpy as np

from accel_tui.marks import Kind, Marks, Track
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.frame import STYLE_ID, Frame

GLYPHS = {
    Kind.EPOCH: "┴",
    Kind.XLA: "×",  # noqa: RUF001 - its letter, and x in ASCII
    Kind.CHECKPOINT: "◆",
    Kind.RATE_DOWN: "▼",
    Kind.RATE_UP: "▲",
    Kind.RESUMED: "►",
    Kind.PAUSED: "║",
}
"""How each kind is drawn; of two at one place the later in this order stays, and the other goes beside it."""

_STYLES = {Kind.EPOCH: "axis", Kind.CHECKPOINT: "note"}
_LINED = (Kind.RATE_DOWN, Kind.RATE_UP, Kind.RESUMED, Kind.PAUSED)  # rare, and often the cause of a bend
_CELLS_APART = 8


def draw_marks(frame: Frame, marks: Marks, x: Axis, plot: tuple[int, int, int]) -> None:
    """Draw marks on the line below a plot, and through the plot where it is empty a line at those that are rare.

    Args:
        frame: The chart, with its axes; drawn on.
        marks: What happened.
        x: Range of steps.
        plot: The plot's first column, its width, and the row of the line below it.
    """
    left, width, row = plot
    taken: set[int] = set()
    for kind in reversed(GLYPHS):
        for cell in _cells(marks[kind], x, width)[1] if kind in marks else ():
            free = next((each for each in (cell, cell - 1) if each >= 0 and each not in taken), None)
            if free is None:
                continue
            taken.add(free)
            column = left + free
            tick = kind is Kind.EPOCH and frame.characters[row, column] == ord("┬")
            frame.write(column, row, "┼" if tick else GLYPHS[kind], _STYLES.get(kind, "title"))
            if kind in _LINED:
                _line(frame, column, row)


def words(marks: Marks, x: Axis, width: int, room: int) -> str:
    """What the marks mean that are seen in a plot, and of how many events in a row one is drawn.

    Where there is not room for all in so many cells, nothing is said of those that happen most often.
    """
    told = ""
    for kind in reversed(GLYPHS):
        stride, cells = _cells(marks[kind], x, width) if kind in marks else (1, [])
        if cells:
            more = f"{GLYPHS[kind]} {kind}" if stride == 1 else f"{GLYPHS[kind]} {stride} {kind}s"
            told = f"{more}  {told}" if told else more
            if len(told) > room:
                return told[len(more) + 2 :]
    return told


def _cells(track: Track, x: Axis, width: int) -> tuple[int, list[int]]:
    """Of how many events in a row one is drawn, and the columns of the plot where."""
    first, last = bisect_left(track.steps, x.low), bisect_right(track.steps, x.high)
    stride = _stride((last - first) * track.every, width, track.every)
    by = stride // track.every
    a_step = width / (x.high - x.low)
    shown = track.steps[first + (-first - 1) % by : last : by]
    return stride, [min(max(int((step - x.low) * a_step), 0), width - 1) for step in shown]


def _stride(events: int, width: int, least: int) -> int:
    """Of how many events in a row one can be drawn: 1, 2 or 5 times a power of ten, or ``least`` times one of two."""
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
