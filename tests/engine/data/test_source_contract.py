"""What every source of data keeps: a row for each source, with a function that writes a tiny example of it."""

import json
import wave
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from PIL import Image

from accel_engine import data, memory
from accel_engine.data import dataset as dataset_module
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.fingerprint import VALIDATION, changed_parts, fingerprint
from accel_engine.data.structure import Batch, flatten
from accel_engine.errors import DataError
from engine.data.prepared.records import write as write_records

ROWS = 24


@dataclass(frozen=True)
class Row:
    """A source.

    Attributes:
        write: Writes an example of it to an empty folder, and returns what a plan's ``data`` says.
        options: Of the plan.
        damage: Damages what was written, so that it must be refused; ``None`` if there are no files.
        limits: Whether its examples stay where they are, or are refused, if they do not fit in memory.
    """

    write: Callable[[Path], str]
    options: dict[str, Any] = field(default_factory=dict)
    damage: Callable[[Path], None] | None = None
    limits: bool = True


def cut(path: Path) -> Callable[[Path], None]:
    """Cuts a file in half."""

    def damage(root: Path) -> None:
        content = (root / path).read_bytes()
        (root / path).write_bytes(content[: len(content) // 2 + 5])

    return damage


def spoil(*paths: str) -> Callable[[Path], None]:
    """Replaces files that a pattern finds."""

    def damage(root: Path) -> None:
        for path in (each for pattern in paths for each in root.glob(pattern)):
            path.write_bytes(b"\xff nothing of the kind")

    return damage


def remove(pattern: str) -> Callable[[Path], None]:
    """Removes files."""

    def damage(root: Path) -> None:
        for path in root.glob(pattern):
            path.unlink()

    return damage


def npz(root: Path) -> str:
    np.savez(root / "mine.npz", x=np.arange(3.0 * ROWS).reshape(ROWS, 3), y=np.arange(ROWS) % 3)
    return str(root / "mine.npz")


def npz_splits(root: Path) -> str:
    x, y = np.arange(3.0 * ROWS).reshape(ROWS, 3), np.arange(ROWS) / 3
    np.savez(root / "mine.npz", x=x, y=y, x_val=x[:6] + 1, y_val=y[:6])
    return str(root / "mine.npz")


def table(root: Path) -> str:
    rows = (f"{index / 4},{'ab'[index % 2]},{index // 2 % 2}" for index in range(ROWS))
    (root / "mine.csv").write_text("\n".join(["size,kind,sold", *rows]))
    return str(root / "mine.csv")


def tfrecord(root: Path) -> str:
    description = {"features": {"x": {"shape": [2]}, "label": {"dtype": "int64"}}, "class_names": ["a", "b", "c"]}
    (root / "features.json").write_text(json.dumps(description))
    examples = [{"x": [float(index), 0.0], "label": index % 3} for index in range(ROWS)]
    return str(write_records(root / "mine.tfrecord", examples))


def tfrecord_splits(root: Path) -> str:
    description = {"features": {"x": {"shape": [2]}, "label": {"dtype": "int64"}}, "class_names": ["a", "b", "c"]}
    for split, count in (("train", ROWS), ("val", 6)):
        examples = [{"x": [float(index), 0.0], "label": index % 3} for index in range(count)]
        write_records(root / "mine" / f"{split}.tfrecord", examples)
    (root / "mine" / "features.json").write_text(json.dumps(description))
    return str(root / "mine")


def tensorflow_datasets(root: Path) -> str:
    core, number = "tensorflow_datasets.core.features.", {"dtype": "float32", "encoding": "none"}
    features = {
        "x": {"pythonClassName": core + "Tensor", "tensor": {**number, "shape": {"dimensions": ["2"]}}},
        "label": {"pythonClassName": core + "ClassLabel", "classLabel": {"numClasses": "3"}},
    }
    root = root / "mine"
    examples = [{"x": [float(index), 0.0], "label": index % 3} for index in range(ROWS)]
    write_records(root / "mine-train.tfrecord-00000-of-00001", examples)
    (root / "features.json").write_text(json.dumps({"featuresDict": {"features": features}}))
    split = {"name": "train", "shardLengths": [str(ROWS)]}
    (root / "dataset_info.json").write_text(json.dumps({"name": "mine", "splits": [split]}))
    (root / "label.labels.txt").write_text("a\nb\nc\n")
    return str(root)


def hugging_face(root: Path) -> str:
    root = root / "mine"
    root.mkdir()
    columns = pa.table({"x": [index / 2 for index in range(ROWS)], "label": [index % 3 for index in range(ROWS)]})
    with pa.OSFile(str(root / "data.arrow"), "wb") as file, pa.ipc.new_stream(file, columns.schema) as stream:
        stream.write_table(columns)
    (root / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    label = {"names": ["a", "b", "c"], "_type": "ClassLabel"}
    features = {"x": {"dtype": "float64", "_type": "Value"}, "label": label}
    (root / "dataset_info.json").write_text(json.dumps({"features": features}))
    return str(root)


def parquet(root: Path) -> str:
    label = {"names": ["a", "b", "c"], "_type": "ClassLabel"}
    features = {"x": {"dtype": "float32", "_type": "Value"}, "label": label}
    columns = pa.table({"x": [index / 2 for index in range(ROWS)], "label": [index % 3 for index in range(ROWS)]})
    (root / "mine").mkdir()
    stored = columns.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(stored, root / "mine" / "train-0.parquet")
    return str(root / "mine")


def function(returned: str) -> Callable[[Path], str]:
    def write(root: Path) -> str:
        (root / "mine.py").write_text(
            f"import numpy as np\nx = np.arange(48.0).reshape(24, 2)\ndef load():\n{returned}"
        )
        return f"{root / 'mine.py'}:load"

    return write


def images(root: Path) -> str:
    for index in range(ROWS):
        path = root / "mine" / "abc"[index % 3] / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((6, 5, 3), 10 * index, np.uint8)).save(path)
    return str(root / "mine")


def masks(root: Path) -> str:
    for name in ("images", "masks"):
        (root / "mine" / name).mkdir(parents=True)
    for index in range(ROWS):
        Image.fromarray(np.full((6, 5, 3), 10 * index, np.uint8)).save(root / "mine" / "images" / f"{index}.png")
        mask = (np.arange(30).reshape(6, 5) + index).astype(np.uint8) % 3
        Image.fromarray(mask).save(root / "mine" / "masks" / f"{index}.png")
    return str(root / "mine")


def sounds(root: Path) -> str:
    for index in range(ROWS):
        path = root / "mine" / "abc"[index % 3] / f"{index}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, 800, 0, "NONE", ""))
            file.writeframes(np.full(80, 100 * index, "<i2").tobytes())
    return str(root / "mine")


def odd_sounds(root: Path) -> str:
    """Of several formats, lengths, sample rates and channels."""
    for index in range(ROWS):
        path = root / "mine" / "abc"[index % 3] / f"{index}.{('wav', 'flac', 'ogg')[index % 3]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(index).normal(0, 0.1, (400 + 10 * index, 1 + index // 4 % 2))
        soundfile.write(path, noise, 16_000 if index == 5 else 8000)
    return str(root / "mine")


def texts(root: Path) -> str:
    for index in range(ROWS):
        path = root / "mine" / "abc"[index % 3] / f"{index}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"this is text {index}")
    return str(root / "mine")


def language_text(root: Path) -> str:
    (root / "mine.txt").write_text("to be, or not to be: that is the question. " * 20)
    return str(root / "mine.txt")


SOURCES = {
    "digits": Row(lambda _: "digits", limits=False),
    "synthetic": Row(lambda _: "synthetic:4x3x1:3:40"),
    "npz": Row(npz, damage=cut(Path("mine.npz"))),
    "npz, series": Row(npz, {"window": 3}, damage=cut(Path("mine.npz"))),
    "npz with splits": Row(npz_splits, damage=cut(Path("mine.npz"))),
    "npz with splits, series": Row(npz_splits, {"window": 3}, damage=cut(Path("mine.npz"))),
    "table": Row(table, damage=spoil("mine.csv"), limits=False),
    "table, series": Row(table, {"window": 3, "target": ("size",), "features": ("size",)}, limits=False),
    "TFRecord": Row(tfrecord, damage=cut(Path("mine.tfrecord"))),
    "TFRecord with splits": Row(tfrecord_splits, damage=cut(Path("mine/train.tfrecord"))),
    "Parquet of the hub": Row(parquet, damage=cut(Path("mine/train-0.parquet"))),
    "TensorFlow Datasets": Row(tensorflow_datasets, damage=cut(Path("mine/mine-train.tfrecord-00000-of-00001"))),
    "Hugging Face": Row(hugging_face, damage=cut(Path("mine/data.arrow"))),
    "function, arrays": Row(function(" return x, np.arange(24) % 3"), damage=spoil("mine.py"), limits=False),
    "function, splits": Row(function(" return (x, x / 3), (x[:6], x[:6])"), damage=spoil("mine.py"), limits=False),
    "function, stream": Row(
        function(" import tensorflow as tf\n return tf.data.Dataset.from_tensor_slices(x).shuffle(24).batch(4)"),
        damage=spoil("mine.py"),
    ),
    "images": Row(images, damage=spoil("mine/*/*.png")),
    "masks": Row(masks, damage=spoil("mine/*/*.png")),
    "sounds": Row(sounds, damage=spoil("mine/*/*.wav")),
    "sounds of several formats": Row(odd_sounds, damage=spoil("mine/*/*")),
    "sounds, a window": Row(odd_sounds, {"window": 300}),
    "texts": Row(texts, damage=remove("mine/*/*.txt"), limits=False),
    "language": Row(language_text, {"window": 8}, damage=spoil("mine.txt"), limits=False),
}


@pytest.fixture(params=SOURCES)
def row(request: pytest.FixtureRequest) -> Row:
    return SOURCES[request.param]


def described(spec: str, options: DataOptions) -> data.DatasetEntry:
    return data.survey(data.find(spec), options)


def first_batches(dataset: Dataset) -> list[Batch]:
    if isinstance(dataset.train, Split):
        rows = np.arange(min(len(dataset.train), ROWS))
        return [dataset.train.take(rows[at : at + 4]) for at in range(0, len(rows), 4)]
    return list(islice(dataset.train.read(0, 0), 6))


def same(one: Batch, other: Batch) -> None:
    for array, again in zip(flatten(one), flatten(other), strict=True):
        np.testing.assert_array_equal(array, again)


class TestSource:
    def test_it_describes_what_it_loads(self, row: Row, tmp_path: Path) -> None:
        spec, options = row.write(tmp_path), DataOptions(**row.options)
        entry, dataset = described(spec, options), data.load(spec, options)
        parts = (dataset.train, dataset.validation, dataset.test)
        for count, part in zip((entry.examples, entry.validation_examples, entry.test_examples), parts, strict=True):
            if count is not None:
                assert count == (0 if part is None else len(part))  # type: ignore[arg-type]
        if entry.spec is not None:
            assert entry.spec == dataset.spec
            assert (entry.kind, entry.task) == (dataset.kind, dataset.task)
        if entry.shape is not None:
            assert entry.shape == dataset.shape
        if entry.value_range is not None:
            assert entry.value_range == dataset.value_range
        if entry.classes is not None:
            assert entry.classes == dataset.classes
        assert entry.class_names in ((), dataset.class_names)
        assert set(entry.changes) <= set(dataset.changes)
        for batch in first_batches(dataset):
            for array, expected in zip(flatten(batch), flatten(dataset.spec), strict=True):
                assert array.dtype.name == expected.dtype or expected.dtype == "string"
                assert all(side in (None, own) for side, own in zip(expected.shape, array.shape[1:], strict=True))

    def test_the_same_seed_gives_the_same_splits(self, row: Row, tmp_path: Path) -> None:
        spec, options = row.write(tmp_path), DataOptions(**row.options, seed=3)
        one, other = (data.load(spec, options) for _ in range(2))
        for batch, again in zip(first_batches(one), first_batches(other), strict=True):
            same(batch, again)

    def test_evaluated_data_leaves_the_training_examples_as_they_were(self, row: Row, tmp_path: Path) -> None:
        roots = [tmp_path / name for name in ("own", "other")]
        for root in roots:
            root.mkdir()
        spec, other = map(row.write, roots)
        if not data.find(spec).is_own or data.find(spec).reader.endswith("TensorFlowDatasets"):
            pytest.skip("it takes no validation data")
        plain = data.load(spec, DataOptions(**row.options))
        kept = data.load(spec, DataOptions(**row.options, validation_data=other, keeps_split=True))
        assert set(changed_parts(kept, fingerprint(plain))) <= {VALIDATION}
        if isinstance(kept.validation, Split):
            whole = data.load(spec, DataOptions(**row.options, split="none")).train
            assert isinstance(whole, Split)
            assert len(kept.validation) == len(whole)

    def test_it_is_read_from_any_position_on(self, row: Row, tmp_path: Path) -> None:
        """What a run needs that continues in the middle of an epoch."""
        spec, options = row.write(tmp_path), DataOptions(**row.options, seed=3)
        batches, again = first_batches(data.load(spec, options)), data.load(spec, options).train
        if isinstance(again, Split):
            same(batches[1], again.take(np.arange(4, 8)))
            same(batches[0], again.take(np.arange(4)))
        else:
            for batch, expected in zip(again.read(0, 2), batches[2:], strict=True):
                same(batch, expected)

    def test_what_is_damaged_is_refused(self, row: Row, tmp_path: Path) -> None:
        if row.damage is None:
            return
        spec, options = row.write(tmp_path), DataOptions(**row.options)
        row.damage(tmp_path)
        with pytest.raises(DataError) as caught:
            data.load(spec, options)
        assert len(str(caught.value)) < 1500
        with suppress(DataError):  # what only reading finds is not seen yet
            described(spec, options)

    def test_what_does_not_fit_in_memory_is_not_read_into_it(
        self, row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not row.limits:
            return
        spec, options = row.write(tmp_path), DataOptions(**row.options)
        for module in (memory, dataset_module):
            monkeypatch.setattr(module, "available_memory", lambda: 64)
        with suppress(DataError):
            train = data.load(spec, options).train
            assert not isinstance(train, Split) or not all(
                isinstance(each, np.ndarray) for each in flatten(train.inputs)
            )


FOLDERS = [name for name, row in SOURCES.items() if row.write in (images, masks, sounds, odd_sounds, texts)]
"""The sources that read files as they are needed, if these do not fit in memory."""


@pytest.mark.parametrize("name", FOLDERS)
class TestFolders:
    def test_what_changes_is_known_before_reading(self, name: str, tmp_path: Path) -> None:
        row = SOURCES[name]
        spec, options = row.write(tmp_path), DataOptions(**row.options)
        assert described(spec, options).changes == data.load(spec, options).changes

    def test_each_example_is_in_one_split(self, name: str, tmp_path: Path) -> None:
        row = SOURCES[name]
        spec, options = row.write(tmp_path), DataOptions(**row.options, validation_split=0.25, test_split=0.25)
        dataset, whole = data.load(spec, options), data.load(spec, DataOptions(**row.options, split="none"))
        parts = [rows_of(split) for split in (dataset.train, dataset.validation, dataset.test)]
        assert all(parts)
        assert sorted(row for part in parts for row in part) == sorted(rows_of(whole.train))
        entry = described(spec, options)
        assert [entry.examples, entry.validation_examples, entry.test_examples] == list(map(len, parts))

    def test_it_is_read_again_equal_in_memory_or_not(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So that a run continues in the middle of an epoch, and elsewhere."""
        row = SOURCES[name]
        spec, options = row.write(tmp_path), DataOptions(**row.options)
        held = data.load(spec, options)
        monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
        lazy = data.load(spec, options)
        assert fingerprint(held) == fingerprint(lazy)
        assert held.changes == lazy.changes
        assert rows_of(held.train) == rows_of(lazy.train)
        assert isinstance(held.train, Split)
        assert isinstance(lazy.train, Split)
        assert held.train.nbytes == lazy.train.nbytes or name == "texts"  # whose files are counted
        rows = np.array([3, 11, 3])
        same(held.train.take(rows), lazy.train.take(rows))


def rows_of(split: Any) -> list[bytes]:
    """What identifies each example of a split: the bytes of its arrays."""
    assert isinstance(split, Split)
    arrays = flatten(split.take(np.arange(len(split))))
    return [b"".join(np.asarray(array[row]).tobytes() for array in arrays) for row in range(len(split))]
