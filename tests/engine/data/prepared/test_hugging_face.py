import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from accel_engine import data, memory
from accel_engine.data import dataset as dataset_module
from accel_engine.data.data_options import DataOptions
from accel_engine.data.prepared import hugging_face
from accel_engine.errors import DataError

FEATURES = {
    "image": {"_type": "Image"},
    "label": {"names": ["a", "b", "c"], "_type": "ClassLabel"},
    "pair": {"feature": {"dtype": "float64", "_type": "Value"}, "_type": "List"},
    "grid": {"shape": [2, 3], "dtype": "float32", "_type": "Array2D"},
    "text": {"dtype": "string", "_type": "Value"},
    "words": {"feature": {"dtype": "int64", "_type": "Value"}, "_type": "List"},
    "when": {"dtype": "timestamp[s]", "_type": "Value"},
}


def png(value: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.full((4, 5, 3), value, np.uint8)).save(file, "png")
    return file.getvalue()


def table(rows: range) -> pa.Table:
    columns = {
        "image": pa.array([{"bytes": png(row), "path": None} for row in rows]),
        "label": pa.array([row % 3 for row in rows]),
        "pair": pa.array([[row, row + 0.5] for row in rows]),
        "grid": pa.array([[[row, 1, 2], [3, 4, 5]] for row in rows], pa.list_(pa.list_(pa.float32()))),
        "text": pa.array([f"n° {row}" for row in rows]),
        "words": pa.array([list(range(row % 4)) for row in rows]),
        "when": pa.array([0 for _ in rows], pa.timestamp("s")),
    }
    return pa.table(columns)


def save(root: Path, *tables: pa.Table) -> Path:
    """Save a dataset as version 5 of the library does."""
    root.mkdir(parents=True)
    names = [f"data-{index:05}-of-{len(tables):05}.arrow" for index in range(len(tables))]
    for name, each in zip(names, tables, strict=True):
        with pa.OSFile(str(root / name), "wb") as file, pa.ipc.new_stream(file, each.schema) as stream:
            stream.write_table(each, max_chunksize=7)
    (root / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (root / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))
    return root


def load(path: Path, **options: Any) -> dataset_module.Dataset:
    return data.load(str(path), DataOptions(**options))


def test_columns_of_float64_that_lose_their_digits_are_warned_of(tmp_path: Path) -> None:
    rows = table(range(20))
    pairs = pa.array([[row, 123456789.0 + row] for row in range(19)] + [None])
    root = save(tmp_path / "mine", rows.set_column(rows.column_names.index("pair"), "pair", pairs))
    dataset = load(root, split="none", features=("pair",), target=("label",), invalid_examples="skip")
    assert dataset.warnings == (
        "float32 loses digits that tell examples apart in pair[:, 1]: subtract the mean, and divide by the scale",
    )
    assert load(save(tmp_path / "plain", rows), split="none").warnings == ()


def test_few_numbers_of_float64_are_read_for_that_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, shapes = save(tmp_path / "mine", table(range(20))), dict[str, tuple[int, ...]]()
    monkeypatch.setattr(hugging_face, "_COMPARED", 10)
    monkeypatch.setattr(
        hugging_face,
        "precision_warnings",
        lambda found: shapes.update({name: each.shape for name, each in found}) or (),
    )
    load(root, split="none", features=("pair", "grid"), target=("label",))
    assert shapes == {"pair": (5, 2)}


