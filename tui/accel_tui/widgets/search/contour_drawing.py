"""Draws two parameters as a plane whose cells have the objective as colour, interpolated between the trials."""

import math

import numpy as np

from accel_engine.search.definition import Parameter
from accel_engine.search.results import is_counted
from accel_tui.plan import field_labels
from accel_tui.study_state.state import Floats, StudyState
from accel_tui.study_state.study_texts import objective_name
from accel_tui.widgets.chart import raster
from accel_tui.widgets.chart.background import background_layout
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.chart_view import ChartView
from accel_tui.widgets.search import study_styles
from accel_tui.widgets.search.parameter_axis import axis_of_parameter, positions

_NEAR = 0.2  # share of the plane's side; cells without a trial as near as this stay empty
_BLOCK = 64  # rows of cells that are interpolated at once, which bounds the memory
_POWER = 3.0  # of the distance, by which the weight of a trial falls
_FEWEST = 4


def draw_contour(
    state: StudyState, across: Parameter | None, up: Parameter | None, selected: int | None, columns: int, rows: int
) -> Frame:
    """Draw the plane of two parameters; the trials are dots, the best one a star."""
    frame = Frame.blank(columns, rows)
    trials = [trial for trial in state.trials.values() if is_counted(trial, state.monitor.name)]
    if across is None or up is None or len(trials) < _FEWEST:
        few = f"a contour needs {_FEWEST} trials with a value; there are {len(trials)}"
        text = "a contour needs two parameters" if across is None or up is None else few
        study_styles.write_cells(frame, max(0, (columns - len(text)) // 2), rows // 2, text, "note")
        return frame
    view = ChartView(columns, rows, axis_of_parameter(across, trials), axis_of_parameter(up, trials))
    layout = background_layout(view)
    frame = layout.frame.copy()
    values = np.array([trial.objectives[state.monitor.name] for trial in trials])
    x, y = view.x.fraction(positions(across, trials)), view.y.fraction(positions(up, trials))
    known = np.isfinite(x) & np.isfinite(y)
    if layout.plot and known.any():
        area = frame.part(*layout.plot)
        _fill(area, x[known], y[known], values[known], maximize=state.monitor.maximize)
        chosen = [trial for trial, is_known in zip(trials, known, strict=True) if is_known]
        height, width = area.characters.shape
        cells = np.clip((x[known] * width).astype(int), 0, width - 1)
        lines = raster.dot_rows(y[known], height) // 4
        best = state.best.number if state.best else -1
        order = sorted(range(len(chosen)), key=lambda index: chosen[index].number in (best, selected))
        for index in order:
            number = chosen[index].number
            sign, style = ("★", "title") if number == best else ("●", "label")
            style = "secondary" if number == selected else style
            study_styles.write_cells(area, int(cells[index]), int(lines[index]), sign, style)
    title = f"{field_labels.label(up.name)} over {field_labels.label(across.name)}"
    study_styles.write_cells(frame, 0, 0, title, "title")
    note = f"  by {objective_name(state.monitor.name)}"
    if len(title) + len(note) + 2 + study_styles.LEGEND_WIDTH <= columns:
        study_styles.write_cells(frame, len(title), 0, note, "label")
        study_styles.legend(frame, len(title) + len(note) + 2, 0)
    return frame


def _fill(area: Frame, x: Floats, y: Floats, values: Floats, *, maximize: bool) -> None:
    """Fill the cells near trials with the level of the interpolated objective."""
    height, width = area.characters.shape
    limits = _limits(values, maximize=maximize)
    signed = values if maximize else -values
    across = (np.arange(width) + 0.5) / width
    for start in range(0, height, _BLOCK):
        up = 1 - (np.arange(start, min(start + _BLOCK, height)) + 0.5) / height
        found, nearest = _interpolated(across, up, x, y, signed)
        levels = np.searchsorted(limits, found)
        part = slice(start, start + len(up))
        mask = nearest <= _NEAR
        area.characters[part][mask] = np.array([ord(sign) for sign in study_styles.LEVEL_SIGNS], np.uint32)[levels][
            mask
        ]
        area.styles[part][mask] = (levels + study_styles.STUDY_STYLE_ID["level-0"])[mask]


def _limits(values: Floats, *, maximize: bool) -> Floats:
    """The values between two levels, of values of which larger is better."""
    levels = study_styles.levels_of(values, maximize=maximize)
    signed = values if maximize else -values
    highest = [signed[levels <= level].max(initial=-math.inf) for level in range(study_styles.LEVELS - 1)]
    return np.array(highest, np.float64)


def _interpolated(across: Floats, up: Floats, x: Floats, y: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Means of the trials by inverse distance (Shepard's method), and the distance of the nearest trial."""
    squares = (across[None, :, None] - x) ** 2 + (up[:, None, None] - y) ** 2
    weights = 1 / np.maximum(squares, 1e-9) ** (_POWER / 2)
    return (weights @ values) / weights.sum(axis=-1), np.sqrt(squares.min(axis=-1))
