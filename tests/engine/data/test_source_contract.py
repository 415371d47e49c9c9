"""What every source does: it describes what it loads, splits it, reads it again equal, refuses what is damaged."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from accel_engine import data
from accel_engine.data import dataset as dataset_module
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.fingerprint import fingerprint
from accel_engine.data.structure import flatten
from accel_engine.errors import DataError


@dataclass(frozen=True)
class Example:
    """A source with some examples.

    Attributes:
        write: Writes at least 20 examples into a directory, and returns what a plan calls them.
        damage: Makes what was written unreadable.
        options: Options that it needs.
    """

    write: Callable[[Path], Path | str]
    damage: Callable[[Path], object]
    options: dict[str, Any] = field(default_factory=dict)


def pixels(number: int) -> np.ndarray:
    return np.full((5, 4, 3), 10 * number, np.uint8)


def save(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def write_images(root: Path) -> Path:
    for number in range(24):
        save(root / "photos" / "ab"[number % 2] / f"{number}.png", pixels(number))
    return root / "photos"


def write_masks(root: Path) -> Path:
    for number in range(24):
        save(root / "scenes" / "images" / f"{number}.png", pixels(number))
        save(root / "scenes" / "masks" / f"{number}.png", np.eye(5, 4, number % 3, dtype=np.uint8))
    (root / "scenes" / "classes.txt").write_text("sky\nsea\n")
    return root / "scenes"


def cut_all(root: Path) -> None:
    """Leave the first bytes of each file."""
    for path in root.rglob("*"):
        if path.is_file() and path.suffix != ".txt":
            path.write_bytes(path.read_bytes()[:20])


SOURCES = {
    "image folder": Example(write_images, cut_all),
    "mask folder": Example(write_masks, cut_all),
}
"""The sources; whoever adds one adds its row."""


@pytest.fixture(params=SOURCES)
def example(request: pytest.FixtureRequest) -> Example:
    return SOURCES[request.param]


def options_of(example: Example, **options: Any) -> DataOptions:
    return DataOptions(**{**example.options, **options})


def count(split: Any) -> int:
    return len(split) if split is not None else 0


def rows_of(split: Any) -> list[bytes]:
    """What identifies each example of a split: the bytes of its arrays."""
    assert isinstance(split, Split)
    arrays = flatten(split.take(np.arange(len(split))))
    return [b"".join(np.asarray(array[row]).tobytes() for array in arrays) for row in range(len(split))]


class TestSourceContract:
    def test_it_describes_what_it_loads(self, example: Example, tmp_path: Path) -> None:
        spec, options = str(example.write(tmp_path)), options_of(example)
        entry, dataset = data.survey(data.find(spec), options), data.load(spec, options)
        assert (entry.name, entry.kind, entry.task) == (dataset.name, dataset.kind, dataset.task)
        assert (entry.shape, entry.spec, entry.value_range or dataset.value_range) == (
            dataset.shape,
            dataset.spec,
            dataset.value_range,
        )
        assert (entry.class_names, entry.classes or 0) == (dataset.class_names, dataset.classes)
        assert [entry.examples, entry.validation_examples, entry.test_examples] == [
            count(split) for split in (dataset.train, dataset.validation, dataset.test)
        ]
        assert [str(change) for change in entry.changes] == [str(change) for change in dataset.changes]

    def test_it_splits(self, example: Example, tmp_path: Path) -> None:
        spec, options = str(example.write(tmp_path)), options_of(example, validation_split=0.25, test_split=0.25)
        dataset, whole = data.load(spec, options), data.load(spec, options_of(example, split="none"))
        parts = [rows_of(split) for split in (dataset.train, dataset.validation, dataset.test)]
        assert all(parts)
        assert sorted(row for part in parts for row in part) == sorted(rows_of(whole.train))
        entry = data.survey(data.find(spec), options)
        assert [entry.examples, entry.validation_examples, entry.test_examples] == list(map(len, parts))

    def test_it_is_read_again_equal_in_memory_or_not(
        self, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So that a run continues in the middle of an epoch, and elsewhere."""
        spec, options = str(example.write(tmp_path)), options_of(example)
        held = data.load(spec, options)
        monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
        lazy = data.load(spec, options)
        assert fingerprint(held) == fingerprint(lazy)
        assert sizes(held) == sizes(lazy)
        assert rows_of(held.train) == rows_of(lazy.train)
        assert isinstance(lazy.train, Split)
        rows = np.array([3, 11, 3])
        for one, other in zip(flatten(held.train.take(rows)), flatten(lazy.train.take(rows)), strict=True):
            np.testing.assert_array_equal(one, other)

    def test_it_refuses_what_cannot_be_read(self, example: Example, tmp_path: Path) -> None:
        spec, options = str(example.write(tmp_path)), options_of(example)
        example.damage(tmp_path)
        with pytest.raises(DataError):
            data.survey(data.find(spec), options)
        with pytest.raises(DataError):
            data.load(spec, options)


def sizes(dataset: Dataset) -> list[int]:
    """The bytes of each split, which are known before it is read."""
    return [split.nbytes for split in (dataset.train, dataset.validation, dataset.test) if isinstance(split, Split)]
