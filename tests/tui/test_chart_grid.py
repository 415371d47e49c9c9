"""How many charts there is room for, and where they go."""

import pytest
from textual.geometry import Size

from accel_tui.widgets.chart_panels.chart_grid import COMFORTABLE, MIN_SIZE, chart_regions, max_charts

AREAS = [Size(78, 15), Size(74, 31), Size(154, 40), Size(254, 69), Size(60, 6), Size(10, 2)]


@pytest.mark.parametrize("area", AREAS)
@pytest.mark.parametrize("count", range(1, 13))
def test_charts_take_all_the_room_and_do_not_overlap(area: Size, count: int) -> None:
    count = min(count, max_charts(area, MIN_SIZE))
    regions = chart_regions(count, area)
    assert len(regions) == count
    assert not any(one.overlaps(other) for one in regions for other in regions if one is not other)
    assert {max(region.right for region in regions), max(region.bottom for region in regions)} == {*area}
    unused = area.area - sum(region.area for region in regions)
    assert unused <= 0.12 * area.area


@pytest.mark.parametrize("area", [area for area in AREAS if area.height >= MIN_SIZE.height])
def test_no_chart_is_too_small_to_be_read(area: Size) -> None:
    for count in range(1, max_charts(area, MIN_SIZE) + 1):
        for region in chart_regions(count, area):
            assert region.height >= MIN_SIZE.height
            assert region.width >= min(MIN_SIZE.width - 2, area.width)


def test_without_charts_there_are_no_places() -> None:
    assert chart_regions(0, Size(80, 20)) == []


@pytest.mark.parametrize(
    ("area", "smallest", "number"),
    [(AREAS[0], MIN_SIZE, 4), (AREAS[0], COMFORTABLE, 1), (AREAS[2], COMFORTABLE, 8), (Size(1, 1), MIN_SIZE, 1)],
)
def test_wider_and_taller_terminals_have_room_for_more(area: Size, smallest: Size, number: int) -> None:
    assert max_charts(area, smallest) == number


def test_a_wide_terminal_has_columns_and_a_narrow_one_has_rows() -> None:
    assert len({region.x for region in chart_regions(6, Size(254, 69))}) >= 2
    assert len({region.x for region in chart_regions(2, Size(78, 15))}) == 1
    wide = chart_regions(5, Size(254, 69))
    assert wide[-1].width > wide[0].width
