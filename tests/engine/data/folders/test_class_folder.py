"""Splits, skipped files and progress, which all folders of files by class share; shown with images."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from accel_engine import data
from accel_engine.data import dataset as dataset_module
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Split
from accel_engine.errors import DataError, PlanError


def write(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tf.io.encode_png(np.full((2, 2, 1), value, np.uint8)).numpy())


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A folder with a training and a test split; the value of an image tells its class, 0 or 1, and its number."""
    for part, count in (("train", 10), ("test", 4)):
        for label, name in enumerate(("a", "b")):
            for index in range(count):
                write(
                    tmp_path / "parts" / part / name / f"{index}.png", 100 * label + index + (50 if count == 4 else 0)
                )
    return tmp_path / "parts"


def load(path: Path, **options: Any) -> dataset_module.Dataset:
    return data.load(str(path), DataOptions(**options))


def values(split: Any) -> list[int]:
    assert isinstance(split, Split)
    inputs = split.take(np.arange(len(split))).inputs
    np.testing.assert_array_equal(inputs[:, 0, 0, 0] // 100, split.targets)
    found: list[int] = inputs[:, 0, 0, 0].tolist()
    return found


TEST_VALUES = [*range(50, 54), *range(150, 154)]


def test_a_test_split_validates_unless_the_plan_asks_for_a_split(parts: Path) -> None:
    dataset = load(parts)
    assert (len(dataset.train), values(dataset.validation), dataset.test) == (20, TEST_VALUES, None)
    assert dataset.notes == (f"validating on {parts / 'test'}, as there is no validation split",)
    dataset = load(parts, split="stratified", validation_split=0.2)
    assert (len(dataset.train), values(dataset.test)) == (16, TEST_VALUES)
    assert np.bincount(dataset.validation.targets).tolist() == [2, 2]
    assert not {*values(dataset.train)} & {*values(dataset.validation)}
    assert dataset.notes == ("validation split: 4 of 20 images",)
    dataset = load(parts, split="none")
    assert (len(dataset.train), dataset.validation, values(dataset.test)) == (20, None, TEST_VALUES)


def test_three_splits_of_a_folder_are_kept(parts: Path) -> None:
    for name in ("a", "b"):
        write(parts / "val" / name / "1.png", 60 + 100 * (name == "b"))
    dataset = load(parts)
    assert (len(dataset.train), values(dataset.validation), values(dataset.test)) == (20, [60, 160], TEST_VALUES)
    assert dataset.notes == ()
    entry = data.survey(data.find(str(parts)), DataOptions())
    assert (entry.examples, entry.validation_examples, entry.test_examples) == (20, 2, 8)
    assert (entry.class_names, entry.class_counts) == (("a", "b"), (15, 15))
    assert entry.spec == dataset.spec
    assert entry.samples[0] == ("train/a/0.png", "a")
    assert entry.samples[-1] == ("train/b/9.png", "b")


def test_test_split_of_a_folder_without_splits(parts: Path) -> None:
    dataset = load(parts / "train", test_split=0.2)
    assert [len(split) for split in (dataset.train, dataset.validation, dataset.test)] == [14, 2, 4]
    everything = [value for split in (dataset.train, dataset.validation, dataset.test) for value in values(split)]
    assert sorted(everything) == [*range(10), *range(100, 110)]
    assert dataset.notes == ("validation split: 2 of 20 images", "test split: 4 of 20 images")
    entry = data.survey(data.find(str(parts / "train")), DataOptions(test_split=0.2))
    assert (entry.examples, entry.validation_examples, entry.test_examples) == (14, 2, 4)


def test_a_validation_folder_of_its_own(parts: Path, tmp_path: Path) -> None:
    write(tmp_path / "mine" / "b" / "1.png", 199)
    dataset = load(parts, validation_data=str(tmp_path / "mine"))
    assert (values(dataset.validation), values(dataset.test), len(dataset.train)) == ([199], TEST_VALUES, 20)
    with pytest.raises(PlanError, match=r"validation_data = .* must be a folder"):
        load(parts, validation_data=str(tmp_path / "none"))


@pytest.mark.parametrize("invalid_examples", ["auto", "skip"])
@pytest.mark.parametrize("in_memory", [True, False])
def test_damaged_files_are_skipped_and_labels_stay_with_their_files(
    parts: Path, in_memory: bool, invalid_examples: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_memory:
        monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
    damaged = [parts / "train" / name for name in ("a/0.png", "a/3.png", "b/0.png", "b/7.png")]
    for path in damaged:
        path.write_bytes(path.read_bytes()[:45])
    if in_memory:
        with pytest.raises(DataError, match=f"cannot decode the image {damaged[0]}: "):
            load(parts, invalid_examples="fail")
    dataset = load(parts, invalid_examples=invalid_examples)
    assert values(dataset.train) == [1, 2, 4, 5, 6, 7, 8, 9, *range(101, 107), 108, 109]
    assert isinstance(dataset.train.inputs, np.ndarray) is in_memory
    assert dataset.warnings[-1] == "skipped 4 of 28 examples that cannot be read: a/0.png, a/3.png, b/0.png and 1 more"


def test_folder_in_which_nothing_can_be_read(parts: Path) -> None:
    for path in parts.rglob("*.png"):
        path.write_bytes(path.read_bytes()[:45])
    with pytest.raises(DataError, match="not one of 28 files can be read: cannot decode the image "):
        load(parts, invalid_examples="skip")


def test_progress_covers_all_splits(parts: Path) -> None:
    reports: list[tuple[int, int]] = []
    data.load(str(parts), DataOptions(), lambda done, total: reports.append((done, total)))
    assert reports[-1] == (28, 28)
    assert reports == sorted(reports)
