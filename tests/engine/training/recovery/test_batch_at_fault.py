"""Batches whose values are not finite or extreme: which rows, columns, pixels and files."""

import stat
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.structure import Batch
from accel_engine.training.recovery import batch_at_fault
from accel_engine.training.recovery.batch_at_fault import describe_batch

ROWS = np.array([7, 3, 9])


def table(**changes: float) -> Dataset:
    """Twenty rows of two columns of very different scales."""
    x = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32) * [1.0, 1e6]
    for place, value in changes.items():
        x[int(place[1:]), "ab".index(place[0])] = value
    return Dataset("t", Split(x.astype(np.float32), np.arange(20)), feature_names=("age", "income"))


def seen(dataset: Dataset, rows: np.ndarray = ROWS) -> Any:
    assert isinstance(dataset.train, Split)
    return describe_batch(5, dataset.train.take(rows), rows, dataset)


def test_healthy_batches_have_nothing_wrong() -> None:
    batch = seen(table())

    assert (batch.text, batch.wrong.any()) == ("", False)
    assert batch.named(table()) == "training examples 7, 3, 9"


def test_a_value_that_is_not_finite() -> None:
    for value in (np.nan, np.inf):
        batch = seen(table(b3=value))
        assert batch.text == "inputs not finite in column income"
        assert batch.named(table()) == "training examples 3"


def test_a_value_is_extreme_for_its_column() -> None:
    assert seen(table(a9=1e5)).text == "inputs extreme in column age"
    assert seen(table(b9=1e8)).text == ""
    assert seen(table(b9=1e11)).text == "inputs extreme in column income"


def test_other_examples_that_are_not_finite_are_no_measure() -> None:
    assert seen(table(a0=np.nan, a1=np.inf, a9=1e5)).text == "inputs extreme in column age"


def test_pixels_and_targets() -> None:
    x = np.zeros((20, 4, 4, 1), np.float32)
    x[3, 1, 2, 0] = np.nan
    dataset = Dataset("t", Split({"image": x}, np.where(np.arange(20) == 9, np.inf, 1.0)), kind="images")
    batch = seen(dataset)

    assert batch.text == "inputs/image not finite, 1 values, first at pixel 1, 2, 0; targets not finite"
    assert batch.named(dataset) == "training examples 3, 9"


def test_files_are_named() -> None:
    class Files(np.ndarray):
        files = tuple(f"{each}.png" for each in range(20))

    dataset = table(a3=np.nan)
    assert isinstance(dataset.train, Split)
    named = Dataset("t", Split(dataset.train.inputs.view(Files), dataset.train.targets))

    assert seen(named).named(named) == "files 3.png"


def test_a_stream_has_no_rows() -> None:
    batch = describe_batch(5, Batch(np.array([[1.0], [np.nan]]), np.zeros(2)), None, table())

    assert batch.text == "inputs not finite in column 0"
    assert batch.named(table()) == "examples 1 of the batch of step 5"


def test_what_is_kept_is_bounded_and_only_the_users(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(batch_at_fault, "MAX_BYTES", 40)
    batch = seen(table(a9=np.nan))
    path = tmp_path / batch.save(tmp_path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with np.load(path) as kept:
        assert kept["rows"].tolist() == [9, 7]  # those at fault first
        assert kept["targets"].tolist() == [9, 7]
        assert np.isnan(kept["inputs"][0, 0])


def test_texts_are_kept_without_python_objects(tmp_path: Path) -> None:
    texts = np.array(["a", "bcd"], object)
    batch = describe_batch(1, Batch({"text": texts, "x": np.array([1.0, np.nan])}, np.zeros(2)), None, table())

    with np.load(tmp_path / batch.save(tmp_path)) as kept:
        assert kept["inputs_text"].tolist() == ["bcd", "a"]
