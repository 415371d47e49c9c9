"""How many charts there is room for, and where they go."""

import pytest
from textual.geometry import Size

from accel_tui.widgets.charts.chart_grid import EASY, SMALLEST, places, room

AREAS = [Size(78, 15), Size(74, 31), Size(154, 40), Size(254, 69), Size(60, 6), Size(10, 2)]


@pytest.mark.parametrize("area", AREAS)
@pytest.mark.parametrize("count", range(1, 13))
def test_charts_take_all_the_room_and_do_not_overlap(area: Size, count: int) -> None:
    count = min(count, room(area, SMALLEST))
    regions = places(count, area)
    assert len(regions) == count
    assert not any(one.overlaps(other) for one in regions for other in regions if one is not other)
    assert {max(region.right for region in regions), max(region.bottom for region in regions)} == {*area}
    unused = area.area - sum(region.area for region in regions)
    assert unused <= 0.12 * area.area


@pytest.mark.parametrize("area", [area for area in AREAS if area.height >= SMALLEST.height])
def test_no_chart_is_too_small_to_be_read(area: Size) -> None:
    for count in range(1, room(area, SMALLEST) + 1):
        for region in places(count, area):
            assert region.height >= SMALLEST.height
            assert region.width >= min(SMALLEST.width - 2, area.width)


def test_without_charts_there_are_no_places() -> None:
    assert places(0, Size(80, 20)) == []


@pytest.mark.parametrize(
    ("area", "smallest", "number"),
    [(AREAS[0], SMALLEST, 4), (AREAS[0], EASY, 1), (AREAS[2], EASY, 8), (Size(1, 1), SMALLEST, 1)],
)
def test_wider_and_taller_terminals_have_room_for_more(area: Size, smallest: Size, number: int) -> None:
    assert room(area, smallest) == number


def test_a_wide_terminal_has_columns_and_a_narrow_one_has_rows() -> None:
    assert len({region.x for region in places(6, Size(254, 69))}) >= 2
    assert len({region.x for region in places(2, Size(78, 15))}) == 1
    wide = places(5, Size(254, 69))
    assert wide[-1].width > wide[0].width
