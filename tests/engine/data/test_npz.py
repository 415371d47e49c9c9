from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data.npz import read
from accel_engine.errors import DataError, PlanError

RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (30, 9, 8)).astype(np.uint8)
Y = np.arange(30) % 3


@pytest.fixture
def save(tmp_path: Path):
    def save(**arrays: Any) -> str:
        np.savez(tmp_path / "mine.npz", **arrays)
        return str(tmp_path / "mine.npz")

    return save


def test_keras_form(save) -> None:
    spec = save(x_train=X, y_train=Y, x_test=X[:6], y_test=Y[:6])
    dataset = data.load(spec, image_size=None, seed=0)
    assert (dataset.name, len(dataset.train), dataset.shape) == ("mine", 30, (9, 8, 1))
    assert dataset.validation is not None
    np.testing.assert_array_equal(dataset.validation.x[..., 0], X[:6])


@pytest.mark.parametrize("names", [("x", "y"), ("x_train", "y_train"), ("x_train", "y_train", "x_test", "y_test")])
def test_survey_says_what_reading_gives(save, names: tuple[str, ...]) -> None:
    spec = save(**{name: X if name[0] == "x" else Y for name in names})
    entry = data.survey(data.find(spec), None)
    dataset = data.load(spec, image_size=None, seed=0)
    assert dataset.validation is not None
    assert entry.shape == dataset.shape
    assert entry.classes == dataset.classes == 3
    assert entry.value_range == dataset.value_range
    assert (entry.examples, entry.validation_examples) == (len(dataset.train), len(dataset.validation))


@pytest.mark.parametrize(
    ("more", "note"),
    [
        ({}, None),
        ({"extra": Y, "about": Y}, "unused arrays in the file: 'about', 'extra'"),
        (
            {"sample_weight": Y},
            "unused arrays in the file: 'sample_weight'; all examples have the same weight",
        ),
        ({"x_test": X}, "unused arrays in the file: 'x_test'"),
        ({"a\x1b]0;X\x07\u202e": Y}, r"unused arrays in the file: 'a\x1b]0;X\x07\u202e'"),
        (
            {f"a{index}": Y for index in range(10)},
            "unused arrays in the file: 'a0', 'a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', …",
        ),
    ],
)
def test_arrays_that_nothing_is_done_with_are_named(save, more: dict[str, Any], note: str | None) -> None:
    spec = save(x=X, y=Y, **more)
    told = () if note is None else (note,)
    assert data.survey(data.find(spec), None).notes == told
    assert tuple(said for said in data.load(spec, image_size=None, seed=0).notes if "unused" in said) == told


def test_survey_leaves_the_catalogue_as_it_is() -> None:
    assert data.survey(data.CATALOGUE["mnist"], None) is data.CATALOGUE["mnist"]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({}, "expected x_train and y_train, .* or x and y; the file is empty"),
        ({"images": X, "y": Y}, "expected x_train and y_train, .*; the file has images, y"),
        ({"x": X, "y": Y[:4]}, "has 30 examples but y(_train)? has 4 labels"),
        ({"x": X, "y": Y - 1}, r"\[0\] is -1"),
        ({"x": X, "y": np.array([object()] * 30)}, "Python objects, which are not loaded as they could run code"),
    ],
)
def test_bad_arrays_are_explained_with_the_files_name(save, arrays: dict[str, Any], words: str) -> None:
    spec = save(**arrays)
    with pytest.raises(DataError, match=f"mine.npz.*{words}"):
        data.load(spec, image_size=None, seed=0)
    with pytest.raises(DataError, match=f"mine.npz.*{words}"):
        data.survey(data.find(spec), None)


@pytest.mark.parametrize("keep", [0, 10, 2000, -300])
def test_broken_file_is_said_to_be_broken(save, tmp_path: Path, keep: int) -> None:
    whole = Path(save(x=X, y=Y)).read_bytes()
    (tmp_path / "mine.npz").write_bytes(whole[:keep])
    with pytest.raises(DataError, match=r"mine.npz is damaged or not an .npz file: \S"):
        data.load(str(tmp_path / "mine.npz"), image_size=None, seed=0)
    with pytest.raises(DataError, match=r"mine.npz is damaged or not an .npz file: \S"):
        data.survey(data.find(str(tmp_path / "mine.npz")), None)


@pytest.mark.parametrize("name", ["x.npy", "y.npy"])
def test_flipped_bits_are_noticed(save, tmp_path: Path, name: str) -> None:
    path = Path(save(x=X, y=Y))
    content = bytearray(path.read_bytes())
    content[content.index(name.encode()) + 300] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataError, match="is damaged"):
        data.load(str(path), image_size=None, seed=0)


def test_plain_array_is_no_npz_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    with path.open("wb") as file:
        np.save(file, X)
    with pytest.raises(DataError, match="is damaged or not an"):
        data.load(str(path), image_size=None, seed=0)
    with pytest.raises(DataError, match="is damaged or not an"):
        data.survey(data.find(str(path)), None)


def test_size_is_for_images_only(save) -> None:
    spec = save(x=X, y=Y)
    with pytest.raises(PlanError, match="only for a folder of images; data is mine"):
        data.load(spec, image_size="8x8", seed=0)
    with pytest.raises(PlanError, match="only for a folder of images"):
        data.survey(data.find("digits"), "8x8")


def test_file_that_vanishes_is_explained(save) -> None:
    entry = data.find(save(x=X, y=Y))
    assert entry.path is not None
    entry.path.unlink()
    with pytest.raises(DataError, match="No such file"):
        read(entry, image_size=None, seed=0)
