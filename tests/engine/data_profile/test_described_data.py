"""What loading tells about a dataset."""

import json
from collections.abc import Iterator

import numpy as np

from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.source import DatasetEntry, EntryColumn
from accel_engine.data.structure import ArraySpec, Batch
from accel_engine.data_profile.described_data import DescribedData, entry_of

FOUND = DatasetEntry("mine:load", "What load in mine.py returns", "python_source:PythonSource", function="mine.py:load")


def test_arrays_have_ranges_classes_and_examples() -> None:
    inputs = {"age": np.array([1.0, np.nan, 3.0, 4.0], np.float32), "name": np.array(["a", "b", "c", "d"])}
    split = Split(inputs, np.array([0, 2, 2, 2], np.int32), np.ones(4, np.float32))
    entry = entry_of(Dataset("mine", split, split, class_names=("x", "y", "z"), task="classification"), FOUND)
    assert entry.name == "mine:load"
    assert (entry.examples, entry.validation_examples, entry.test_examples, entry.classes) == (4, 4, 0, 3)
    assert entry.shape is None
    assert entry.class_counts == (1, 0, 3)
    assert entry.columns == (
        EntryColumn("age", "float32", "input", 1, "1 to 4"),
        EntryColumn("name", "string", "input", None, ""),
        EntryColumn("targets", "int32", "target", 0, "0 to 2"),
        EntryColumn("weights", "float32", "weight", 0, "1 to 1"),
    )
    assert entry.samples[1] == ("1", "age nan, name 'b', targets 2, weights 1")
    described = json.loads(json.dumps(DescribedData.of(entry).to_json()))
    assert described["inputs_spec"] == {
        "age": "float32",
        "name": "string",
    }


class Endless:
    """A stream of images without targets."""

    spec = Batch(ArraySpec((None, 8), "uint8"))
    batches = None
    batch_size = 2

    def read(self, epoch: int, position: int) -> Iterator[Batch]:
        while True:
            yield Batch(np.full((2, 5, 8), 7, np.uint8))


def test_a_stream_is_described_by_its_first_batch() -> None:
    entry = entry_of(Dataset("mine", Endless()), FOUND)
    assert entry.examples is None
    assert entry.validation_examples == 0
    assert entry.shape is None
    assert entry.columns == (EntryColumn("inputs", "uint8 ?x8", "input", 0, "7 to 7"),)
    assert len(entry.samples) == 2
    assert entry.samples[0] == ("0", "inputs [7 7 7 7 7 7 …]")


class Rows:
    """An array whose rows are made when they are read."""

    shape = (1000, 3)
    dtype = np.dtype(np.float32)
    nbytes = 12_000

    def __init__(self) -> None:
        self.taken = 0

    def take(self, rows: np.ndarray) -> np.ndarray:
        self.taken += len(rows)
        return np.ones((len(rows), 3), np.float32)

    def __len__(self) -> int:
        return 1000


def test_few_examples_are_read_of_those_that_are_not_in_memory() -> None:
    rows = Rows()
    entry = entry_of(Dataset("mine", Split(rows, np.zeros((1000, 1), np.float32))), FOUND)
    assert entry.examples == 1000
    assert entry.shape == (3,)
    assert rows.taken < 100
