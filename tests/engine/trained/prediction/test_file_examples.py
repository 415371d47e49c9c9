"""Image files become examples as the run's data has them."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from accel_engine.errors import DataError
from accel_engine.run.diagnostics import InputSpec
from accel_engine.trained.prediction.file_examples import example_of


def write(path: Path, pixels: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tf.io.encode_png(pixels).numpy())
    return path


@pytest.mark.parametrize(
    ("intake", "black", "white"),
    [
        (InputSpec((4, 4, 1), (), 1 / 255, 0.0, 255.0, True), 0, 255),
        (InputSpec((4, 4, 3), (), 1.0, -1.0, 1.0, False), -1.0, 1.0),
        (InputSpec((4, 4, 4), (), 1 / 65535, 0.0, 65535.0, False), 0.0, 65535.0),
        (InputSpec((4, 4, 1), (), 1.0, 0.0, 1.0, True), 0, 1),
    ],
)
def test_an_image_is_resized_and_scaled_like_the_data(
    tmp_path: Path, intake: InputSpec, black: float, white: float
) -> None:
    pixels = np.zeros((8, 8, 3), np.uint8)
    pixels[:, 4:] = 255
    x, notes = example_of(write(tmp_path / "half.png", pixels), intake)
    assert x.shape == intake.shape
    assert (x[0, 0, 0], x[0, 3, 0]) == (black, white)
    assert "resized from 8x8 to 4x4" in notes
    said = "converted from 8 to 16 bits a channel" if white == 65535 else "pixels scaled to"
    assert any(said in note for note in notes) == ((black, white) != (0, 255))


def test_colour_is_converted_to_grayscale_with_a_note(tmp_path: Path) -> None:
    colour = np.full((4, 4, 3), (100, 200, 50), np.uint8)
    x, notes = example_of(write(tmp_path / "colour.png", colour), InputSpec((4, 4, 1), (), 1 / 255, 0.0, 255.0, True))
    assert set(x.reshape(-1).tolist()) == {153}
    assert notes == ["converted to grayscale"]


def test_files_that_are_not_images_are_named(tmp_path: Path) -> None:
    (tmp_path / "words.png").write_text("words")
    with pytest.raises(
        DataError, match=r"cannot read the image .*words.png: not a valid PNG, JPEG, GIF, BMP, WebP, TIFF or PNM file"
    ):
        example_of(tmp_path / "words.png", InputSpec((4, 4, 1), (), 1 / 255, 0.0, 255.0, True))