@pytest.mark.parametrize("in_memory", [True, False])
def test_saved_dataset(tmp_path: Path, in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_memory:
        monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
    root = save(tmp_path / "mine", table(range(20)), table(range(20, 30)))
    dataset = load(root, split="none")
    assert (dataset.task, dataset.class_names, dataset.train.in_memory) == (
        "classification",
        ("a", "b", "c"),
        in_memory,
    )
    assert dataset.notes == ("columns left out: when (timestamp[s])",)
    assert list(map(str, dataset.changes)) == [
        "lists of several lengths padded: with 0 to the longest: words (3); set the window for another length"
    ]
    rows = np.array([25, 3, 3, 19])
    batch = dataset.train.take(rows)
    assert batch.targets.tolist() == (rows % 3).tolist()
    assert batch.targets.dtype == np.int32
    assert batch.inputs["image"][:, 1, 1, 1].tolist() == rows.tolist()
    np.testing.assert_array_equal(batch.inputs["pair"], np.stack([rows, rows + 0.5], axis=1).astype(np.float32))
    assert batch.inputs["grid"][:, 0, 0].tolist() == rows.tolist()
    assert batch.inputs["grid"].shape == (4, 2, 3)
    assert batch.inputs["text"].tolist() == [f"n° {row}" for row in rows]
    entry = data.survey(data.find(str(root)), DataOptions(split="none"))
    assert (entry.examples, entry.class_counts, entry.spec) == (30, (10, 10, 10), dataset.spec)
    assert {column.name: column.kind for column in entry.columns}["image"] == "image"


def test_splits_and_columns(tmp_path: Path) -> None:
    for name, rows in (("train", range(12)), ("validation", range(12, 15)), ("test", range(15, 20))):
        save(tmp_path / "mine" / name, table(rows))
    (tmp_path / "mine" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "validation", "test"]}))
    dataset = load(tmp_path / "mine", features=("image",), image_size="8x8")
    assert (dataset.shape, dataset.kind) == ((8, 8, 3), "images")
    assert [len(split) for split in (dataset.train, dataset.validation, dataset.test)] == [12, 3, 5]
    assert dataset.validation.inputs[:, 3, 3, 0].tolist() == [12, 13, 14]
    dataset = load(tmp_path / "mine", features=("text",), target=("pair",))
    assert (dataset.kind, dataset.task, dataset.spec.targets.shape) == ("text", "regression", (2,))


def test_missing_values_and_damaged_images(tmp_path: Path) -> None:
    rows = table(range(10)).to_pylist()
    rows[2]["text"] = None
    rows[5]["image"]["bytes"] = rows[5]["image"]["bytes"][:50]
    rows[8]["pair"][0] = float("nan")
    root = save(tmp_path / "mine", pa.Table.from_pylist(rows, table(range(10)).schema))
    entry = data.survey(data.find(str(root)), DataOptions())
    assert {column.name: column.missing for column in entry.columns}["text"] == 1
    with pytest.raises(DataError, match="cannot read example 2 of the split train: text is missing"):
        load(root)
    dataset = load(root, invalid_examples="skip", split="none")
    assert dataset.train.inputs["image"][:, 0, 0, 0].tolist() == [0, 1, 3, 4, 6, 7, 9]
    assert dataset.train.targets.tolist() == [0, 1, 0, 1, 0, 1, 0]
    left_out = str(dataset.changes[-1])
    assert "3 of 10 examples left out" in left_out
    assert "example 8 of the split train: pair has numbers that are NaN or infinite" in left_out
    assert "example 5 of the split train: an image in it cannot be decoded" in left_out


def test_damaged_files(tmp_path: Path) -> None:
    root = save(tmp_path / "mine", table(range(10)))
    (root / "data-00000-of-00001.arrow").write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match=r"cannot read .*arrow: "):
        load(root)
    (root / "data-00000-of-00001.arrow").unlink()
    with pytest.raises(DataError, match=r"cannot read .*arrow: "):
        data.survey(data.find(str(root)), DataOptions())


