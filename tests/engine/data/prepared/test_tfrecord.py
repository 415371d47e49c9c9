import gzip
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from accel_engine import data
from accel_engine.data import dataset as dataset_module
from accel_engine.data.data_options import DataOptions
from accel_engine.data.prepared import records as record_files
from accel_engine.data.prepared.features import parse_example
from accel_engine.errors import DataError, PlanError
from engine.data.prepared.records import write


def example(index: int) -> dict[str, Any]:
    pixels = np.full((4, 5, 3), 10 * index, np.uint8)
    return {
        "image": tf.io.encode_png(pixels).numpy(),
        "raw": np.arange(6, dtype=np.uint16).tobytes(),
        "numbers": [index / 2, -1.0],
        "words": list(range(index)) if index else [],
        "name": f"n° {index}".encode(),
        "label": index % 3,
        "weight": index + 1.0,
    }


DESCRIPTION = {
    "features": {
        "image": {"encoding": "image", "shape": [4, 5, 3]},
        "raw": {"encoding": "raw", "dtype": "uint16", "shape": [2, 3]},
        "numbers": {"dtype": "float32", "shape": [2]},
        "words": {"dtype": "int32", "shape": [4], "pad": -1},
        "name": {"dtype": "string"},
        "label": {"dtype": "int64"},
        "weight": {"dtype": "float32"},
    },
    "target": "label",
    "weight": "weight",
}


def describe(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(DESCRIPTION | changes))


@pytest.fixture
def records(tmp_path: Path) -> Path:
    examples = [example(index) for index in range(12)]
    for each in examples:
        each["words"] = each["words"] or [7]
    describe(tmp_path / "features.json")
    return write(tmp_path / "mine.tfrecord", examples)


def load(path: Path, **options: Any) -> dataset_module.Dataset:
    return data.load(str(path), DataOptions(**options))


