"""The plots of a search: its best value so far, each parameter against the objective, and the front."""

import itertools
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from accel_engine.search.results import is_counted
from accel_engine.search.trial import Trial
from accel_engine.words import numbers
from accel_tui.plan import field_labels
from accel_tui.study_state.state import Floats, StudyState, value_range
from accel_tui.study_state.study_texts import objective_name, objective_text
from accel_tui.widgets.chart.axes import WholeAxis
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.plot import Plot, PlotSeries, draw_plot
from accel_tui.widgets.chart.plot_grid import GAP, grid_for
from accel_tui.widgets.chart.value_axis import value_axis
from accel_tui.widgets.search.parameter_axis import axis_of_parameter, positions

MARKS = 60
"""Most trials that are drawn as large marks; more are dots."""

_ROWS = 6  # rows between labels of a plot that is as small as one can be
_SMALLEST = (34, 9)


def best_plots(state: StudyState, selected: int | None) -> list[Plot]:
    """The best monitor so far by trial, and by time, with all trials as points."""
    monitor = state.monitor
    counted = [trial for trial in state.trials.values() if is_counted(trial, monitor.name)]
    if not counted:
        return []
    by_number = _best_so_far(state, counted, np.array([float(trial.number) for trial in counted]), selected)
    ended = sorted((trial for trial in counted if trial.ended), key=lambda trial: trial.ended or 0.0)
    name = objective_name(monitor.name)
    best = state.best
    note = objective_text(monitor.name, best.objectives[monitor.name]) if best else ""
    last = float(max(trial.number for trial in counted))
    found = [Plot(f"Best {name} by trial", by_number, note, x=WholeAxis(0.0, max(last, 1.0)), x_name="trial")]
    if ended:
        start = min(trial.started for trial in ended)
        seconds = np.array([(trial.ended or 0.0) - start for trial in ended])
        size, unit = next(each for each in numbers.LENGTHS if each[0] == 1.0 or seconds.max() >= 3 * each[0])
        found.append(
            Plot(f"Best {name} by time", _best_so_far(state, ended, seconds / size, selected), x_name=f"in {unit}")
        )
    return found


def _best_so_far(
    state: StudyState, trials: Sequence[Trial], at: Floats, selected: int | None
) -> tuple[PlotSeries, ...]:
    values = np.array([trial.objectives[state.monitor.name] for trial in trials])
    best = np.maximum.accumulate(values) if state.monitor.maximize else np.minimum.accumulate(values)
    stairs = np.repeat(at, 2)[1:], np.repeat(best, 2)[:-1]
    points = PlotSeries(at, values, _kind(len(trials)), "axis")
    return (
        points,
        PlotSeries(*stairs, "line", "success", "best so far"),
        *_selected(trials, at, values, selected),
    )


def slice_plots(state: StudyState, first: int, selected: int | None) -> list[Plot]:
    """A plot of each parameter against the monitor, beginning with the parameter of an index."""
    monitor = state.monitor
    trials = [trial for trial in state.trials.values() if math.isfinite(state.value(trial))]
    if not trials:
        return []
    values = np.array([state.value(trial) for trial in trials])
    is_final = np.array([is_counted(trial, monitor.name) for trial in trials])
    low, high = value_range(values, maximize=monitor.maximize)
    hidden = int(((values < low) | (values > high)).sum())
    note = f"{hidden} hidden" if hidden else ""
    found = []
    for parameter in (*state.parameters[first:], *state.parameters[:first]):
        at = positions(parameter, trials)
        series = (
            PlotSeries(at[~is_final], values[~is_final], "dots", "axis", "unfinished" if (~is_final).any() else ""),
            PlotSeries(at[is_final], values[is_final], _kind(int(is_final.sum())), "primary"),
            *_best(state, trials, at, values),
            *_selected(trials, at, values, selected),
        )
        axis = axis_of_parameter(parameter, trials)
        y = value_axis(low, high, rows=_ROWS)
        found.append(Plot(field_labels.label(parameter.name), series, note, x=axis, y=y))
    return found


def front_plots(state: StudyState, selected: int | None) -> list[Plot]:
    """A plot of each pair of objectives, with the trials of the front joined."""
    found = []
    for up, across in itertools.combinations(state.objectives, 2):
        trials = [trial for trial in state.trials.values() if is_counted(trial, up.name, across.name)]
        if not trials:
            continue
        x = np.array([trial.objectives[across.name] for trial in trials])
        y = np.array([trial.objectives[up.name] for trial in trials])
        front = np.array([trial.number in state.front for trial in trials])
        order = np.argsort(x[front])
        fx, fy = x[front][order], y[front][order]
        series = (
            PlotSeries(x[~front], y[~front], _kind(len(trials)), "axis", "others"),
            PlotSeries(fx, fy, "line", "success"),
            PlotSeries(fx, fy, "mark", "success", "front"),
            *_selected(trials, x, y, selected),
        )
        title = f"{objective_name(up.name)} over {objective_name(across.name)}"
        note = f"{'higher' if up.maximize else 'lower'} and {'right' if across.maximize else 'left'} is better"
        found.append(Plot(title, series, note))
    return found


def _kind(count: int) -> Literal["mark", "dots"]:
    return "mark" if count <= MARKS else "dots"


def _best(state: StudyState, trials: Sequence[Trial], at: Floats, values: Floats) -> tuple[PlotSeries, ...]:
    chosen = np.array([state.best is not None and trial.number == state.best.number for trial in trials])
    return (PlotSeries(at[chosen], values[chosen], "mark", "success", "best"),) if chosen.any() else ()


def _selected(trials: Sequence[Trial], at: Floats, values: Floats, selected: int | None) -> tuple[PlotSeries, ...]:
    chosen = np.array([trial.number == selected for trial in trials])
    return (PlotSeries(at[chosen], values[chosen], "mark", "secondary", f"trial {selected}"),) if chosen.any() else ()


def draw_grid(plots: Sequence[Plot], columns: int, rows: int, empty: str) -> Frame:
    """Draw as many plots as fit, in columns and rows."""
    frame = Frame.blank(columns, rows)
    if not plots:
        frame.write(max(0, (columns - len(empty)) // 2), rows // 2, empty, "note")
        return frame
    across, down = grid_for(len(plots), columns, rows, _SMALLEST)
    width, height = (columns - GAP * (across - 1)) // across, rows // down
    for index, plot in enumerate(plots[: across * down]):
        drawn = draw_plot(plot, width, height)
        place = frame.part(index % across * (width + GAP), index // across * height, width, height)
        place.characters[:], place.styles[:] = drawn.characters, drawn.styles
    if len(plots) > across * down:
        note = f"← → {len(plots) - across * down} more"
        frame.write(columns - len(note), 0, note, "note")
    return frame
