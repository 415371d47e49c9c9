"""The views of a search, drawn without an app."""

import math
from dataclasses import replace

import numpy as np
import pytest

from accel_engine.search.definition import Objective, Parameter
from accel_engine.search.study_reader import StudyReader
from accel_engine.search.trial import Trial, TrialState
from accel_tui.appearance.theme import DARK
from accel_tui.study_state.state import StudyState
from accel_tui.study_state.study_follower import read_study
from accel_tui.widgets.chart.axes import LogAxis
from accel_tui.widgets.chart.cell_frame import STYLES, TINT_ID, Frame
from accel_tui.widgets.chart.figure import Area, ChartFigure, Label
from accel_tui.widgets.chart.figure_files import inks as inks_of
from accel_tui.widgets.chart.frame_figure import figure_of_frame
from accel_tui.widgets.search.parallel_drawing import draw_importance
from accel_tui.widgets.search.parameter_axis import ChoiceAxis, axis_of_parameter, positions
from accel_tui.widgets.search.study_styles import STUDY_LOOKS, STUDY_STYLE_ID, STUDY_STYLES, levels_of
from accel_tui.widgets.search.study_view import VIEWS, Importance, ViewInputs, draw_view, views_of
from example_study import DEFINITION, PARAMETERS, write_study

SIZES = [(78, 9), (110, 20), (190, 30), (20, 3)]


@pytest.fixture
def state() -> StudyState:
    with StudyReader(write_study()) as study:
        return read_study(study, StudyState())


def draw(view: str, state: StudyState, size: tuple[int, int] = (110, 20), selected: int = 3, shift: int = 0) -> Frame:
    return draw_view(ViewInputs(view, state, selected, shift, Importance(), *size))


def text_of(frame: Frame) -> str:
    return "\n".join(frame.text(row) for row in range(frame.characters.shape[0]))


def styles_of(frame: Frame) -> set[str]:
    return {STUDY_STYLES[number] for number in np.unique(frame.styles[frame.characters != ord(" ")])}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("size", SIZES)
def test_every_view_fits_its_size_with_many_trials_one_and_none(
    view: str, size: tuple[int, int], state: StudyState
) -> None:
    first = {0: state.trials[0]}
    for each in (state, replace(state, trials=first, curves={0: state.curves[0]}), StudyState(definition=DEFINITION)):
        assert draw(view, each, size).characters.shape == size[::-1]


def test_curves_tell_running_best_and_selected_trials_apart_from_a_band_of_all_others(state: StudyState) -> None:
    frame = draw("curves", state, (190, 30), selected=3)
    seen = styles_of(frame)
    assert {"primary", "success", "secondary"} <= seen
    assert any(each.endswith("on primary-area") for each in seen), "10 to 90 percent"
    assert "axis on primary-range" in seen, "the median"
    assert "80% of 30 others" in frame.text(0)
    assert "val accuracy by epoch" in text_of(frame)
    assert "selected 3" in frame.text(0)
    assert "best 26 0.9935" in frame.text(0)
    assert "●35" in text_of(frame), "the latest value of a trial that trains"


def test_curves_of_few_trials_are_lines(state: StudyState) -> None:
    few = {number: state.trials[number] for number in (3, 26, 33, 32, 30)}
    frame = draw("curves", replace(state, trials=few), (190, 30), selected=3)
    assert {"primary-band", "axis", "success", "secondary"} <= styles_of(frame)
    assert not any(each.endswith(("-area", "-range")) for each in styles_of(frame))


def test_a_band_has_most_values_at_each_epoch(state: StudyState) -> None:
    one, other = state.curves[33], state.curves[31]
    same = {number: replace(state.trials[33], number=number) for number in range(100, 110)}
    curves = {
        number: replace(one if number % 2 else other, values=np.full_like(one.values, 0.5 + number % 2 * 0.2))
        for number in same
    }
    frame = draw("curves", replace(state, trials=same, curves=curves), (110, 20), selected=-1)
    tints = (TINT_ID["primary-area"], TINT_ID["primary-range"])
    rows = np.flatnonzero(np.isin(frame.styles - frame.styles % len(STYLES), tints)[1:].any(axis=1))
    assert len(rows) >= 8, "from the lower value to the higher one"


def test_parallel_coordinates_have_an_axis_per_parameter_on_its_own_scale(state: StudyState) -> None:
    frame = draw("parallel", state, (120, 24))
    shown = text_of(frame)
    assert all(name in frame.text(1) for name in ("learning rate", "batch size", "optimizer", "val accuracy"))
    assert all(label in shown for label in ("1e-4", "0.1", "adamw", "sgd", "256"))
    assert {"level-0", "level-4", "secondary"} <= styles_of(frame)
    narrow = draw("parallel", state, (40, 12))
    assert "more" in text_of(narrow)
    assert draw("parallel", state, (40, 12), shift=1).text(1) != narrow.text(1)


