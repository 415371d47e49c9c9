"""Validation streams end: where the plan says, or after many batches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Dataset
from accel_engine.data.python_source import returned_dataset
from accel_engine.errors import DataError, PlanError

START = """
import itertools, keras, numpy as np, tensorflow as tf
x, y = np.arange(40.)[:, None], np.arange(40) % 4
def ds(): return tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
def gen(count):
    for index in count:
        yield np.full((4, 1), index, np.float32), np.zeros(4)
class Batches(keras.utils.PyDataset):
    num_batches = None
    def __getitem__(self, index): return np.full((4, 1), index, np.float32), np.zeros(4)
"""


@pytest.fixture
def load(tmp_path: Path):
    def load(validation: str, train: str = "ds()", **options: Any) -> Dataset:
        path = tmp_path / "mine.py"
        path.write_text(f"{START}\ndef load(): return {{'train': {train}, 'validation': {validation}}}\n")
        return data.load(f"{path}:load", DataOptions(**options))

    return load


def firsts(dataset: Dataset) -> list[float]:
    return [float(np.asarray(batch.inputs)[0, 0]) for batch in dataset.validation.read(0, 0)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("validation", "expected", "known"),
    [
        ("ds()", [0, 4, 8], 3),
        ("ds().repeat()", [0, 4, 8], None),
        ("gen(itertools.count())", [0, 1, 2], None),
        ("gen(range(2))", [0, 1], None),
        ("Batches()", [0, 1, 2], None),
    ],
)
def test_validation_steps_end_every_pass(load, validation: str, expected: list[float], known: int | None) -> None:
    dataset = load(validation, train="gen(range(9))", validation_steps=3)
    assert firsts(dataset) == expected
    assert firsts(dataset) == expected
    assert dataset.validation.batches == known
    assert dataset.validation.spec.inputs.shape == (1,)
    assert [float(each.inputs[0, 0]) for each in dataset.validation.read(0, 1)] == expected[1:]
    assert not [note for note in dataset.notes if "validation batches" in note]


@pytest.mark.parametrize("validation", ["gen(itertools.count())", "Batches()"])
def test_a_stream_of_unknown_length_is_bounded(load, monkeypatch: pytest.MonkeyPatch, validation: str) -> None:
    monkeypatch.setattr(returned_dataset, "MAX_VALIDATION_BATCHES", 5)
    dataset = load(validation)
    assert firsts(dataset) == firsts(dataset) == [0, 1, 2, 3, 4]
    assert "the number of validation batches is unknown: 5 are read at most" in " ".join(dataset.notes)


def test_a_known_length_is_read_whole(load) -> None:
    dataset = load("ds()")
    assert len(firsts(dataset)) == dataset.validation.batches == 10
    assert not dataset.notes


def test_an_endless_dataset_needs_the_steps(load) -> None:
    with pytest.raises(DataError, match=r"never ends: give it an end with take\(\), or set --validation-steps"):
        load("ds().repeat()")


@pytest.mark.parametrize("validation", ["(x, y)", "None"])
def test_arrays_have_no_steps(load, validation: str) -> None:
    with pytest.raises(PlanError, match=r"^validation_steps = 3: only for a validation stream"):
        load(validation, validation_steps=3)


def test_files_have_no_steps() -> None:
    with pytest.raises(PlanError, match=r"^validation_steps = 3: only for a function"):
        data.survey(data.find("digits"), DataOptions(validation_steps=3))