def survey(path: Path, **options: Any) -> data.DatasetEntry:
    return data.survey(data.find(str(path)), DataOptions(**options))


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_features_of_all_kinds(
    records: Path, in_memory: bool, compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_memory:
        monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
    if compression:
        contents = [record.numpy() for record in tf.data.TFRecordDataset(str(records))]
        with tf.io.TFRecordWriter(str(records), compression) as file:
            for content in contents:
                file.write(content)
    dataset = load(records, split="none")
    assert dataset.train.in_memory is in_memory
    batch = dataset.train.take(np.array([11, 3, 0]))
    inputs = batch.inputs
    assert inputs["image"][:, 1, 2, 0].tolist() == [110, 30, 0]
    assert inputs["image"].shape == (3, 4, 5, 3)
    assert inputs["raw"].tolist() == 3 * [[[0, 1, 2], [3, 4, 5]]]
    assert inputs["raw"].dtype == np.uint16
    np.testing.assert_array_equal(inputs["numbers"], np.array([[5.5, -1], [1.5, -1], [0, -1]], np.float32))
    assert inputs["words"].tolist() == [[0, 1, 2, 3], [0, 1, 2, -1], [7, -1, -1, -1]]
    assert inputs["name"].tolist() == ["n° 11", "n° 3", "n° 0"]
    assert batch.targets.tolist() == [2, 0, 0]
    assert batch.targets.dtype == np.int32
    assert batch.weights.tolist() == [12, 4, 1]
    assert (dataset.task, dataset.class_names) == ("classification", ("0", "1", "2"))
    entry = survey(records, split="none")
    assert {name: str(spec) for name, spec in entry.spec.inputs.items()} == {
        name: str(spec) for name, spec in dataset.spec.inputs.items()
    }
    assert entry.examples == (None if compression else 12)


def test_columns_are_chosen_by_the_plan(records: Path) -> None:
    dataset = load(records, features=("image",), image_size="8x10")
    assert (dataset.shape, dataset.kind, dataset.value_range.pixels) == ((8, 10, 3), "images", True)
    assert (len(dataset.train), len(dataset.validation)) == (11, 1)
    dataset = load(records, features=("words",), target=("numbers",))
    assert (dataset.task, dataset.spec.targets.shape, dataset.class_names) == ("regression", (2,), ())
    with pytest.raises(PlanError, match="target = 'nothing': the data has no feature 'nothing'; known: image, raw, "):
        survey(records, target=("nothing",))


def test_splits_are_files_of_a_folder(tmp_path: Path) -> None:
    for name, first, last in (
        ("train-00000-of-00002", 0, 4),
        ("train-00001-of-00002", 4, 6),
        ("validation", 6, 9),
        ("test", 9, 11),
    ):
        examples = [{"x": [float(index), 0.0], "y": index % 2} for index in range(first, last)]
        write(tmp_path / f"{name}.tfrecord", examples)
    description = {"features": {"x": {"shape": [2]}, "y": {"dtype": "int64"}}, "class_names": ["even", "odd"]}
    (tmp_path / "features.json").write_text(json.dumps(description))
    dataset = load(tmp_path)
    assert [split.inputs[:, 0].tolist() for split in (dataset.train, dataset.validation, dataset.test)] == [
        [0, 1, 2, 3, 4, 5],
        [6, 7, 8],
        [9, 10],
    ]
    assert dataset.class_names == ("even", "odd")
    entry = survey(tmp_path)
    assert (entry.examples, entry.validation_examples, entry.test_examples, entry.classes) == (6, 3, 2, 2)


def test_a_missing_description_is_suggested(records: Path) -> None:
    (records.parent / "features.json").unlink()
    with pytest.raises(DataError) as caught:
        survey(records)
    message, _, suggestion = str(caught.value).partition("\n")
    assert f"write {records.parent / 'features.json'}, such as this one" in message
    # It can be used as it is.
    (records.parent / "mine.features.json").write_text(suggestion)
    dataset = load(records, ignore=("words",))
    assert sorted(dataset.spec.inputs) == ["image", "name", "numbers", "raw", "weight"]
    assert dataset.task == "classification"


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ({"label": {"dtype": "float32"}}, "describes label as float32, but .* has int64 values"),
        ({"numbers": {"shape": [3]}}, r"gives numbers the shape \[3\], 3 values, but the first record .* has 2"),
        ({"colour": {"shape": []}}, "describes colour, but the first record .* has image, label, name"),
        ({"label": {"type": "int64"}}, "the feature label has type; it may have dtype, shape, encoding, pad"),
        (
            {"label": {"dtype": "int64", "shape": [2], "pad": "x"}},
            "the feature label has the pad 'x', which is no int64",
        ),
        ({"image": {"encoding": "image"}}, r"the image image needs a shape \[height, width, channels\]"),
    ],
)
def test_descriptions_that_do_not_fit(records: Path, features: dict[str, Any], said: str) -> None:
    describe(records.parent / "features.json", features=features, target=[], weight="")
    for read in (survey, load):
        with pytest.raises(DataError, match=said):
            read(records)