def test_contours_show_the_best_region_and_the_trials(state: StudyState) -> None:
    frame = draw("contour", state, (110, 20))
    assert {"level-4", "level-0"} <= styles_of(frame)
    assert "★" in text_of(frame)
    assert "batch size over learning rate" in frame.text(0)
    assert "optimizer over learning rate" in draw("contour", state, shift=1).text(0)


def test_views_that_a_search_cannot_have_are_absent_and_empty_ones_say_what_they_lack(state: StudyState) -> None:
    one = replace(state, definition=replace(DEFINITION, parameters=PARAMETERS[:1]))
    assert views_of(one) == ("curves", "best", "parallel", "importance", "slices")
    two = (*DEFINITION.objectives, Objective("time", maximize=False))
    both = replace(state, definition=replace(DEFINITION, objectives=two))
    assert views_of(both) == tuple(VIEWS)
    few = replace(both, trials={}, curves={})
    assert "a contour needs 4 trials with a value; there are 0" in text_of(draw("contour", few))
    assert "no trial has a value of val accuracy yet" in text_of(draw("slices", few))
    assert "no trial has values of two objectives yet" in text_of(draw("front", few))


def test_a_front_is_marked(state: StudyState) -> None:
    objectives = (Objective("validation_accuracy", maximize=True), Objective("time", maximize=False))
    assert state.definition
    several = replace(state, definition=replace(state.definition, objectives=objectives))
    shown = text_of(draw("front", several))
    assert "val accuracy over time" in shown
    assert "front" in shown
    assert "several objectives" in text_of(draw("front", state))


def test_importance_is_bars_or_the_reason() -> None:
    frame = draw_importance({"learning_rate": 0.75, "batch_size": 0.25}, "", "Importance", 60, 10)
    rows = [frame.text(row) for row in range(10)]
    assert [row.count("━") for row in rows if "━" in row] == [39, 13]
    assert "75%" in rows[3]
    assert "needs Optuna" in text_of(draw_importance({}, "importance needs Optuna", "Importance", 60, 10))


def test_axes_of_parameters() -> None:
    rate, batch, _, _ = PARAMETERS
    assert isinstance(axis_of_parameter(rate), LogAxis)
    axis = axis_of_parameter(batch)
    assert isinstance(axis, ChoiceAxis)
    assert axis.labels(axis.ticks(9)) == ["32", "64", "128", "256"]
    earlier = Trial(0, "", TrialState.FINISHED, {"learning_rate": 0.5, "batch_size": 512})
    assert axis_of_parameter(rate, [earlier]).high == 0.5, "a value of another machine's range"
    assert positions(batch, [earlier]).tolist() == [4.0]
    assert math.isnan(positions(Parameter("momentum", low=0.1, high=0.9), [earlier])[0])


def test_levels_are_ranks() -> None:
    values = np.array([1.0, math.nan, 5.0, 3.0, 2.0, 4.0])
    assert levels_of(values, maximize=True).tolist() == [0, -1, 4, 2, 1, 3]
    assert levels_of(values, maximize=False).tolist() == [4, -1, 0, 2, 3, 1]
    assert STUDY_STYLE_ID["level-4"] == STUDY_STYLE_ID["level-0"] + 4


@pytest.mark.parametrize("view", ["parallel", "contour", "importance"])
def test_a_picture_of_cells_becomes_shapes_in_their_places(view: str, state: StudyState) -> None:
    shares = Importance(1, {"learning_rate": 0.75, "batch_size": 0.25})
    frame = draw_view(ViewInputs(view, state, None, 0, shares, 100, 20))
    figure = figure_of_frame(view, frame, STUDY_STYLES, STUDY_LOOKS)
    texts = [shape for shape in figure.shapes if isinstance(shape, Label)]
    for each in texts:
        row, column = int(each.at[1] // 16), int(each.at[0] // 8)
        assert frame.text(row)[column:].startswith(each.text)
    inks = {shape.ink for shape in figure.shapes if isinstance(shape, Area)}
    assert {"parallel": "heat-4", "contour": "heat-4", "importance": "success"}[view] in inks
    assert inks <= inks_of(DARK).keys()
    assert all(0 <= x <= figure.width and 0 <= y <= figure.height for x, y in _corners(figure))
    if view == "importance":
        longest, shorter = sorted((_width(shape) for shape in figure.shapes if isinstance(shape, Area)), reverse=True)
        assert shorter == pytest.approx(longest / 3, abs=8)


def _corners(figure: ChartFigure) -> list[tuple[float, float]]:
    return [corner for shape in figure.shapes if isinstance(shape, Area) for corner in shape.points]


def _width(area: Area) -> float:
    return max(x for x, _ in area.points) - min(x for x, _ in area.points)
