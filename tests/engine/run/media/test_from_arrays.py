"""What becomes of arrays, pictures and figures that a script logs."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from PIL import Image as Picture

from accel_engine.run.media import histogram_of, image_of


@pytest.mark.parametrize(
    ("array", "levels"),
    [
        (np.array([[0, 7, 255]], np.uint8), [0, 7, 255]),
        (np.array([[0, 7, 255]], np.int64), [0, 7, 255]),
        (np.array([[False, True]]), [0, 255]),
        (np.array([[0.0, 0.5, 1.0]], np.float32), [0, 128, 255]),
        (np.array([[0.0, 1.0]], np.float16), [0, 255]),
        (np.array([[0.0, 1.0]], ml_dtypes.bfloat16), [0, 255]),
        (np.array([[-1e-6, 1.000001]]), [0, 255]),
        ([[0, 9]], [0, 9]),
    ],
)
def test_values_become_levels_from_0_to_255(array: Any, levels: list[int]) -> None:
    image = image_of(array)
    assert image.pixels.shape == (1, len(levels), 1)
    assert image.pixels.ravel().tolist() == levels
    assert image.note == ""


@pytest.mark.parametrize("channels", [1, 3])
def test_channels_are_kept(channels: int) -> None:
    pixels = np.arange(4 * 5 * channels, dtype=np.uint8).reshape(4, 5, channels)
    np.testing.assert_array_equal(image_of(pixels).pixels, pixels)


def test_transparent_pixels_are_drawn_on_white_and_the_note_says_so() -> None:
    image = image_of(np.array([[[10, 20, 30, 255], [10, 20, 30, 0]]], np.uint8))
    assert image.pixels.tolist() == [[[10, 20, 30], [255, 255, 255]]]
    assert image.note == "drawn on white"
    assert image_of(np.full((2, 2, 4), 255, np.uint8)).note == ""


def test_a_batch_is_a_grid() -> None:
    batch = np.arange(5, dtype=np.uint8)[:, None, None, None] + np.zeros((5, 2, 3, 1), np.uint8)
    image = image_of(batch)
    assert image.pixels.shape == (2 * 2 + 1, 3 * 3 + 2, 1)
    assert image.pixels[0, :, 0].tolist() == [0, 0, 0, 128, 1, 1, 1, 128, 2, 2, 2]
    assert image.pixels[3, :, 0].tolist() == [3, 3, 3, 128, 4, 4, 4, *[128] * 4]
    assert image.note == "5 pictures, 3 per row"


def test_pictures_that_are_cut_are_mentioned() -> None:
    image = image_of(np.zeros((100, 2, 2, 3)))
    assert image.pixels.shape == (8 * 3 - 1, 8 * 3 - 1, 3)
    assert image.note == "first 64 of 100 pictures, 8 per row"
    assert image_of(np.zeros((1, 2, 2, 3))).note == ""


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(5), r"has the shape \[height, width\].* not \[5\]"),
        (np.zeros((0, 5)), r"this array of the shape \[0, 5\] has no element"),
        (np.zeros(0), r"this array of the shape \[0\] has no element"),
        (np.zeros((2, 3, 5)), r"not \[2, 3, 5\]; for a batch without channels, images\[..., None\]$"),
        (
            np.zeros((3, 16, 16)),
            r"\[3, 16, 16\]; if the channels come first, image.permute\(1, 2, 0\) or np.moveaxis\(image, 0, -1\); for",
        ),
        (np.zeros((9, 3, 16, 16)), r"image.permute\(0, 2, 3, 1\) or np.moveaxis\(image, 1, -1\)$"),
        (np.zeros((2, 2, 2, 2)), r"not \[2, 2, 2, 2\]$"),
        (np.full((2, 2), 255.0), "floats from 0 to 1: scale or clip them; these are from 255 to 255"),
        (np.full((2, 2), -0.5), "these are from -0.5 to -0.5"),
        (np.full((2, 2), 256), "integers from 0 to 255: scale them; these are from 256 to 256"),
        (np.full((2, 2), np.nan), "some are NaN or infinite"),
        (np.full((2, 2), np.inf), "some are NaN or infinite"),
        (np.array([["a", "b"]]), "must be an array of numbers"),
        ("a picture", "must be an array of numbers"),
        (object(), "must be an array of numbers"),
        ([[1, 2], [3]], "must be an array of numbers, not list"),
        (np.zeros((2, 2), complex), "must be an array of numbers, not complex128"),
    ],
)
def test_other_arrays_are_refused_with_what_would_be_right(array: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        image_of(array)


@pytest.mark.parametrize("mode", ["1", "CMYK", "HSV", "L", "LA", "P", "PA", "RGB", "RGBA", "YCbCr"])
def test_pictures_of_pillow_keep_their_colours(mode: str) -> None:
    picture = Picture.new("RGB", (2, 1), "white").convert("L" if mode in {"LA", "PA"} else "RGB").convert(mode)
    image = image_of(picture)
    assert image.pixels.shape[:2] == (1, 2)
    assert (image.pixels == 255).all()


def test_a_figure_is_drawn_first() -> None:
    class Canvas:
        drawn = False

        def draw(self) -> None:
            self.drawn = True

        def buffer_rgba(self) -> memoryview:
            return memoryview(np.full((2, 3, 4), 255 * self.drawn, np.uint8))

    class Figure:
        canvas = Canvas()

    image = image_of(Figure())
    assert image.pixels.shape == (2, 3, 3)
    assert (image.pixels == 255).all()
    assert image.note == ""


def test_values_are_counted_in_bins_of_one_width() -> None:
    values = np.random.default_rng(0).normal(size=(10, 100))
    histogram = histogram_of(values, bins=10)
    counts, edges = np.histogram(values, 10)
    np.testing.assert_array_equal(histogram.counts, counts)
    np.testing.assert_array_equal(histogram.edges, edges)
    assert (histogram.not_finite, histogram.note) == (0, "")


def test_equal_values_are_in_bins_around_them() -> None:
    histogram = histogram_of(np.full(3, 7.0), 10)
    counts, edges = np.histogram(np.full(3, 7.0), 10)
    np.testing.assert_array_equal(histogram.edges, edges)
    np.testing.assert_array_equal(histogram.counts, counts)


def test_values_that_are_not_finite_are_counted_apart() -> None:
    histogram = histogram_of([1.0, np.nan, 2.0, np.inf, -np.inf])
    assert histogram.counts.sum() == 2
    assert histogram.not_finite == 3

    histogram = histogram_of([np.nan])
    assert (len(histogram.edges), len(histogram.counts), histogram.not_finite) == (0, 0, 1)


@pytest.mark.parametrize(
    "values",
    [[1e308, -1e308, 0.0], [1.0, 1.0 + 2**-52], [0.0, 5e-324], [1e308], [3.0, 3.0], [True, False], [2**60, 0]],
)
def test_any_range_of_numbers_has_a_histogram(values: list[float]) -> None:
    histogram = histogram_of(values)
    assert histogram.counts.sum() == len(values)
    assert histogram.edges[0] <= min(values) <= max(values) <= histogram.edges[-1]


@pytest.mark.parametrize(
    ("values", "bins", "message"),
    [
        ([], 64, "needs values"),
        ([1.0], 0, "at least 1 bin"),
        (["a"], 64, "a histogram must be an array of numbers"),
        (None, 64, "a histogram must be an array of numbers"),
    ],
)
def test_what_has_no_histogram_is_refused(values: Any, bins: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        histogram_of(values, bins)
