"""Charts as shapes, and the files of them."""

import io
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from accel_engine.errors import RunError, UsageError
from accel_tui.appearance.theme import ANSI, DARK, THEMES
from accel_tui.run_state.curve import RecordedCurve
from accel_tui.run_state.marks import MarkKind, Track
from accel_tui.widgets.chart.axes import Axis, LogAxis
from accel_tui.widgets.chart.chart_view import ChartSeries, ChartView
from accel_tui.widgets.chart.figure import Area, ChartFigure, FigureLine, Label, figure_of, figure_of_plot
from accel_tui.widgets.chart.figure_files import inks, png_of, svg_of, write_figure, write_new
from accel_tui.widgets.chart.plot import Plot, PlotSeries

STEPS = np.linspace(8.0, 0.5, 100)
VIEW = ChartView(
    80,
    20,
    Axis(0, 100),
    Axis(0, 10),
    (
        ChartSeries("step", RecordedCurve().extend(STEPS), style="loss"),
        ChartSeries("validation", points=((49, 5.0), (99, 1.0)), style="loss-light"),
    ),
    title="▸ loss <b>",
    note="best 1.0000 ★ 100",
    best=(99, 1.0),
    marks={MarkKind.RESUMED: Track((50,), 1, 1)},
)


def lines(figure: ChartFigure, ink: str) -> list[FigureLine]:
    return [each for each in figure.shapes if isinstance(each, FigureLine) and each.ink == ink]


def texts(figure: ChartFigure) -> list[str]:
    return [each.text for each in figure.shapes if isinstance(each, Label)]


def test_a_curve_goes_from_the_first_value_to_the_last() -> None:
    figure = figure_of(VIEW)
    (curve,) = [line for line in lines(figure, "loss") if len(line.points) > 2]
    places = {label.text: label.at[1] for label in figure.shapes if isinstance(label, Label) and label.anchor == "end"}
    top, bottom = places["10"], places["0"]
    heights = [y for _, y in curve.points]
    assert heights == sorted(heights)  # the loss falls, and y grows downwards
    assert (bottom - heights[0] - 4) / (bottom - top) == pytest.approx(0.8, abs=0.01)
    (validation,) = [line for line in lines(figure, "loss-light") if line.width == 2.0]
    assert len(validation.points) == 2
    assert validation.points[1][0] > validation.points[0][0]


def test_it_has_title_values_best_and_labels() -> None:
    figure = figure_of(VIEW)
    assert figure.title == "loss <b>"
    assert {"loss <b>", "step 0.5000", "validation 1.0000", "best 1.0000 at step 100", "step", "0", "10"} <= {
        *texts(figure)
    }
    assert len(lines(figure, "warning")) == 1  # where it was continued
    assert [len(area.points) for area in stars(figure)] == [10]


def stars(figure: ChartFigure) -> list[Area]:
    return [each for each in figure.shapes if isinstance(each, Area) and each.ink == "warning"]


def test_a_best_value_outside_of_what_is_shown_has_no_star() -> None:
    assert len(stars(figure_of(replace(VIEW, x=Axis(90, 100))))) == 1
    assert not stars(figure_of(replace(VIEW, x=Axis(0, 50))))
    assert not stars(figure_of(replace(VIEW, best=(9, 1.0), x=Axis(50, 100))))


def test_a_logarithmic_axis_has_powers_of_ten_at_equal_distances() -> None:
    figure = figure_of(replace(VIEW, y=LogAxis(0.01, 10)))
    places = {label.text: label.at[1] for label in figure.shapes if isinstance(label, Label) and label.anchor == "end"}
    assert places["0.1"] - places["1"] == pytest.approx(places["1"] - places["10"])
    assert any("log" in text for text in texts(figure))


def test_gaps_part_a_curve_and_values_beyond_the_axis_are_told() -> None:
    values = STEPS.copy()
    values[40:60] = np.nan
    series = ChartSeries("step", RecordedCurve().extend(values), style="loss")
    figure = figure_of(replace(VIEW, series=(series,), y=Axis(0, 4)))
    assert len([line for line in lines(figure, "loss") if len(line.points) > 2]) == 2
    assert all(0 <= y <= figure.height for line in lines(figure, "loss") for _, y in line.points)
    assert any("outliers at the edge" in text for text in texts(figure))


def test_an_svg_is_well_formed_and_needs_nothing_else() -> None:
    svg = svg_of(figure_of(VIEW), is_alone=True)
    ElementTree.fromstring(svg)
    assert "loss &lt;b&gt;" in svg
    assert "prefers-color-scheme: dark" in svg
    assert svg.count("http") == 1  # the name of the format


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_a_png_is_in_the_colours_of_the_theme(theme: object) -> None:
    with Image.open(io.BytesIO(png_of(figure_of(VIEW, 300, 150), theme))) as image:  # type: ignore[arg-type]
        assert image.size == (600, 300)
        assert image.convert("RGB").getpixel((0, 0)) == tuple(bytes.fromhex(inks(theme)["background"][1:]))  # type: ignore[arg-type]
    assert inks(ANSI) == inks(DARK)


def test_files_are_new_and_problems_are_told(tmp_path: Path) -> None:
    figure = figure_of(VIEW)
    names = [[path.name for path in write_new(figure, tmp_path, "run-loss", DARK)] for _ in range(2)]
    assert names == [["run-loss.svg", "run-loss.png"], ["run-loss-2.svg", "run-loss-2.png"]]
    with pytest.raises(UsageError, match=r"a\.gif is neither \.svg nor \.png"):
        write_figure(figure, tmp_path / "a.gif", DARK)
    with pytest.raises(RunError, match="cannot write"):
        write_figure(figure, tmp_path / "none" / "a.svg", DARK)


def test_plots_have_each_kind_of_series() -> None:
    at = np.linspace(0.0, 1.0, 5)
    series = (
        PlotSeries(at, np.array([1.0, 2.0, 0.0, 4.0]), "bars", "primary", "count"),
        PlotSeries(at, np.array([at, at + 1]), "band", "loss"),
        PlotSeries(at, np.array([0.0, 1.0, np.nan, 3.0, 4.0]), "line", "metric", "curve"),
        PlotSeries(np.array([0.5, 7.0]), np.array([2.0, 2.0]), "mark", "error"),
        PlotSeries(np.array([0.25]), np.empty(0), "rule", "axis"),
    )
    figure = figure_of_plot(Plot("ROC", series, "AUC 0.9", Axis(0, 1), x_name="false", y_name="true"))
    areas = [each for each in figure.shapes if isinstance(each, Area)]
    assert [len([area for area in areas if area.ink == ink]) for ink in ("primary", "loss", "error")] == [3, 1, 1]
    assert [len(line.points) for line in lines(figure, "metric") if line.width < 3] == [2, 2]
    assert [line.is_dashed for line in lines(figure, "text-muted") if line.is_dashed] == [True]
    assert {"ROC", "count", "curve", "AUC 0.9, true over false", "false"} <= {*texts(figure)}
    assert figure.shapes.index(areas[0]) < figure.shapes.index(lines(figure, "metric")[0])  # behind
    ElementTree.fromstring(svg_of(figure, is_alone=True))
