"""Draws the monitor of all trials by epoch: the running ones strong, the pruned ones fading."""

import math
from collections.abc import Iterable
from typing import Literal

import numpy as np

from accel_engine.search.trial import TrialState
from accel_tui.study_state.state import Floats, StudyState, value_range
from accel_tui.study_state.study_texts import objective_name, objective_text
from accel_tui.widgets.chart import dots, raster
from accel_tui.widgets.chart.axes import WholeAxis
from accel_tui.widgets.chart.background import background_layout
from accel_tui.widgets.chart.bands import QUANTILES, band_series
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.chart_view import ChartView, Colour
from accel_tui.widgets.chart.plot import BAND_SIGN, Plot, PlotSeries, draw_part
from accel_tui.widgets.chart.value_axis import value_axis
from accel_tui.widgets.search.study_styles import STUDY_STYLE_ID, paint, write_cells

FADING = 5
"""Number of the latest pruned trials that are not faint yet."""

LEAST_BAND = 6
"""Trials that are neither live, best nor selected, from which they are a band in place of lines."""

_OTHERS = ("grid", "axis", "primary-band")
_INKS: dict[str, Colour | Literal["axis"]] = {
    "grid": "axis",
    "axis": "axis",
    "primary-band": "primary",
    "primary": "primary",
    "success": "success",
    "secondary": "secondary",
}
"""The colours of these styles in files."""

_GROUPS = (
    ("grid", "pruned"),
    ("axis", "just pruned"),
    ("primary-band", "finished"),
    ("primary", "running"),
    ("success", "best"),
    ("secondary", "selected"),
)


def draw_curves(state: StudyState, selected: int | None, columns: int, rows: int, *, has_tints: bool = True) -> Frame:
    """Draw all curves with their axes, and a legend in the first row."""
    groups = _groups(state, selected)
    others = [number for style in _OTHERS for number in groups[style]]
    numbers = [number for members in groups.values() for number in members]
    values = np.concatenate([np.empty(0), *(state.curves[number].values for number in numbers)])
    last = max((float(state.curves[number].epochs[-1]) for number in numbers), default=1.0)
    y = value_axis(*value_range(values, maximize=state.monitor.maximize), rows=max(rows - 3, 0))
    view = ChartView(columns, rows, WholeAxis(0.0, max(last, 2.0)), y)
    layout = background_layout(view)
    frame = layout.frame.copy()
    if layout.plot:
        area = frame.part(*layout.plot)
        if len(others) >= LEAST_BAND:
            groups |= {style: [] for style in _OTHERS}
            for part in band_series([state.curves[number] for number in others]):
                draw_part(area, part, view.x, view.y, has_tints=has_tints)
        for style, members in groups.items():
            across, up = _joined(state, members)
            height, width = area.characters.shape
            paint(area, dots.polyline(view.x.fraction(across), view.y.fraction(up), width, height), style)
        _write_ends(area, view, state, [*groups["primary"], *groups["secondary"]])
    _write_header(frame, state, groups, len(others) if len(others) >= LEAST_BAND else 0)
    return frame


def curves_plot(state: StudyState, selected: int | None) -> Plot:
    """All curves as a plot, for a file."""
    groups = _groups(state, selected)
    others = [number for style in _OTHERS for number in groups[style]]
    series = []
    if len(others) >= LEAST_BAND:
        groups |= {style: [] for style in _OTHERS}
        series += band_series([state.curves[number] for number in others])
    for style, word in _GROUPS:
        if members := groups[style]:
            name = f"{word} {len(members) if len(members) > 1 else members[0]}"
            series.append(PlotSeries(*_joined(state, members), "line", _INKS[style], name))
    values = np.concatenate([np.empty(0), *(each.values for each in state.curves.values())])
    y = value_axis(*value_range(values, maximize=state.monitor.maximize))
    return Plot(f"{objective_name(state.monitor.name)} by epoch", tuple(series), y=y, x_name="epoch")


def _groups(state: StudyState, selected: int | None) -> dict[str, list[int]]:
    """Trials with a curve, by the style that they are drawn in, the last on top."""
    groups: dict[str, list[int]] = {style: [] for style, _ in _GROUPS}
    pruned = [number for number, trial in state.trials.items() if trial.state is TrialState.PRUNED]
    latest = set(sorted(pruned, key=lambda number: state.trials[number].ended or 0.0)[-FADING:])
    best = state.best.number if state.best else None
    for number, trial in state.trials.items():
        if number not in state.curves:
            continue
        if number == selected:
            style = "secondary"
        elif number == best:
            style = "success"
        elif trial.state is TrialState.RUNNING:
            style = "primary"
        elif trial.state is TrialState.FINISHED or trial.state is TrialState.STOPPED:
            style = "primary-band"
        else:
            style = "axis" if number in latest else "grid"
        groups[style].append(number)
    return groups


def _joined(state: StudyState, numbers: Iterable[int]) -> tuple[Floats, Floats]:
    """All curves one after the other, with gaps in between."""
    gap, across, up = np.array([math.nan]), [np.empty(0)], [np.empty(0)]
    for number in numbers:
        curve = state.curves[number]
        across += [curve.epochs, gap]
        up += [curve.values, gap]
    return np.concatenate(across), np.concatenate(up)


def _write_ends(area: Frame, view: ChartView, state: StudyState, numbers: Iterable[int]) -> None:
    """Mark the latest value of the trials that train, and of the selected one, with its number."""
    height, width = area.characters.shape
    for number in numbers:
        curve = state.curves[number]
        across = float(view.x.fraction(curve.epochs[-1:])[0])
        up = view.y.fraction(curve.values[-1:])
        if not -raster.EDGE <= float(up[0]) <= 1 + raster.EDGE:
            continue
        x, y = min(int(across * width), width - 1), int(raster.dot_rows(up, height)[0]) // 4
        style = "secondary" if state.trials[number].state is not TrialState.RUNNING else "primary"
        text = f"●{number}"
        write_cells(area, min(x, width - len(text)), y, text, style)


def _write_header(frame: Frame, state: StudyState, groups: dict[str, list[int]], banded: int) -> None:
    name = state.monitor.name
    title = f"{objective_name(name)} by epoch"
    frame.write(0, 0, title, "title")
    x, columns = len(title) + 2, frame.characters.shape[1]
    for style, word in reversed(_GROUPS):
        members = groups[style]
        if not members:
            continue
        count = f" {len(members)}" if len(members) > 1 else f" {members[0]}"
        if style in ("success", "secondary"):
            count += f" {objective_text(name, state.value(state.trials[members[0]]))}"
        if x + 4 + len(word) + len(count) > columns:
            break
        write_cells(frame, x, 0, "━━ ", style)
        write_cells(frame, x + 3, 0, word + count, "label")
        x += 5 + len(word) + len(count)
    text = f"{QUANTILES[-1] - QUANTILES[0]:.0f}% of {banded} others"
    if banded and x + 3 + len(text) <= columns:
        write_cells(frame, x, 0, BAND_SIGN, "primary-band")
        write_cells(frame, x + 3, 0, text, "label")
    frame.styles[0][frame.characters[0] == ord(" ")] = STUDY_STYLE_ID["label"]