def test_what_the_library_saves(tmp_path: Path) -> None:
    library = pytest.importorskip("datasets", reason="datasets is not installed")
    features = library.Features({"text": library.Value("string"), "label": library.ClassLabel(names=["no", "yes"])})
    rows = library.Dataset.from_dict({"text": list("abcdef"), "label": [0, 1] * 3}, features=features)
    library.DatasetDict({"train": rows.select([5, 4, 1]), "test": rows}).save_to_disk(tmp_path / "mine")
    dataset = load(tmp_path / "mine")
    assert (dataset.train.inputs.tolist(), dataset.train.targets.tolist()) == (["f", "e", "b"], [1, 0, 1])
    assert dataset.validation.inputs.tolist() == list("abcdef")
    assert dataset.class_names == ("no", "yes")


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("window", [None, 2, 5])
def test_lists_of_several_lengths_are_padded(
    tmp_path: Path, in_memory: bool, window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_memory:
        monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
    lists = [[index] * (index % 4) for index in range(12)]
    pairs = [[[index, -index]] * (index % 3) for index in range(12)]
    texts = [["a"] * (index % 2) for index in range(12)]
    columns = pa.table(
        {"ids": pa.array(lists), "pairs": pa.array(pairs), "texts": pa.array(texts), "none": pa.array([[]] * 12)}
    )
    root = save(tmp_path / "mine", columns)
    value = {"dtype": "int64", "_type": "Value"}
    features = {
        "ids": {"feature": value, "_type": "List"},
        "pairs": {"feature": {"feature": value, "length": 2, "_type": "Sequence"}, "_type": "Sequence"},
        "texts": {"feature": {"dtype": "string", "_type": "Value"}, "_type": "List"},
        "none": {"feature": value, "_type": "List"},
    }
    (root / "dataset_info.json").write_text(json.dumps({"features": features}))
    dataset = load(root, split="none", window=window, features=("ids", "pairs", "texts"))
    rows = np.array([11, 0, 7, 1, 3])
    batch = dataset.train.take(rows).inputs
    for name, source, item in (("ids", lists, 0), ("pairs", pairs, [0, 0]), ("texts", texts, "")):
        length = window or max(map(len, source))
        expected = [(source[row] + [item] * length)[:length] for row in rows]
        assert batch[name].tolist() == expected
    words = f"to the window of {window}, or cut: ids, pairs, texts" if window else "ids (3), pairs (2), texts (1); set"
    assert any(words in str(change) for change in dataset.changes)
    surveyed = data.survey(data.find(str(root)), DataOptions(window=window, features=("ids", "pairs", "texts")))
    assert surveyed.spec.inputs == dataset.spec.inputs  # type: ignore[union-attr]


def test_lists_inside_of_lists_must_have_one_length(tmp_path: Path) -> None:
    root = save(tmp_path / "mine", pa.table({"deep": pa.array([[[1], [1, 2]], [[3]]]), "x": pa.array([1.0, 2.0])}))
    value = {"dtype": "int64", "_type": "Value"}
    features = {
        "deep": {"feature": {"feature": value, "_type": "List"}, "_type": "List"},
        "x": {"dtype": "float64", "_type": "Value"},
    }
    (root / "dataset_info.json").write_text(json.dumps({"features": features}))
    assert load(root, window=4).notes[0] == "columns left out: deep (lists of several lengths)"


def download(root: Path, features: dict[str, Any] | None, **splits: pa.Table) -> Path:
    """Write files as the hub has them."""
    (root / "data").mkdir(parents=True)
    info = {b"huggingface": json.dumps({"info": {"features": features}}).encode()} if features else {}
    for split, each in splits.items():
        pq.write_table(each.replace_schema_metadata(info), root / "data" / f"{split}-00000-of-00001.parquet")
    return root


def test_parquet_files_of_the_hub(tmp_path: Path) -> None:
    root = download(tmp_path / "mine", FEATURES, train=table(range(12)), validation=table(range(12, 16)))
    dataset, entry = (
        load(root, features=("image",)),
        data.survey(data.find(str(root)), DataOptions(features=("image",))),
    )
    assert (dataset.shape, dataset.kind, dataset.class_names) == ((4, 5, 3), "images", ("a", "b", "c"))
    assert dataset.validation.inputs[:, 0, 0, 0].tolist() == [12, 13, 14, 15]
    assert (entry.examples, entry.validation_examples, entry.spec) == (12, 4, dataset.spec)
    other = download(tmp_path / "other", FEATURES, test=table(range(3)))
    assert len(load(root, validation_data=str(other)).validation) == 3


def test_parquet_files_that_cannot_be_used_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = download(tmp_path / "plain", None, train=table(range(4)))
    with pytest.raises(
        DataError, match=r"no features of Hugging Face.* give one of its files as a table, e.g. .*parquet"
    ):
        load(plain)
    root = download(tmp_path / "mine", FEATURES, train=table(range(12)))
    monkeypatch.setattr(memory, "available_memory", lambda: 64)
    with pytest.raises(DataError, match=r"reading 1 Parquet files of .* takes .* of memory"):
        load(root)
    (root / "data" / "train-00000-of-00001.parquet").write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match=r"cannot read .*parquet: "):
        load(root)


