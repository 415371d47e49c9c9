from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from PIL import Image

from accel_engine import data
from accel_engine.data import dataset as dataset_module
from accel_engine.data.data_options import DataOptions
from accel_engine.errors import DataError

SIZE = (6, 8)


def mask_of(index: int, classes: int = 3) -> np.ndarray:
    """Each pixel has a class; images show it."""
    return ((np.arange(48).reshape(SIZE) // 5 + index) % classes).astype(np.uint8)


def save(path: Path, pixels: np.ndarray, palette: list[int] | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels)
    if palette:
        image = Image.frombytes("P", image.size, pixels.tobytes())
        image.putpalette(palette)
    image.save(path)


def make(root: Path, values: Any = (0, 1, 2), count: int = 10, palette: list[int] | None = None) -> Path:
    """Images whose pixels are 10 times the class, and masks with the value of each class."""
    for index in range(count):
        classes = mask_of(index, len(values))
        save(root / "images" / f"{index}.png", 10 * classes)
        save(root / "masks" / f"{index}.png", np.asarray(values, np.uint8)[classes], palette)
    return root


def load(path: Path, **options: Any) -> dataset_module.Dataset:
    return data.load(str(path), DataOptions(**options))


def checked(dataset: dataset_module.Dataset) -> dataset_module.Dataset:
    """The dataset, after a check that each mask belongs to its image."""
    assert dataset.task == "segmentation"
    for split in (dataset.train, dataset.validation):
        assert isinstance(split, dataset_module.Split)
        batch = split.take(np.arange(len(split)))
        assert batch.targets.dtype == np.uint8
        np.testing.assert_array_equal(batch.inputs[..., 0], 10 * batch.targets)
    return dataset


def test_masks_are_class_indices_a_pixel(tmp_path: Path) -> None:
    dataset = checked(load(make(tmp_path)))
    assert (len(dataset.train), dataset.class_names) == (9, ("0", "1", "2"))
    assert str(dataset.spec) == str(data.survey(data.find(str(tmp_path)), DataOptions()).spec)
    assert dataset.spec.targets.shape == SIZE
    assert dataset.notes == ("validation split: 1 of 10 images",)
    # Keras takes them as they are.
    loss = keras.losses.SparseCategoricalCrossentropy()(dataset.train.targets, np.full((9, *SIZE, 3), 1 / 3))
    assert float(loss) == pytest.approx(np.log(3), abs=1e-5)


@pytest.mark.parametrize(
    ("values", "names", "note"),
    [
        ((0, 255), ("0", "255"), "mask values 0, 255 are classes 0 to 1"),
        ((1, 2, 3), ("1", "2", "3"), "mask values 1, 2, 3 are classes 0 to 2"),
        ((0, 7, 255), ("0", "7", "255"), "mask values 0, 7, 255 are classes 0 to 2"),
    ],
)
def test_other_values_are_numbered_in_their_order(
    tmp_path: Path, values: Any, names: tuple[str, ...], note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, values)
    dataset = checked(load(tmp_path))
    assert (dataset.class_names, dataset.notes[-1]) == (names, note)
    monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
    lazy = checked(load(tmp_path))
    assert not isinstance(lazy.train.targets, np.ndarray)
    assert (lazy.class_names, lazy.notes) == (dataset.class_names, dataset.notes)


def test_palettes_count_by_place_and_colours_by_name(tmp_path: Path) -> None:
    palette = [0, 0, 0, 128, 0, 0, 0, 128, 0]
    dataset = checked(load(make(tmp_path / "palette", palette=palette)))
    assert (dataset.class_names, len(dataset.notes)) == (("0", "1", "2"), 1)
    colours = np.array(palette, np.uint8).reshape(3, 3)
    root = make(tmp_path / "colours")
    for index in range(10):
        save(root / "masks" / f"{index}.png", colours[mask_of(index)])
    dataset = load(root)
    assert dataset.class_names == ("0", "#008000", "#800000")
    np.testing.assert_array_equal(np.array([0, 2, 1])[dataset.train.targets] * 10, dataset.train.inputs[..., 0])


def test_masks_are_resized_with_the_nearest_pixel(tmp_path: Path) -> None:
    dataset = load(make(tmp_path, (0, 2)), image_size="12x16")
    assert dataset.train.targets.shape == (9, 12, 16)
    np.testing.assert_array_equal(dataset.train.targets[:, ::2, ::2] * 10, load(tmp_path).train.inputs[..., 0])
    assert set(np.unique(dataset.train.targets)) == {0, 1}


def test_named_classes_and_splits_of_the_folder(tmp_path: Path) -> None:
    make(tmp_path / "train", count=4)
    make(tmp_path / "val", count=2)
    make(tmp_path / "test", count=3)
    (tmp_path / "classes.txt").write_text("sky\nsea\nland\nboat\n")
    dataset = checked(load(tmp_path))
    assert [len(split) for split in (dataset.train, dataset.validation, dataset.test)] == [4, 2, 3]
    assert dataset.class_names == ("sky", "sea", "land", "boat")
    entry = data.survey(data.find(str(tmp_path)), DataOptions())
    assert (entry.classes, entry.examples, entry.validation_examples, entry.test_examples) == (4, 4, 2, 3)
    (tmp_path / "classes.txt").write_text("sky\nsea\n")
    with pytest.raises(DataError, match="2 classes are named, but the masks have 3 values: 0, 1, 2"):
        load(tmp_path)


def test_missing_and_damaged_masks(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "masks" / "3.png").unlink()
    said = f"1 of 10 images in {tmp_path / 'images'} have no mask of the same name: images/3.png"
    left_out = f"1 of 10 images left out: they have no mask of the same name in {tmp_path / 'masks'}: images/3.png"
    for read in (load, lambda path: data.survey(data.find(str(path)), DataOptions())):
        with pytest.raises(DataError) as caught:
            read(tmp_path)
        assert str(caught.value).startswith(said)
    masks = [tmp_path / "masks" / name for name in ("5.png", "8.png")]
    masks[0].write_bytes(masks[0].read_bytes()[:50])
    save(masks[1], np.zeros(SIZE, np.uint16))
    dataset = checked(load(tmp_path, invalid_examples="skip", validation_split=0.4))
    assert len(dataset.train) + len(dataset.validation) == 7
    assert [str(change) for change in dataset.changes] == [left_out]
    assert "skipped 2 of 9 examples that cannot be read: " in dataset.warnings[-1]
    masks[0].unlink()
    (tmp_path / "images" / "5.png").unlink()
    (tmp_path / "images" / "3.png").unlink()
    with pytest.raises(DataError, match=r"8.png: it has 16 bits per pixel; save it with 8"):
        load(tmp_path)


def test_masks_that_are_no_classes(tmp_path: Path) -> None:
    make(tmp_path, count=3)
    rng = np.random.default_rng(0)
    for index in range(3):
        save(tmp_path / "masks" / f"{index}.png", rng.integers(0, 256, (*SIZE, 3)).astype(np.uint8))
    save(tmp_path / "masks" / "0.png", rng.integers(0, 256, (30, 30, 3)).astype(np.uint8))
    save(tmp_path / "images" / "0.png", np.zeros((30, 30), np.uint8))
    with pytest.raises(DataError, match="more than 256 different values"):
        load(tmp_path, image_size="30x30")
    for index in range(3):
        save(tmp_path / "images" / f"{index}.png", np.zeros(SIZE, np.uint8))
        save(tmp_path / "masks" / f"{index}.png", np.full(SIZE, 4, np.uint8))
    with pytest.raises(DataError, match="all pixels of all masks have the value 4"):
        load(tmp_path)
    for path in (tmp_path / "masks").iterdir():
        path.rename(path.with_suffix(".jpg"))
    with pytest.raises(DataError, match="other formats would change their values"):
        load(tmp_path)


def save_turned(path: Path, pixels: np.ndarray, orientation: int) -> None:
    """Save an image that is shown as ``pixels`` once it is turned."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    turns = {3: 2, 6: 1, 8: 3}  # times by 90 degrees, the other way round
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.rot90(pixels, turns[orientation]).copy()).save(path, exif=exif)


def turned_folder(root: Path, masks: str, size: tuple[int, int] = (8, 6), orientation: int = 6, count: int = 6) -> Path:
    """Images that are turned, and masks drawn on them as they are ``shown`` or ``stored``."""
    for index in range(count):
        classes = ((np.arange(size[0] * size[1]).reshape(size) // 5 + index) % 3).astype(np.uint8)
        save_turned(root / "images" / f"{index}.png", 10 * classes, orientation)
        stored = np.rot90(classes, {3: 2, 6: 1, 8: 3}[orientation]).copy()
        save(root / "masks" / f"{index}.png", stored if masks == "stored" else classes)
    return root


@pytest.mark.parametrize("orientation", [6, 8])
@pytest.mark.parametrize("masks", ["shown", "stored"])
def test_masks_of_turned_images_fit_them_as_they_are_shown_or_stored(
    tmp_path: Path, masks: str, orientation: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned_folder(tmp_path, masks, orientation=orientation)
    dataset = checked(load(tmp_path))
    assert dataset.shape == (8, 6, 1)
    expected = [
        "6 of 6 images turned: by EXIF orientation",
        f"{6 * (masks == 'stored')} of 6 masks of turned images turned: they have the sides of their images before "
        "these are turned",
    ]
    assert [str(change) for change in dataset.changes] == expected
    assert [str(change) for change in data.survey(data.find(str(tmp_path)), DataOptions()).changes] == expected
    monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
    checked(load(tmp_path))


@pytest.mark.parametrize("masks", ["shown", "stored"])
def test_masks_that_fit_both_are_taken_as_the_others_tell(tmp_path: Path, masks: str) -> None:
    turned_folder(tmp_path, masks, size=(7, 7), count=4)
    turned_folder(tmp_path / "more", masks, count=2)
    for kind in ("images", "masks"):
        for path in (tmp_path / "more" / kind).iterdir():
            path.rename(tmp_path / kind / f"more{path.name}")
    dataset = load(tmp_path, split="none")
    np.testing.assert_array_equal(10 * dataset.train.targets[:4], dataset.train.inputs[:4, :, :, 0])
    assert [str(change) for change in dataset.changes][2].startswith(f"{6 * (masks == 'stored')} of 6 masks of turned")


def test_masks_that_fit_both_are_taken_as_shown_if_no_other_tells(tmp_path: Path) -> None:
    checked(load(turned_folder(tmp_path, "shown", orientation=3)))


def test_masks_of_another_shape_are_refused_and_smaller_ones_resized(tmp_path: Path) -> None:
    make(tmp_path, (0, 2), count=4)
    save(tmp_path / "masks" / "1.png", np.zeros((6, 6), np.uint8))
    said = "masks/1.png has 6 x 6 pixels and its image .*images/1.png 8 x 6: a mask needs the sides of its image"
    for read in (load, lambda path: data.survey(data.find(str(path)), DataOptions())):
        with pytest.raises(DataError, match=said):
            read(tmp_path)
    assert len(load(tmp_path, invalid_examples="skip", split="none").train) == 3
    save(tmp_path / "masks" / "1.png", np.asarray((0, 2), np.uint8)[mask_of(1, 2)][::2, ::2])
    dataset = load(tmp_path, split="none")
    assert [str(change) for change in dataset.changes] == ["1 of 4 masks resized: to 6x8, by the nearest pixel"]
    np.testing.assert_array_equal(dataset.train.targets[1, ::2, ::2], mask_of(1, 2)[::2, ::2])


def test_each_mask_has_its_own_palette(tmp_path: Path) -> None:
    make(tmp_path)
    for index in range(5):
        colours = np.random.default_rng(index).integers(0, 256, 9).tolist()
        save(tmp_path / "masks" / f"{index}.png", mask_of(index), [*colours[:6], *colours[:3]])
    dataset = checked(load(tmp_path))
    assert dataset.class_names == ("0", "1", "2")
    assert dataset.notes[1:] == (
        "the masks have different palettes: the places of the colours in them are the classes",
    )
    palette = [0, 0, 0, 128, 0, 0, 0, 128, 0]
    make(tmp_path, palette=palette)
    for index in range(3):
        save(tmp_path / "masks" / f"{index}.png", mask_of(index), palette * 2)
    assert len(load(tmp_path).notes) == 1
    save(tmp_path / "masks" / "3.png", np.array(palette, np.uint8).reshape(3, 3)[mask_of(3)])
    with pytest.raises(DataError, match="some masks have a palette, whose places are classes, and others colours"):
        load(tmp_path)


def test_other_lossless_formats(tmp_path: Path) -> None:
    make(tmp_path)
    for path in (tmp_path / "images").iterdir():
        Image.open(path).save(path.with_suffix(".tif"), compression="tiff_lzw")
        path.unlink()
    for path in (tmp_path / "masks").iterdir():
        Image.open(path).save(path.with_suffix(".gif"))
        path.unlink()
    assert checked(load(tmp_path)).class_names == ("0", "1", "2")


def test_test_images_without_masks_are_left_out(tmp_path: Path) -> None:
    make(tmp_path / "train", count=4)
    make(tmp_path / "test", count=3)
    for path in (tmp_path / "test" / "masks").iterdir():
        path.unlink()
    (tmp_path / "test" / "masks").rmdir()
    dataset = checked(load(tmp_path, validation_split=0.25))
    assert [str(change) for change in dataset.changes] == [
        f"3 of 3 images left out: those in {tmp_path / 'test'} have no masks"
    ]


def test_other_masks_for_a_trained_model_have_no_say_in_its_classes(tmp_path: Path) -> None:
    own, other, alike = make(tmp_path / "a/train", (0, 255)).parent, tmp_path / "b", tmp_path / "c"
    make(own / "val", (0, 7, 255))
    make(other, (0, 128, 255))
    make(alike, (0, 255))
    kept = load(own, validation_data=str(alike), keeps_split=True)
    assert kept.class_names == load(own).class_names == ("0", "7", "255")
    assert isinstance(kept.validation, dataset_module.Split)
    assert np.unique(kept.validation.targets).tolist() == [0, 2]
    with pytest.raises(DataError, match=r"b/masks/\d.png has the value 128; the classes are 0, 7, 255"):
        load(own, validation_data=str(other), keeps_split=True)


def test_other_images_for_a_trained_model_are_read_as_its_own(tmp_path: Path) -> None:
    own, other = make(tmp_path / "own"), make(tmp_path / "other", count=30)
    for file in [*(other / "images").iterdir(), *(other / "masks").iterdir()]:
        with Image.open(file) as image:
            image.resize((9, 7), Image.Resampling.NEAREST).save(file)
    plain, kept = load(own), load(own, validation_data=str(other), keeps_split=True)
    assert kept.spec == plain.spec
    assert kept.validation is not None
    assert (len(kept.train), len(kept.validation)) == (len(plain.train), 30)
