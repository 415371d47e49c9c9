import os
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from accel_engine import data
from accel_engine.data import dataset as dataset_module
from accel_engine.data.data_options import DataOptions
from accel_engine.data.fingerprint import fingerprint
from accel_engine.data.folders.image_folder import ImageForm
from accel_engine.data.pixel_scaling import PIXELS
from accel_engine.errors import DataError, PlanError
from accel_engine.image_files import check_image, read_header, read_pixels

ENCODERS = {
    ".png": tf.io.encode_png,
    ".jpg": tf.io.encode_jpeg,
}


def image(height: int = 6, width: int = 5, channels: int = 3, value: int = 0) -> np.ndarray:
    return np.full((height, width, channels), value, np.uint8)


def write(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(ENCODERS[path.suffix](pixels).numpy())


def bmp(pixels: np.ndarray) -> bytes:
    """An uncompressed bitmap, rows from the bottom, each filled up to four bytes."""
    height, width, _ = pixels.shape
    rows = b"".join(row[:, ::-1].tobytes().ljust((3 * width + 3) // 4 * 4, b"\0") for row in pixels[::-1])
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(rows), 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(rows), 0, 0, 54) + header + rows


GIF = bytes.fromhex("47494638396103000200800000ff0000ffffff2c00000000030002000002028c0f003b")
"""Three by two pixels."""


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Ten grey-levelled images of each of two classes; the value tells class and number."""
    for label, name in enumerate(("cat", "dog")):
        for index in range(10):
            write(tmp_path / "pets" / name / f"{index}.png", image(value=100 * label + index))
    return tmp_path / "pets"


def load(path: Path, **arguments: Any) -> dataset_module.Dataset:
    return data.load(str(path), DataOptions(**arguments))


def message(path: Path, **arguments: Any) -> str:
    with pytest.raises(DataError) as caught:
        load(path, **arguments)
    return str(caught.value)


def test_classes_are_folders_and_a_tenth_is_split_rows(pets: Path) -> None:
    dataset = load(pets)
    assert dataset.name == "pets"
    assert dataset.class_names == ("cat", "dog")
    assert (dataset.shape, dataset.value_range) == ((6, 5, 3), PIXELS)
    assert dataset.validation is not None
    assert (len(dataset.train), len(dataset.validation)) == (18, 2)
    x, y = (
        np.concatenate([getattr(dataset.train, name), getattr(dataset.validation, name)])
        for name in ("inputs", "targets")
    )
    values = x[:, 0, 0, 0]
    assert sorted(values) == [*range(10), *range(100, 110)]
    np.testing.assert_array_equal(values // 100, y)
    assert (x == values[:, None, None, None]).all()
    assert dataset.notes == ("validation split: 2 of 20 images",)


def test_split_depends_on_the_seed(pets: Path) -> None:
    splits = [load(pets, seed=seed).validation for seed in (0, 0, 1, 2)]
    first, again, *others = [np.asarray(split.inputs)[:, 0, 0, 0].tolist() for split in splits if split]
    assert first == again
    assert any(first != other for other in others)


def test_survey_says_what_reading_gives(pets: Path) -> None:
    entry = data.survey(data.find(str(pets)), DataOptions(image_size="4x3"))
    dataset = load(pets, image_size="4x3")
    assert dataset.validation is not None
    assert entry.shape == dataset.shape == (4, 3, 3)
    assert entry.classes == 2
    assert (entry.examples, entry.validation_examples) == (len(dataset.train), len(dataset.validation))


@pytest.mark.parametrize(("name", "said"), [("val", False), ("Validation", False), ("test", True)])
def test_split_that_the_folder_brings_is_kept(tmp_path: Path, name: str, said: bool) -> None:
    for part, count in (("train", 3), (name, 2)):
        for label in ("a", "b"):
            for index in range(count):
                write(tmp_path / part / label / f"{index}.png", image(value=count))
    dataset = load(tmp_path)
    assert dataset.validation is not None
    assert (len(dataset.train), len(dataset.validation)) == (6, 4)
    assert (np.asarray(dataset.train.inputs) == 3).all()
    assert (np.asarray(dataset.validation.inputs) == 2).all()
    assert bool(dataset.notes) is said
    entry = data.survey(data.find(str(tmp_path)), DataOptions())
    assert (entry.examples, entry.validation_examples, entry.classes) == (6, 4, 2)


def test_images_are_brought_to_the_most_common_size(pets: Path) -> None:
    write(pets / "cat" / "large.png", image(60, 50, value=50))
    dataset = load(pets)
    assert dataset.shape == (6, 5, 3)
    assert [str(change) for change in dataset.changes] == [
        "1 of 21 images resized: to 6x5, the most common size (change it with image_size)"
    ]
    assert dataset.validation is not None
    pixels = np.concatenate([dataset.train.inputs, dataset.validation.inputs])
    assert (pixels == 50).all(axis=(1, 2, 3)).sum() == 1


def test_grey_images_have_one_channel_unless_one_has_colour(pets: Path) -> None:
    for path in pets.rglob("*.png"):
        write(path, image(channels=1, value=7))
    assert load(pets).shape == (6, 5, 1)
    assert (np.asarray(load(pets).train.inputs) == 7).all()
    write(pets / "dog" / "0.png", image(value=7))
    assert load(pets).shape == (6, 5, 3)


def test_other_formats_and_deeper_folders(pets: Path) -> None:
    write(pets / "cat" / "more" / "one.jpg", image(value=40))
    (pets / "dog" / "two.BMP").write_bytes(bmp(image(value=60)))
    (pets / "dog" / "three.gif").write_bytes(GIF)
    (pets / "dog" / ".hidden.png").write_bytes(b"")
    (pets / "dog" / "notes.txt").write_bytes(b"")
    dataset = load(pets)
    assert dataset.validation is not None
    values = np.concatenate([dataset.train.inputs, dataset.validation.inputs])[:, 2, 2, 1].tolist()
    assert len(values) == 23
    assert {40, 60} <= set(values)


@pytest.mark.parametrize(
    ("encode", "expected"),
    [
        (lambda: tf.io.encode_png(image(3, 4)).numpy(), (3, 4, 3)),
        (lambda: tf.io.encode_png(image(3, 4, 1)).numpy(), (3, 4, 1)),
        (lambda: tf.io.encode_png(image(3, 4, 4)).numpy(), (3, 4, 3)),
        (lambda: tf.io.encode_jpeg(image(3, 4)).numpy(), (3, 4, 3)),
        (lambda: tf.io.encode_jpeg(image(30, 4, 1), progressive=True).numpy(), (30, 4, 1)),
        (lambda: bmp(image(3, 4)), (3, 4, 3)),
        (lambda: GIF, (2, 3, 3)),
    ],
)
def test_headers_tell_size_and_channels(tmp_path: Path, encode: Any, expected: tuple[int, ...]) -> None:
    content, path = encode(), tmp_path / "image"
    path.write_bytes(content)
    assert read_header(path)[:3] == expected
    for keep in (0, 1, 2, 5, 8, 9, 17, 19):
        path.write_bytes(content[:keep])
        if keep < 10 or content is not GIF:
            with pytest.raises(DataError, match="not a valid PNG, JPEG, GIF, BMP, WebP, TIFF or PNM"):
                read_header(path)


def test_images_that_do_not_fit_in_memory_are_read_as_they_are_needed(
    pets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = load(pets)
    monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
    lazy = load(pets)
    assert not isinstance(lazy.train.inputs, np.ndarray)
    assert (lazy.train.inputs.shape, lazy.train.inputs.nbytes) == ((18, 6, 5, 3), 18 * 90)
    rows = np.array([17, 2, 2])
    # As the training pipeline asks for them: from inside of TensorFlow's threads.
    pipeline = tf.data.Dataset.from_tensors(rows).map(
        lambda rows: tf.numpy_function(lazy.train.inputs.take, [rows], tf.uint8)
    )
    (taken,) = list(pipeline.as_numpy_iterator())
    np.testing.assert_array_equal(taken, np.asarray(held.train.inputs)[rows])


def test_unreadable_image_is_named(pets: Path) -> None:
    whole = (pets / "dog" / "3.png").read_bytes()
    (pets / "dog" / "3.png").write_bytes(whole[:45])
    assert f"cannot decode the image {pets / 'dog' / '3.png'}: " in message(pets, invalid_examples="fail")
    (pets / "dog" / "3.png").write_bytes(b"")
    assert message(pets, invalid_examples="fail").startswith(
        f"cannot read the image {pets / 'dog' / '3.png'}: not a valid PNG"
    )


def test_size_that_is_none(pets: Path) -> None:
    with pytest.raises(PlanError, match="image_size"):
        load(pets, image_size="large")


def test_folders_that_are_no_dataset_are_explained(tmp_path: Path) -> None:
    layout = "expected one subfolder of images per class"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert message(empty) == f"{empty} has no subfolders; {layout}"
    write(tmp_path / "flat" / "a.png", image())
    assert message(tmp_path / "flat") == f"{tmp_path / 'flat'} has no subfolders; {layout}"
    write(tmp_path / "single" / "cat" / "a.png", image())
    assert "has only one folder, cat; classification needs" in message(tmp_path / "single")
    for name in ("cat", "dog"):
        write(tmp_path / "outer" / "pets" / name / "a.png", image())
    assert message(tmp_path / "outer").endswith(f": is {tmp_path / 'outer' / 'pets'} meant, which has 2?")
    (tmp_path / "single" / "dog").mkdir()
    assert f"{tmp_path / 'single' / 'dog'} has no images (.png, " in message(tmp_path / "single")


def test_class_that_is_only_validated_on_is_refused(tmp_path: Path) -> None:
    for name in ("train/a", "train/b", "val/a", "val/c"):
        write(tmp_path / name / "1.png", image())
    assert "has the class c, which has no training images" in message(tmp_path)


def encoded() -> dict[str, bytes]:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 7, 3)).astype(np.uint8)
    png, jpeg = tf.io.encode_png(pixels).numpy(), tf.io.encode_jpeg(pixels, progressive=True).numpy()
    return {"png": png, "jpeg": jpeg, "bmp": bmp(pixels), "gif": GIF}


@pytest.mark.parametrize("form", ["png", "jpeg", "bmp", "gif"])
def test_half_an_image_is_never_used(tmp_path: Path, form: str) -> None:
    """Wherever a file is cut, it does not seem whole, and it cannot be decoded unless all pixels are there."""
    whole, path = encoded()[form], tmp_path / "image"
    path.write_bytes(whole)
    pixels, _ = read_pixels(path)
    for appended in (b"", b"\r\n\0", b"a film" * 1000):
        path.write_bytes(whole + appended)
        check_image(path)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        try:
            check_image(path)
        except DataError:
            with suppress(DataError):
                np.testing.assert_array_equal(read_pixels(path)[0], pixels)
        else:
            np.testing.assert_array_equal(read_pixels(path)[0], pixels)


def png_of_size(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n\0\0\0\r" + header + struct.pack(">I", zlib.crc32(header)) + b"\0\0\0\1IDAT" + bytes(9)


@pytest.mark.parametrize("in_memory", [True, False])
def test_what_cannot_be_read_is_skipped_counted_and_named(
    pets: Path, in_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe, a link to nowhere, a directory, an image of gigabytes and one that is cut, in each run alike."""
    if not in_memory:
        monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
    damaged = [pets / "dog" / f"{index}.png" for index in range(5)]
    for path in damaged:
        content = path.read_bytes()
        path.unlink()
    os.mkfifo(damaged[0])
    damaged[1].symlink_to("nowhere.png")
    damaged[2].write_bytes(png_of_size(60_000, 60_000))
    damaged[3].write_bytes(content[:45])
    damaged[4].symlink_to("/dev/zero")
    names = "dog/0.png, dog/1.png, dog/2.png and 2 more"
    entry = data.survey(data.find(str(pets)), DataOptions())
    assert entry.notes[-1] == f"5 of 20 files seem damaged; those that cannot be read will be left out: {names}"
    first, second = load(pets, split="none"), load(pets, split="none")
    assert first.warnings[-1] == f"skipped 5 of 20 examples that cannot be read: {names}"
    assert first.warnings == second.warnings
    assert fingerprint(first) == fingerprint(second)
    assert len(first.train) == 15
    reasons = ["it is a pipe, not a file", "No such file", "60,000 x 60,000 pixels are too many", "", "it is a device"]
    for path, reason in zip(damaged, reasons, strict=True):
        with pytest.raises(DataError, match=f"cannot (read|decode) the image {path}: {reason}"):
            read_pixels(path)
    said = message(pets, invalid_examples="fail")
    assert "dog/0.png: it is a pipe, not a file (--invalid-examples skip" in said


@pytest.mark.parametrize("in_memory", [True, False])
def test_an_image_that_is_too_large_ends_the_run_unless_it_is_to_be_skipped(
    pets: Path, in_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_memory:
        monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
    large = pets / "dog" / "3.png"
    large.write_bytes(png_of_size(60_000, 60_000) + b"IEND\xaeB`\x82")
    said = (
        f"cannot read the image {large}: 60,000 x 60,000 pixels are too many, at most 178,956,970 are read; make it sm"
    )
    with pytest.raises(DataError, match=f"^{said}"):
        data.survey(data.find(str(pets)), DataOptions())
    monkeypatch.setattr(ImageForm, "looked_at", 1)  # as if there were many more images
    assert message(pets).startswith(said)
    skipped = load(pets, invalid_examples="skip", split="none")
    assert skipped.warnings == ("skipped 1 of 20 examples that cannot be read: dog/3.png",)


def test_more_damaged_than_whole_images_are_no_dataset(pets: Path) -> None:
    for index in range(10):
        (pets / "dog" / f"{index}.png").write_bytes(b"RIFF....WEBP")
    (pets / "cat" / "0.png").write_bytes(b"")
    assert message(pets).startswith("11 of 20 examples that cannot be read are more than half: cannot read the image ")
    assert len(load(pets, invalid_examples="skip", split="none").train) == 9


def test_what_is_changed_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same by the headers, in memory and lazily."""
    colours = np.random.default_rng(0).integers(0, 256, (6, 4, 3)).astype(np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6
    for name, picture, options in (
        ("a/0.png", Image.fromarray(colours), {}),
        ("a/1.png", Image.fromarray(colours), {}),
        ("a/2.png", Image.fromarray(colours), {"exif": exif}),
        ("a/3.webp", Image.fromarray(colours), {"lossless": True}),
        ("b/0.png", Image.fromarray(np.dstack([colours, colours[:, :, :1]])), {}),
        ("b/1.jpg", Image.fromarray(colours).convert("CMYK"), {}),
        ("b/2.gif", Image.fromarray(colours), {"save_all": True, "append_images": [Image.new("RGB", (4, 6))]}),
        ("b/3.tif", Image.fromarray(colours[:, :, 0]), {}),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        picture.save(tmp_path / name, **options)
    for number in range(30):
        (tmp_path / "b" / f"{number}.heic").touch()
    (tmp_path / "a" / "notes.txt").touch()
    (tmp_path / "a" / ".hidden").touch()
    expected = [
        "31 of 39 files left out: their suffixes are not read: b 30 .heic; a 1 .txt",
        "1 of 8 images turned: by EXIF orientation",
        "1 of 8 images resized: to 6x4, the most common size (change it with image_size)",
        "1 of 8 images converted: to white where they are transparent",
        "1 of 8 images converted: from CMYK to RGB",
        "1 of 8 images cut: to the first frame",
    ]
    held = load(tmp_path, split="none")
    monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
    lazy = load(tmp_path, split="none")
    described = data.survey(data.find(str(tmp_path)), DataOptions(split="none"))
    for found in (held, lazy, described):
        assert sorted(map(str, found.changes)) == sorted(expected)
    monkeypatch.setattr(ImageForm, "looked_at", 4)
    described = data.survey(data.find(str(tmp_path)), DataOptions(split="none"))
    assert all(change.is_sampled and change.total == 4 for change in described.changes[1:])


def test_16_bits_are_kept(tmp_path: Path) -> None:
    shades = np.random.default_rng(0).integers(0, 65_536, (8, 6, 5)).astype(np.uint16)
    for number, each in enumerate(shades):
        path = tmp_path / "ab"[number % 2] / f"{number}.{'png' if number < 4 else 'tif'}"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(each).save(path)
    dataset = load(tmp_path, split="none")
    assert (dataset.spec.inputs.dtype, dataset.value_range.largest) == ("uint16", 65_535)
    np.testing.assert_array_equal(dataset.train.inputs[..., 0], shades[[0, 2, 4, 6, 1, 3, 5, 7]])
    assert (dataset.changes, len(dataset.notes)) == ((), 1)
    write(tmp_path / "a" / "eight.png", image(channels=1, value=7))
    dataset = load(tmp_path, split="none")
    assert dataset.train.inputs[4, 0, 0, 0] == 7 * 257
    assert [str(change) for change in dataset.changes] == ["1 of 9 images converted: from 8 to 16 bits a channel"]
    write(tmp_path / "a" / "eight.png", image(value=7))
    dataset = load(tmp_path, split="none")
    assert dataset.spec.inputs.dtype == "uint8"
    assert [str(change) for change in dataset.changes] == ["8 of 9 images converted: from 16 to 8 bits a channel"]
    (tmp_path / "a" / "eight.png").unlink()
    for path in tmp_path.glob("?/*"):
        Image.fromarray(np.asarray(Image.open(path)) >> 4).save(path)
    said = f"images of 16 bits have values only up to {shades.max() >> 4:,}, although uint16 goes up to 65,535"
    assert load(tmp_path, split="none").notes[1:] == (said,)


def test_what_systems_write_and_images_beside_the_folders_are_no_classes(pets: Path) -> None:
    for name in ("__MACOSX/._1.png", ".ipynb_checkpoints/1.png", "cat/Thumbs.db", "cat/.hidden/1.png", ".DS_Store"):
        (pets / name).parent.mkdir(exist_ok=True)
        (pets / name).touch()
    assert (load(pets).class_names, load(pets).changes) == (("cat", "dog"), ())
    write(pets / "loose.png", image())
    said = f"1 of 21 images left out: they are in {pets} itself, not in the folder of a class"
    assert [str(change) for change in load(pets).changes] == [said]
    assert [str(change) for change in data.survey(data.find(str(pets)), DataOptions()).changes] == [said]


def test_test_images_without_classes_are_left_out(tmp_path: Path) -> None:
    for name in (
        "train/cat/1.png",
        "train/cat/2.png",
        "train/dog/1.png",
        "train/dog/2.png",
        "test/1.png",
        "test/2.png",
    ):
        write(tmp_path / name, image())
    dataset, entry = load(tmp_path), data.survey(data.find(str(tmp_path)), DataOptions())
    assert (dataset.test, entry.test_examples) == (None, 0)
    said = f"2 of 2 images left out: those in {tmp_path / 'test'} have no classes"
    assert [str(change) for change in dataset.changes] == [str(change) for change in entry.changes] == [said]


def test_what_a_folder_has_instead_of_images_is_said(tmp_path: Path) -> None:
    write(tmp_path / "cat" / "1.png", image())
    for number in range(3):
        (tmp_path / "dog").mkdir(exist_ok=True)
        (tmp_path / "dog" / f"{number}.heic").touch()
    assert f"{tmp_path / 'dog'} has no images (.png, " in message(tmp_path)
    assert "; it has 3 .heic; expected one subfolder of images per class" in message(tmp_path)


def test_other_images_for_a_trained_model_are_read_as_its_own(pets: Path, tmp_path: Path) -> None:
    for label in ("cat", "dog"):
        for index in range(30):
            write(tmp_path / "other" / label / f"{index}.png", image(9, 8, 1))
    plain, kept = load(pets), load(pets, validation_data=str(tmp_path / "other"), keeps_split=True)
    assert kept.spec == plain.spec
    assert kept.validation is not None
    assert (len(kept.train), len(kept.validation)) == (len(plain.train), 60)
    assert load(pets, validation_data=str(tmp_path / "other")).spec.inputs.shape == (9, 8, 3)
