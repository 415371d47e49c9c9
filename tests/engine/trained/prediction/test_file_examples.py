"""Files of images, sounds and texts become examples as the run's data has them."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
import tensorflow as tf
from PIL import Image

from accel_engine import data
from accel_engine.data.data_options import DataOptions
from accel_engine.data.structure import ArraySpec
from accel_engine.errors import DataError
from accel_engine.image_files import read_example
from accel_engine.run.diagnostics import InputSpec
from accel_engine.trained.prediction.examples import read_arrays, read_lines, sound_example
from accel_engine.training.evaluation.task_report import input_spec_of


def write(path: Path, pixels: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tf.io.encode_png(pixels).numpy())
    return path


def example_of(path: Path, spec: InputSpec) -> tuple[np.ndarray, tuple[str, ...]]:
    return read_example(path, spec.shape, spec.low, spec.high, integers=spec.integers)


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
    assert notes == ("converted to grayscale",)


def test_files_that_are_not_images_are_named(tmp_path: Path) -> None:
    (tmp_path / "words.png").write_text("words")
    with pytest.raises(
        DataError, match=r"cannot read the image .*words.png: not a valid PNG, JPEG, GIF, BMP, WebP, TIFF or PNM file"
    ):
        example_of(tmp_path / "words.png", InputSpec((4, 4, 1), (), 1 / 255, 0.0, 255.0, True))


@pytest.mark.parametrize("depth", [8, 16])
def test_a_file_is_predicted_as_it_is_trained_on(tmp_path: Path, depth: int) -> None:
    """Turned, in colours, transparent, of another size: the same pixels."""
    random = np.random.default_rng(0)
    shades = random.integers(0, 256, (20, 14, 4)).astype(np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6
    pictures = {"a/turned.png": Image.fromarray(shades[..., 0])}
    if depth == 16:
        pictures["b/grey.tif"] = Image.fromarray(shades[..., 0].astype(np.uint16) * 251)
    else:
        pictures["a/photo.jpg"] = Image.fromarray(shades[..., :3])
        pictures["b/clear.webp"] = Image.fromarray(shades)
    for name, picture in pictures.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        picture.save(tmp_path / name, exif=exif if "turned" in name else Image.Exif())
    dataset = data.load(str(tmp_path), DataOptions(image_size="9x7", split="none"))
    assert dataset.spec.inputs.dtype == f"uint{depth}"
    spec = input_spec_of(dataset, 1.0)
    files = sorted(tmp_path.glob("?/*"))
    for file, row in zip(files, dataset.train.inputs, strict=True):
        np.testing.assert_array_equal(example_of(file, spec)[0], row)


def test_lines_of_a_text_in_any_unicode(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        path.write_text("schön\n\ngut", encoding=encoding)
        assert read_lines(path, ArraySpec((), "string")).names == ("schön", "gut")
    path.write_bytes("gut\nschön".encode("latin-1"))
    found = read_lines(path, ArraySpec((), "string"))
    assert (found.names, found.notes) == (("gut", "schön"), (f"{path}: converted from Windows-1252",))
    path.write_bytes(b"gut\nsch\x81n")
    with pytest.raises(DataError, match=r"texts\.txt is not UTF-8: line 2 has an invalid byte \(position 7\)"):
        read_lines(path, ArraySpec((), "string"))


SPEC = ArraySpec((700, 1), "float32")


def test_a_sound_is_read_as_the_folder_of_the_run_was(tmp_path: Path) -> None:
    for index, (rate, kind) in enumerate(((8000, "wav"), (8000, "flac"), (8000, "wav"), (16_000, "ogg"))):
        path = tmp_path / "sounds" / "ab"[index % 2] / f"{index}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, np.random.default_rng(index).normal(0, 0.1, (500 + 100 * index, 1 + index % 2)), rate)
    dataset = data.load(str(tmp_path / "sounds"), DataOptions(split="none"))
    assert dataset.shape == (700, 1)
    for row, name in enumerate(("a/0.wav", "a/2.wav", "b/1.flac", "b/3.ogg")):
        read = sound_example(tmp_path / "sounds" / name, SPEC, dataset.sample_rate, divides=True)
        np.testing.assert_array_equal(read.inputs[0], dataset.train.inputs[row])
    path = tmp_path / "sounds" / "b" / "3.ogg"
    assert read.notes == (
        f"{path}: mixed from 2 channels into one",
        f"{path}: resampled from 16,000 to 8,000 samples per second",
        f"{path}: padded with silence from 400 to 700 samples",
    )


def test_a_number_beyond_float32_is_a_problem_of_its_row(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[1.0], [1e300], [2.0]]))
    found = read_arrays(tmp_path / "x.npy", ArraySpec((1,), "float32"))
    assert found.inputs.tolist() == [[1.0], [2.0]]
    assert found.problems == {
        1: "row 2 of the array in x.npy has a number that is not finite, or too large for float32"
    }
