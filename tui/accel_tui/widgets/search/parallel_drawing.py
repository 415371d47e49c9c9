"""Draws parallel coordinates, an axis per parameter and a line per trial; and the importance of parameters."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from accel_engine.search.definition import Parameter
from accel_engine.search.trial import Trial
from accel_engine.words.numbers import percent
from accel_tui.formatting.bars import bar
from accel_tui.formatting.text import shorten
from accel_tui.plan import field_labels
from accel_tui.study_state.state import Floats, StudyState
from accel_tui.study_state.study_texts import objective_name
from accel_tui.widgets.chart import dots, raster
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.search.parameter_axis import axis_of_parameter, positions
from accel_tui.widgets.search.study_styles import LEGEND_WIDTH, LEVELS, legend, levels_of, paint, write_cells

MIN_DISTANCE = 12
"""Fewest cells between two axes."""

_TOP = 2  # rows above the axes
_TICKS_APART = 4  # rows


def draw_parallel(state: StudyState, selected: int | None, first: int, columns: int, rows: int) -> Frame:
    """Draw parallel coordinates, coloured by the rank of the monitor.

    Args:
        state: The search.
        selected: Number of the trial that is highlighted.
        first: Index of the first parameter shown, where there is no room for all.
        columns: Width in cells.
        rows: Height in cells.
    """
    frame = Frame.blank(columns, rows)
    monitor = state.monitor
    trials = [trial for trial in state.trials.values() if math.isfinite(state.value(trial))]
    values = np.array([state.value(trial) for trial in trials], np.float64)
    title = f"Parameters and {objective_name(monitor.name)}"
    write_cells(frame, 0, 0, title, "title")
    if len(title) + LEGEND_WIDTH + 2 <= columns:
        legend(frame, len(title) + 2, 0)
    if not trials or rows < _TOP + 3:
        write_cells(frame, 0, rows // 2, "no trial has reported yet", "note")
        return frame
    shown = _shown(state, first, columns)
    axes: list[tuple[str, Axis, Floats]] = [
        (field_labels.label(each.name), axis_of_parameter(each, trials), positions(each, trials)) for each in shown
    ]
    low, high = float(values.min()), float(values.max())
    axes.append((objective_name(monitor.name), Axis.of_ends(low, high), values))
    at = _axis_columns([axis for _, axis, _ in axes], columns)
    area = frame.part(0, _TOP, columns, rows - _TOP)
    up = np.array([axis.fraction(found) for _, axis, found in axes])
    _draw_lines(area, (np.array(at) + 0.5) / columns, up, levels_of(values, maximize=monitor.maximize))
    _highlight(area, (np.array(at) + 0.5) / columns, up, trials, selected)
    for x, (name, axis, _) in zip(at, axes, strict=True):
        _draw_axis(area, x, axis)
        title = shorten(name, max(at[1] - at[0] - 1, 1))
        write_cells(frame, min(x, columns - len(title)), 1, title, "label")
    if hidden := len(state.parameters) - len(shown):
        note = f"← → {hidden} more"
        write_cells(frame, columns - len(note), 0, note, "note")
    return frame


def _shown(state: StudyState, first: int, columns: int) -> Sequence[Parameter]:
    count = max(1, min(len(state.parameters), columns // MIN_DISTANCE - 1))
    start = min(first, len(state.parameters) - count)
    return state.parameters[start : start + count]


def _axis_columns(axes: Sequence[Axis], columns: int) -> list[int]:
    """The column of each axis, with room for the labels right of the last one."""
    room = max(2, min(9, columns // (len(axes) + 1)))
    return [round(position) for position in np.linspace(1, max(columns - room - 1, 1), len(axes))]


def _draw_lines(area: Frame, across: Floats, up: Floats, levels: np.ndarray) -> None:
    """Draw a line per trial, the best on top; all of a level at once, with gaps in between."""
    height, width = area.characters.shape
    gaps = np.full((1, up.shape[1]), np.nan)
    for level in range(LEVELS):
        chosen = levels == level
        lines = np.concatenate([up, gaps])[:, chosen].T.ravel()
        places = np.tile(np.append(across, np.nan), int(chosen.sum()))
        paint(area, dots.polyline(places, lines, width, height), f"level-{level}")


def _highlight(area: Frame, across: Floats, up: Floats, trials: Sequence[Trial], selected: int | None) -> None:
    height, width = area.characters.shape
    index = next((index for index, trial in enumerate(trials) if trial.number == selected), None)
    if index is None:
        return
    paint(area, dots.polyline(across, up[:, index], width, height), "secondary")


def _draw_axis(area: Frame, x: int, axis: Axis) -> None:
    """Draw an axis with labels right of it, over the lines."""
    height = area.characters.shape[0]
    for y in range(height):
        write_cells(area, x, y, "│", "axis")
    ticks = axis.ticks(max(2, height // _TICKS_APART))
    for tick, text in zip(ticks, axis.labels(ticks), strict=True):
        fraction = axis.fraction(np.array([tick]))
        if -raster.EDGE <= float(fraction[0]) <= 1 + raster.EDGE:
            y = int(raster.dot_rows(fraction, height)[0]) // 4
            write_cells(area, x, y, "┼", "axis")
            write_cells(area, x + 1, y, text, "label")


ABOUT = "share of each parameter in what makes the best tenth good (PED-ANOVA)"


def draw_importance(shares: Mapping[str, float], problem: str, title: str, columns: int, rows: int) -> Frame:
    """Draw a bar per parameter, the most important first; the reason where there are none.

    Args:
        shares: The share of each parameter; together 1.
        problem: Why there are none; empty while they are computed.
        title: In the first row.
        columns: Width in cells.
        rows: Height in cells.
    """
    frame = Frame.blank(columns, rows)
    write_cells(frame, 0, 0, title, "title")
    if not shares:
        write_cells(frame, 0, min(2, rows - 1), problem or "computing…", "note")
        return frame
    write_cells(frame, 0, 1, ABOUT, "note")
    names = {name: field_labels.label(name) for name in shares}
    width = max(map(len, names.values()))
    room = max(columns - width - 8, 1)
    largest = max(shares.values()) or 1.0
    apart = 2 if len(shares) * 2 + 2 <= rows else 1
    for index, (name, share) in enumerate(shares.items()):
        y = 3 + index * apart if apart == 2 else 2 + index
        write_cells(frame, 0, y, names[name].rjust(width), "label")
        write_cells(frame, width + 1, y, bar(share / largest, room), "primary" if index else "success")
        write_cells(frame, columns - 6, y, percent(share).rjust(6) if share else "    0%", "title")
    return frame
