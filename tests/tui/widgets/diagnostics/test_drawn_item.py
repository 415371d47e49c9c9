"""Drawings of what a script logged, for every size and every range of numbers."""

import numpy as np
import pytest
from rich.style import Style

from accel_engine.run.media import Histogram, LoggedImage, LoggedText, MediaItem, MediaSeries, histogram_of, image_of
from accel_tui.run_state.diagnostics import ChosenItem
from accel_tui.widgets.diagnostics.pixels import DrawnItem, Surface, draw_item

SIZES = ((136, 43), (40, 19), (12, 5), (3, 2), (1, 1))


def draw(item: MediaItem, columns: int, lines: int, *, blocks: bool = True) -> DrawnItem:
    logged = ChosenItem(MediaSeries("image", "a", 1, 0, 0, 1), (0,), 0, item)
    return draw_item(logged, Surface(columns, lines, blocks, True, (0, 0, 0), Style()))


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 5000, 3), (5000, 1, 1), (7, 3, 1), (600, 800, 3)])
@pytest.mark.parametrize("blocks", [True, False])
def test_any_image_fits(shape: tuple[int, int, int], size: tuple[int, int], *, blocks: bool) -> None:
    strips = draw(LoggedImage(np.zeros(shape, np.uint8)), *size, blocks=blocks).strips
    assert 1 <= len(strips) <= size[1]
    assert all(1 <= strip.cell_length <= size[0] for strip in strips)


def colours(drawn: DrawnItem) -> list[list[tuple[int, int, int]]]:
    """Rows of pixels."""
    return [
        [tuple(getattr(segment.style, side).triplet) for segment in strip]
        for strip in drawn.strips
        for side in ("color", "bgcolor")
    ]


def test_large_images_are_means() -> None:
    pixels = np.repeat(np.repeat(np.array([[0, 100], [200, 40]], np.uint8), 50, axis=0), 50, axis=1)
    pixels[::2] += 10
    drawn = draw(image_of(pixels), 2, 1)
    assert colours(drawn) == [[(5,) * 3, (105,) * 3], [(205,) * 3, (45,) * 3]]


def test_pixels_of_small_images_are_of_one_size() -> None:
    drawn = draw(image_of(np.array([[0, 100, 200], [1, 101, 201]], np.uint8)), 8, 40)
    assert [row[::2] for row in colours(drawn)] == [[(value,) * 3 for value in row] for row in 2 * [[0, 100, 200]]] + [
        [(value,) * 3 for value in row] for row in 2 * [[1, 101, 201]]
    ]


@pytest.mark.parametrize(
    ("values", "is_drawn"),
    [
        ([0.1, 0.2], True),
        ([3.0, 3.0], True),
        ([1e299, -1e299], True),
        ([-1e-10, 1e10], True),
        ([1e9, 1e9 + 2], True),
        ([1e308, -1e308], False),
        ([1.0, 1 + 2**-52], False),
        ([0.0, 5e-324], False),
        ([np.nan], False),
    ],
)
def test_a_histogram_of_any_numbers_is_drawn_or_left_out(values: list[float], is_drawn: bool) -> None:
    for size in SIZES:
        assert (draw(histogram_of(values), *size).frame is not None) is is_drawn


@pytest.mark.parametrize(
    ("edges", "counts", "is_drawn"),
    [
        ([0, 0, 1], [3, 4], True),
        ([0, 1], [0], True),
        ([-5, -5, 5, 5], [1, 2, 3], True),
        ([0, 0], [5], False),
        ([0, 1], [5e-324], False),
        ([0, 1], [1e301], False),
    ],
)
def test_histograms_of_other_programs_are_drawn_or_left_out(
    edges: list[float], counts: list[float], is_drawn: bool
) -> None:
    histogram = Histogram(np.array(edges, np.float64), np.array(counts, np.float64))
    for size in SIZES:
        assert (draw(histogram, *size).frame is not None) is is_drawn


def test_texts_become_printable() -> None:
    assert draw(LoggedText("a\x1b[2J\nb", "cut"), 9, 9).logged.item == LoggedText("a\\x1b[2J\nb", "cut")
