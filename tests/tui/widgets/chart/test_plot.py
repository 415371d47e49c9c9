import re
from dataclasses import replace

import numpy as np
import pytest

from accel_tui.widgets.chart import dots, raster
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.cell_frame import STYLES
from accel_tui.widgets.chart.plot import Plot, PlotSeries, draw_plot

SHARE = Axis(0.0, 1.0)


def text(patterns: raster.Patterns) -> list[str]:
    return ["".join(chr(raster.BLANK + pattern) if pattern else " " for pattern in row) for row in patterns.tolist()]


def lines(plot: Plot, columns: int = 40, rows: int = 12) -> list[str]:
    frame = draw_plot(plot, columns, rows)
    return [frame.text(row).rstrip() for row in range(rows)]


def test_points_are_dots_and_those_outside_are_left_out() -> None:
    found = dots.scatter(np.array([0.0, 1.0, 0.5, 2.0, np.nan]), np.array([1.0, 0.0, np.nan, 0.5, 0.5]), 4, 2)
    assert text(found) == ["⠂   ", "   ⠐"]


def test_a_line_goes_in_any_direction_without_holes() -> None:
    assert text(dots.polyline(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 4, 3)) == ["  ⢀⡴", "⢀⡰⠃ ", "⠋   "]
    down_and_back = dots.polyline(np.array([1.0, 0.0, 0.0]), np.array([1.0, 1.0, 0.0]), 2, 1)
    assert text(down_and_back) == ["⡏⠉"]


def test_a_line_has_gaps_where_a_number_is_missing() -> None:
    x = np.linspace(0, 1, 5)
    found = dots.polyline(x, np.array([0.5, 0.5, np.nan, 0.5, 0.5]), 8, 1)
    assert text(found)[0].count(" ") >= 3
    assert text(dots.polyline(np.array([]), np.array([]), 3, 1)) == ["   "]


def test_a_far_point_does_not_take_long() -> None:
    found = dots.polyline(np.array([0.0, 1e12]), np.array([0.5, 0.5]), 4, 1)
    assert text(found) == ["⠤⠤⠤⠤"]


def test_a_plot_has_a_header_axes_and_marks() -> None:
    series = (
        PlotSeries(np.array([0.0, 1.0]), np.array([0.0, 1.0]), style="axis"),
        PlotSeries(np.array([0.5]), np.array([0.5]), "mark", "warning", "here"),
    )
    found = lines(Plot("ROC", series, "AUC 0.9", SHARE, SHARE, "x", "y"))
    assert found[0] == "ROC  AUC 0.9  ● here  y over x"
    assert sum("●" in line for line in found) == 2
    assert found[1].startswith("   1 ┤")
    assert found[-1].split() == ["0", "0.5", "1"]
    assert lines(Plot("ROC", series, "AUC 0.9", SHARE, SHARE, "x", "y"), columns=12)[0] == "ROC  AUC 0.9"


def test_bars_stand_on_zero_and_those_behind_are_seen() -> None:
    edges = np.linspace(0, 4, 5)
    plot = Plot(
        "Bars",
        (
            PlotSeries(edges, np.array([4.0, 4.0, 0.0, 0.0]), "bars", "warning"),
            PlotSeries(edges, np.array([0.0, 2.0, 0.0, 1.0]), "bars", "primary"),
        ),
    )
    for has_tints in (True, False):
        frame = draw_plot(replace(plot, has_tints=has_tints), 46, 11)
        area, styles = frame.characters[1:9, 6:], frame.styles[1:9, 6:]
        drawn = np.isin(area, np.frombuffer("▁▂▃▄▅▆▇█▒".encode("utf-32-le"), np.uint32))
        assert drawn[:, :19].all()
        assert not drawn[:, 22:28].any()
        assert drawn[6:, 32:39].all()
        assert not drawn[:5, 32:39].any()
        assert [STYLES[each] for each in styles[[1, 7], 15]] == ["warning", "primary"], "the lower one is in front"
        assert chr(area[2, 5]) == ("█" if has_tints else "▒"), "told apart by shades where there are no colours"
        assert chr(area[7, 15]) == "█"


def test_the_bars_of_one_series_are_solid_up_to_their_values() -> None:
    plot = Plot(
        "Bars", (PlotSeries(np.linspace(0, 4, 5), np.array([8.0, 4.0, 0.0, 1.0]), "bars", "warning"),), y=Axis(0, 8)
    )
    frame = draw_plot(plot, 46, 11)
    columns = ["".join(map(chr, frame.characters[1:10, x])) for x in (10, 20, 30, 40)]
    top = raster.dot_rows(np.array([0.5]), 9)[0]
    assert columns[0][:8] == "▆███████"
    assert columns[1][:8].strip(" ┈") == "▂▄▆█"[(-top % 4) - 1] + "█" * (7 - top // 4)
    assert "█" not in columns[2]
    assert columns[3][7] in "▁▂▃▄▅▆▇█"
    assert [column[8] for column in columns] == ["▀", "▀", "─", "▀"], "bars stand on the axis"


@pytest.mark.parametrize("size", [(1, 1), (5, 3), (13, 4), (200, 60)], ids=str)
@pytest.mark.parametrize("values", [[], [np.nan], [3.0], [1.0, 1.0], [-np.inf, 1.0], [1e-30, 1e30]], ids=str)
def test_a_plot_is_drawn_of_any_numbers_in_any_size(values: list[float], size: tuple[int, int]) -> None:
    x = np.arange(len(values), dtype=np.float64)
    y = np.array(values)
    for kind in ("line", "dots", "mark"):
        draw_plot(Plot("any", (PlotSeries(x, y, kind),)), *size)
    draw_plot(Plot("any", (PlotSeries(np.arange(len(values) + 1.0), y, "bars"),)), *size)


@pytest.mark.parametrize(("heights", "tick"), [((2.0, 1.0), False), ((0.2, 1.5), True)])
def test_bars_of_counts_have_whole_ticks(heights: tuple[float, ...], tick: bool) -> None:
    plot = Plot("Errors", (PlotSeries(np.arange(3.0), np.array(heights), "bars"),))
    assert any(line.lstrip().startswith(("0.5", "1.5")) for line in lines(plot, rows=14)) is tick


def test_without_colours_bars_are_told_apart_by_shades_also_low_ones_and_in_the_legend() -> None:
    edges = np.arange(3.0)
    wrong = PlotSeries(edges, np.array([1.0, 0.0]), "bars", name="wrong")
    right = PlotSeries(edges, np.array([0.0, 100.0]), "bars", name="right")
    found = lines(Plot("Scores", (wrong, right), has_tints=False))
    assert found[0].startswith("Scores  ▒ wrong  ▇ right")
    assert re.search("└┬▒+┬▀+┬", found[-2])


def test_bands_within_each_other_have_signs_of_other_strengths_in_the_legend() -> None:
    at = np.arange(2.0)
    wide = PlotSeries(at, np.array([[0.0, 0.0], [1.0, 1.0]]), "band", name="10-90%")
    narrow = PlotSeries(at, np.array([[0.4, 0.4], [0.6, 0.6]]), "band", name="25-75%", covers=True)
    frame = draw_plot(Plot("val acc", (wide, narrow)), 46, 11)
    header = frame.text(0)
    signs = [match.start() for match in re.finditer("▒▒", header)]
    assert [STYLES[frame.styles[0, at]] for at in signs] == ["primary-band", "primary"]