@pytest.mark.parametrize("in_memory", [True, False])
def test_damaged_records_are_named_or_skipped(records: Path, in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [example(index) for index in range(1, 10)]
    examples[4]["image"] = examples[4]["image"][:40]
    examples[6]["numbers"] = [1.0]
    write(records, examples)
    if not in_memory:
        monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
    else:
        with pytest.raises(DataError, match=f"cannot read record 4 of {records}: an image in it cannot be decoded"):
            load(records)
    dataset = load(records, invalid_examples="skip", split="none")
    batch = dataset.train.take(np.arange(7))
    assert batch.weights.tolist() == [2, 3, 4, 5, 7, 9, 10]
    assert batch.inputs["image"][:, 0, 0, 0].tolist() == [10, 20, 30, 40, 60, 80, 90]
    padded, left_out = map(str, dataset.changes)
    assert padded == "lists of other lengths padded: words to [4]; longer ones are cut"
    assert "2 of 9 examples left out: cannot read record 4 of" in left_out
    assert "record 6" in left_out


@pytest.mark.parametrize(
    ("features", "values", "said"),
    [
        ({"words": {"dtype": "uint8", "shape": [2]}}, {"words": [4, 300]}, "the value 300, which uint8 cannot hold"),
        ({"words": {"dtype": "uint8", "shape": [2]}}, {"words": [-1, 3]}, "the value -1, which uint8 cannot hold"),
        ({"words": {"dtype": "bool", "shape": [2]}}, {"words": [1, 2]}, "the value 2, which bool cannot hold"),
        ({"numbers": {"dtype": "float16", "shape": [1]}}, {"numbers": [1e6]}, "the value 1e.06, which float16 cannot"),
        ({"numbers": {"shape": [1]}}, {"numbers": [float("nan")]}, "numbers has numbers that are NaN or infinite"),
        ({"name": {"dtype": "string"}}, {"name": b"ab\xff"}, "a text that is not UTF-8, at byte 2"),
        ({"raw": {"encoding": "raw", "dtype": "uint32", "shape": [2]}}, {"raw": bytes(7)}, "7 bytes instead of 8"),
    ],
)
def test_values_that_do_not_fit_the_description_are_damage(
    records: Path, features: dict[str, Any], values: dict[str, Any], said: str
) -> None:
    describe(records.with_name("features.json"), features={**features, "label": {"dtype": "int64"}}, weight="")
    fitting = {"words": [1, 1], "numbers": [1.0], "name": b"x", "raw": bytes(8)}
    good = {name: fitting[name] for name in values}
    write(records, [{**(good if index != 3 else values), "label": index} for index in range(9)])
    with pytest.raises(DataError, match=rf"record 3 of {records}: {said}.*--invalid-examples skip"):
        load(records)
    assert len(load(records, invalid_examples="skip", split="none").train) == 8


def test_files_that_are_no_records(records: Path) -> None:
    content = records.read_bytes()
    for damaged, said in (
        (content[:-7], "ends within record 11: the file is not complete"),
        (b"something else altogether", "is not a TFRecord file"),
        (b"", "is empty"),
        (b"\x1f\x8b" + content, "cannot unpack .*mine.tfrecord: "),
    ):
        records.write_bytes(damaged)
        with pytest.raises(DataError, match=said):
            survey(records)


def test_examples_are_parsed_as_tensorflow_does() -> None:
    values = {"a": [1, -(2**63), 300], "b": [0.5, -2.0], "c": [b"x", b""], "d": []}
    message = tf.train.Example()
    message.features.feature["a"].int64_list.value.extend(values["a"])
    message.features.feature["b"].float_list.value.extend(values["b"])
    message.features.feature["c"].bytes_list.value.extend(values["c"])
    message.features.feature["d"].SetInParent()
    assert parse_example(message.SerializeToString()) == {
        "a": ("int64", values["a"]),
        "b": ("float32", values["b"]),
        "c": ("string", values["c"]),
        "d": ("string", []),
    }
    assert parse_example(b"nothing of the kind") is None
    assert parse_example(message.SerializeToString()[:-3]) is None


def test_compressed_records_that_outgrow_the_memory_are_no_longer_read(
    records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = [record.numpy() for record in tf.data.TFRecordDataset(str(records))]
    with tf.io.TFRecordWriter(str(records), "GZIP") as file:
        for content in contents:
            file.write(content)
    assert survey(records).spec is not None
    monkeypatch.setattr(record_files, "available_memory", lambda: 100)
    with pytest.raises(
        DataError, match=r"mine.tfrecord do not fit in memory: they take more than [\d.]+ .*B, and 100 B are"
    ):
        load(records)


def test_a_pipe_among_the_records_is_explained(records: Path) -> None:
    records.unlink()
    os.mkfifo(records)
    with pytest.raises(DataError, match=f"cannot read {records}: it is a pipe, not a file"):
        survey(records.parent)


@pytest.mark.parametrize(
    ("names", "expected"), [((), ("bird", "cat", "dog")), (("dog", "cat", "bird"), ("dog", "cat", "bird"))]
)
def test_labels_may_be_texts(tmp_path: Path, names: tuple[str, ...], expected: tuple[str, ...]) -> None:
    kinds = [b"cat", b"dog", b"bird"]
    for split, count in (("train", 24), ("validation", 6)):
        examples = [{"x": [float(row), 0.0], "label": kinds[row % 3]} for row in range(count)]
        write(tmp_path / f"{split}.tfrecord", examples)
    features = {"x": {"shape": [2]}, "label": {"dtype": "string", "shape": []}}
    (tmp_path / "features.json").write_text(json.dumps({"features": features, "class_names": names}))
    entry, dataset = survey(tmp_path), load(tmp_path)
    assert (dataset.task, dataset.class_names) == ("classification", expected)
    assert (entry.task, entry.spec.targets) == (dataset.task, dataset.spec.targets)
    labels = [expected[label] for label in dataset.validation.targets.tolist()]
    assert labels == ["cat", "dog", "bird", "cat", "dog", "bird"]
    write(tmp_path / "validation.tfrecord", [{"x": [0.0, 0.0], "label": b"horse"}])
    with pytest.raises(DataError, match=r"label\[0\] is 'horse', a class without training examples"):
        load(tmp_path)


SIMPLE = {"features": {"x": {"shape": [2]}, "label": {"dtype": "int64"}}, "class_names": ["a", "b", "c"]}


def simple(tmp_path: Path, count: int = 12, **other: Any) -> Path:
    (tmp_path / "features.json").write_text(json.dumps(SIMPLE))
    examples = [{"x": [float(index), 0.0], "label": index % 3} for index in range(count)]
    if other:
        examples[3] = {name: value for name, value in {**examples[3], **other}.items() if value is not None}
    return write(tmp_path / "train.tfrecord", examples)


def flipped(record: int, byte: int) -> Callable[[bytes], bytes]:
    """A bit of a record is another one: of its length, its content, or their checksums."""

    def flip(content: bytes) -> bytes:
        place = record * (len(content) // 12) + byte
        return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]

    return flip


ODD_FILES: dict[str, tuple[Callable[[bytes], bytes], int | str]] = {
    "gzip": (gzip.compress, 12),
    "zlib": (zlib.compress, 12),
    "several of gzip, as appending makes": (lambda content: gzip.compress(content) * 2, 24),
    "gzip with zeros behind": (lambda content: gzip.compress(content) + bytes(512), 12),
    "gzip that is cut": (
        lambda content: gzip.compress(content)[:-20],
        "cannot unpack .*train.tfrecord: it ends too early",
    ),
    "gzip that is damaged": (lambda content: gzip.compress(content)[:-7] + b"1234567", "cannot unpack .*incorrect"),
    "gzip of something else": (lambda _: gzip.compress(b"nothing of the kind"), "is not a TFRecord file"),
    "no record": (lambda _: b"", "train.tfrecord is empty"),
    "cut within a length": (lambda content: content + content[:5], "ends within record 12: the file is not complete"),
    "cut within the only record": (lambda content: content[:40], "ends within record 0: the file is not complete"),
    "content": (flipped(4, 20), "cannot read record 4 of .*train.tfrecord: its checksum is wrong"),
    "checksum": (flipped(5, -2), "cannot read record 4 of .*: its checksum is wrong"),
    "length": (flipped(4, 1), "is damaged at record 4: its length is wrong"),
    "checksum of a length": (flipped(4, 9), "is damaged at record 4: its length is wrong"),
}


@pytest.mark.parametrize("form", ODD_FILES)
def test_odd_files_are_read_right_or_refused(tmp_path: Path, form: str) -> None:
    change, expected = ODD_FILES[form]
    path = simple(tmp_path)
    path.write_bytes(change(path.read_bytes()))
    if isinstance(expected, int):
        assert len(load(path, split="none").train) == expected
        assert survey(path).class_names == ("a", "b", "c")
        return
    with pytest.raises(DataError, match=expected):
        load(path)


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_damaged_record_can_be_left_out(tmp_path: Path, in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_memory:
        monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
    path = simple(tmp_path)
    path.write_bytes(flipped(4, 20)(path.read_bytes()))
    dataset = load(path, invalid_examples="skip", split="none")
    assert dataset.train.take(np.arange(11)).inputs[:, 0].tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]
    assert "1 of 12 examples left out: cannot read record 4 of" in str(dataset.changes[0])


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"x": None}, "record 3 of .*: the feature x .*is required but could not be found"),
        ({"x": [1, 2]}, "record 3 of .*: the feature x: Data types don't match"),
        ({"x": [1.0, 2.0, 3.0]}, "record 3 of .*: the feature x: Number of float values != expected"),
        ({"label": b"b"}, "record 3 of .*: the feature label: Data types don't match"),
    ],
)
def test_records_that_differ_from_the_first_are_named(tmp_path: Path, other: dict[str, Any], said: str) -> None:
    path = simple(tmp_path, **other)
    with pytest.raises(DataError, match=said):
        load(path)
    assert len(load(path, invalid_examples="skip", split="none").train) == 11