def test_splits_without_labels_are_not_used(tmp_path: Path) -> None:
    unlabelled = table(range(5)).set_column(1, "label", pa.array([-1] * 5))
    root = download(tmp_path / "mine", FEATURES, train=table(range(20)), test=unlabelled, validation=table(range(4)))
    dataset, entry = load(root), data.survey(data.find(str(root)), DataOptions())
    assert (len(dataset.validation), dataset.test, entry.test_examples) == (4, None, 0)
    assert "the test split has no labels: it is not used" in dataset.notes


@pytest.mark.parametrize("kind", ["saved", "parquet"])
def test_other_lists_for_a_trained_model_are_read_as_its_own(tmp_path: Path, kind: str) -> None:
    def lists(name: str, *lengths: int) -> Path:
        found = table(range(20))
        words = pa.array([list(range(lengths[row % len(lengths)])) for row in range(20)], pa.list_(pa.int64()))
        found = found.set_column(found.column_names.index("words"), "words", words)
        return save(tmp_path / name, found) if kind == "saved" else download(tmp_path / name, FEATURES, train=found)

    for own, shape in ((lists("fixed", 3), (3,)), (lists("several", 1, 4), (4,))):
        other = lists(f"other_{own.name}", 2, 9)
        kept = load(own, validation_data=str(other), keeps_split=True)
        assert kept.spec == load(own).spec
        assert kept.spec.inputs["words"].shape == shape
        assert kept.validation is not None
        assert kept.validation.take(np.array([1])).inputs["words"].tolist() == [list(range(shape[0]))]
        assert load(own, validation_data=str(other)).spec.inputs["words"].shape == (9,)


def test_lists_of_structures_are_left_out(tmp_path: Path) -> None:
    """Version 3 of the library writes them as a list."""
    rows = table(range(12)).append_column("boxes", pa.array([[{"x": row}] for row in range(12)]))
    root = save(tmp_path / "mine", rows)
    features = {**FEATURES, "boxes": [{"x": {"dtype": "int64", "_type": "Value"}}]}
    (root / "dataset_info.json").write_text(json.dumps({"features": features}))
    assert load(root).notes[0] == "columns left out: when (timestamp[s]), boxes (nested)"


def test_targets_with_a_fraction_are_no_classes(tmp_path: Path) -> None:
    def saved(name: str, *values: float) -> Path:
        found = table(range(12)).select(["grid", "label"])
        return save(tmp_path / name, found.set_column(1, "label", pa.array([values[row % 2] for row in range(12)])))

    features = {"grid": FEATURES["grid"], "label": {"dtype": "float64", "_type": "Value"}}
    for root in (half := saved("half", 0.5, 1.7)), (whole := saved("whole", 0.0, 2.0)):
        (root / "dataset_info.json").write_text(json.dumps({"features": features}))
    with pytest.raises(DataError, match=r"label\[0\] is 0.5: labels must be integers from 0"):
        load(half, task="classification", target=("label",))
    dataset = load(whole, task="classification", target=("label",))
    assert (dataset.class_names, dataset.train.targets.dtype) == (("0", "1", "2"), np.int32)