def test_files_without_records_are_passed_over(tmp_path: Path) -> None:
    simple(tmp_path, 6)
    (tmp_path / "train.tfrecord").rename(tmp_path / "train-1.tfrecord")
    for name in ("train-0.tfrecord", "train-2.tfrecord"):
        (tmp_path / name).touch()
    assert len(load(tmp_path, split="none").train) == survey(tmp_path, split="none").examples == 6


def test_images_of_another_size_than_described_are_resized_and_said(records: Path) -> None:
    describe(
        records.parent / "features.json",
        features={**DESCRIPTION["features"], "image": {"encoding": "image", "shape": [8, 8, 1]}},
    )  # type: ignore[dict-item]
    said = ["12 of 12 images converted: to grayscale", "12 of 12 images resized: to 8x8"]
    changes = list(map(str, load(records, ignore=("words",)).changes))
    assert [each.replace(" looked at", "") for each in changes[:2]] == said
    assert survey(records).changes[0] == load(records).changes[0]


def test_splits_without_labels_are_not_used(tmp_path: Path) -> None:
    simple(tmp_path)
    write(tmp_path / "test.tfrecord", [{"x": [0.0, 0.0], "label": -1}] * 4)
    dataset = load(tmp_path, split="random")
    assert (len(dataset.train), dataset.test) == (11, None)
    assert "the test split has no labels: it is not used" in dataset.notes
    write(tmp_path / "test.tfrecord", [{"x": [0.0, 0.0], "label": label} for label in (1, -1)])
    with pytest.raises(DataError, match="example 1 of the split test has the label -1; labels must be from 0 to 2"):
        load(tmp_path, split="random")


def test_other_data_does_not_decide_which_classes_there_are(tmp_path: Path) -> None:
    own, others = tmp_path / "own", tmp_path / "others"
    for folder in (own, others):
        folder.mkdir()
        simple(folder)
        (folder / "features.json").write_text(json.dumps({"features": SIMPLE["features"]}))
    write(others / "train.tfrecord", [{"x": [0.0, 0.0], "label": label} for label in (0, 3)])

    assert load(own, validation_data=str(others)).class_names == ("0", "1", "2", "3")
    with pytest.raises(
        DataError, match="example 1 of the split validation has the label 3; labels must be from 0 to 2"
    ):
        load(own, validation_data=str(others), keeps_split=True)


@pytest.mark.parametrize("names", [(), ("a", "b", "c")])
@pytest.mark.parametrize("task", ["classification", "multi-label"])
def test_vectors_of_classes(tmp_path: Path, task: str, names: tuple[str, ...]) -> None:
    several = int(task == "multi-label")
    vectors = [[int(place == row % 3 or place < several * row % 3) for place in range(3)] for row in range(30)]
    write(tmp_path / "train.tfrecord", [{"x": [0.0], "label": each} for each in vectors])
    features = {"x": {"shape": [1]}, "label": {"dtype": "int64", "shape": [3]}}
    (tmp_path / "features.json").write_text(json.dumps({"features": features, "class_names": names}))
    if several:
        with pytest.raises(PlanError, match="needs one class per example"):
            load(tmp_path, task=task, split="stratified")
    dataset = load(tmp_path, task=task, split="random" if several else "stratified")
    entry = survey(tmp_path, task=task)
    assert entry.class_names == dataset.class_names == (names or ("0", "1", "2"))
    assert entry.classes == dataset.classes == 3
    assert entry.spec.targets == dataset.spec.targets
    if not several:
        assert dataset.validation.targets.sum(axis=0).tolist() == [1, 1, 1]
        write(tmp_path / "test.tfrecord", [{"x": [0.0], "label": [1, 1, 0]}])
        with pytest.raises(DataError, match="row 0 is not one-hot"):
            load(tmp_path, task=task)


def test_vectors_and_the_names_of_their_classes_have_one_number(tmp_path: Path) -> None:
    write(tmp_path / "train.tfrecord", [{"x": [0.0], "label": [1, 0, 0]}, {"x": [0.0], "label": [0, 1, 0]}])
    features = {"x": {"shape": [1]}, "label": {"dtype": "int64", "shape": [3]}}
    (tmp_path / "features.json").write_text(json.dumps({"features": features, "class_names": list("abcd")}))
    with pytest.raises(DataError, match="has 3 classes, but there are 4 class names"):
        load(tmp_path, task="classification")
