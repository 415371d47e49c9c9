import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from accel_engine import data
from accel_engine.data import dataset as dataset_module
from accel_engine.data.data_options import DataOptions
from accel_engine.errors import DataError
from engine.data.prepared.records import write

CORE = "tensorflow_datasets.core.features."


def tensor(dtype: str, *dimensions: int) -> dict[str, Any]:
    shape = {"dimensions": list(map(str, dimensions))} if dimensions else {}
    return {
        "pythonClassName": CORE + "tensor_feature.Tensor",
        "tensor": {"dtype": dtype, "encoding": "none", "shape": shape},
    }


def prepare(root: Path, image: tuple[int, ...] = (4, 5, 3), **info: Any) -> Path:
    """A directory as TensorFlow Datasets 4.9 writes it."""
    features = {
        "image": {
            "pythonClassName": CORE + "image_feature.Image",
            "image": {"dtype": "uint8", "shape": {"dimensions": list(map(str, image))}},
        },
        "label": {"pythonClassName": CORE + "class_label_feature.ClassLabel", "classLabel": {"numClasses": "3"}},
        "box": {"featuresDict": {"features": {"at": tensor("float32", 2), "seen": tensor("bool")}}},
        "words": {
            "pythonClassName": CORE + "sequence_feature.Sequence",
            "sequence": {"feature": tensor("int64"), "length": "-1"},
        },
    }
    root.mkdir(parents=True)
    (root / "features.json").write_text(
        json.dumps({"featuresDict": {"features": features}, "pythonClassName": CORE + "features_dict.FeaturesDict"})
    )
    splits = {"train": 12, "test": 3}
    for split, count in splits.items():
        examples = [
            {
                "image": tf.io.encode_png(np.full((4 + (index == 5 and -1 in image), 5, 3), index, np.uint8)).numpy(),
                "label": index % 3,
                "box/at": [index / 2, 1.0],
                "box/seen": index % 2,
                "words": [1] * (index + 1),
            }
            for index in range(count)
        ]
        write(root / f"shapes-{split}.tfrecord-00000-of-00002", examples[: count // 2])
        write(root / f"shapes-{split}.tfrecord-00001-of-00002", examples[count // 2 :])
    (root / "label.labels.txt").write_text("circle\nsquare\nstar\n")
    shards = [{"name": name, "shardLengths": [str(n // 2), str(n - n // 2)]} for name, n in splits.items()]
    (root / "dataset_info.json").write_text(
        json.dumps({"name": "shapes", "fileFormat": "tfrecord", "splits": shards} | info)
    )
    return root


def load(path: Path, **options: Any) -> dataset_module.Dataset:
    return data.load(str(path), DataOptions(**options))


def test_prepared_directory(tmp_path: Path) -> None:
    root = prepare(tmp_path / "1.0.0")
    dataset = load(root)
    assert (dataset.name, dataset.class_names, dataset.task) == (
        "shapes",
        ("circle", "square", "star"),
        "classification",
    )
    assert dataset.notes == (
        "validating on the split test, as there is no validation split",
        "features left out: words (Sequence of several lengths: set the window)",
    )
    assert (len(dataset.train), len(dataset.validation), dataset.test) == (12, 3, None)
    batch = dataset.train.take(np.array([7, 2]))
    assert sorted(batch.inputs) == ["box/at", "box/seen", "image"]
    assert batch.inputs["image"][:, 0, 0, 0].tolist() == [7, 2]
    assert batch.inputs["box/at"].tolist() == [[3.5, 1], [1, 1]]
    assert batch.inputs["box/seen"].tolist() == [True, False]
    assert batch.targets.tolist() == [1, 2]
    entry = data.survey(data.find(str(root)), DataOptions())
    assert (entry.name, entry.examples, entry.validation_examples, entry.test_examples) == ("shapes", 12, 3, 0)
    assert (entry.class_names, entry.spec) == (dataset.class_names, dataset.spec)


@pytest.mark.parametrize(
    "keys",
    [
        {"tuple": {"items": [{"featureKey": "image"}, {"featureKey": "label"}]}},
        {"input": "image", "output": "label"},
    ],
)
def test_supervised_keys_and_images_of_several_sizes(tmp_path: Path, keys: dict[str, Any]) -> None:
    root = prepare(tmp_path / "1.0.0", (-1, -1, 3), supervisedKeys=keys)
    dataset = load(root, split="stratified", validation_split=0.25)
    assert (dataset.shape, dataset.kind, dataset.value_range.pixels) == ((4, 5, 3), "images", True)
    assert np.bincount(dataset.validation.targets).tolist() == [1, 1, 1]
    assert len(dataset.test) == 3
    resized = "images looked at resized: to 4x5, the most common size (change it with image_size)"
    assert [f"1 of 6 {resized}"] == list(map(str, dataset.changes))
    assert load(root, image_size="6x7").shape == (6, 7, 3)


def test_other_file_formats_are_refused(tmp_path: Path) -> None:
    root = prepare(tmp_path / "1.0.0", fileFormat="array_record")
    with pytest.raises(DataError, match="is stored as array_record; prepare it with file_format='tfrecord'"):
        data.survey(data.find(str(root)), DataOptions())
    (root / "features.json").write_text("{}")
    (root / "dataset_info.json").write_text("{}")
    with pytest.raises(DataError, match="cannot be understood"):
        load(root)


def test_what_the_library_writes(tmp_path: Path) -> None:
    library = pytest.importorskip("tensorflow_datasets", reason="tensorflow_datasets is not installed")
    images = np.arange(20, dtype=np.uint8)[:, None, None, None] * np.ones((1, 4, 5, 3), np.uint8)
    features = library.features.FeaturesDict(
        {"image": library.features.Image(shape=(4, 5, 3)), "label": library.features.ClassLabel(names=["a", "b"])}
    )
    rows = tf.data.Dataset.from_tensor_slices({"image": images, "label": np.arange(20) % 2})
    library.dataset_builders.store_as_tfds_dataset(
        "mine", "1.0.0", features, {"train": rows}, data_dir=tmp_path, disable_shuffling=True
    )
    dataset = load(tmp_path / "mine" / "1.0.0", split="none")
    np.testing.assert_array_equal(dataset.train.inputs, images)
    assert (dataset.class_names, dataset.train.targets.tolist()) == (("a", "b"), [0, 1] * 10)


@pytest.mark.parametrize("in_memory", [True, False])
def test_lists_of_several_lengths_are_padded_to_the_window(
    tmp_path: Path, in_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_memory:
        monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
    root = prepare(tmp_path / "1.0.0")
    options = {"window": 5, "features": ("words",), "split": "none"}
    dataset = load(root, **options)
    words = dataset.train.take(np.array([0, 11, 3])).inputs
    assert words.tolist() == [[1, 0, 0, 0, 0], [1] * 5, [1, 1, 1, 1, 0]]
    padded = "lists of several lengths padded: with 0 to the window of 5, or cut: words"
    assert padded in map(str, dataset.changes)
    surveyed = data.survey(data.find(str(root)), DataOptions(**options))
    assert surveyed.spec == dataset.spec


def test_tensors_with_an_unknown_first_dimension_are_lists(tmp_path: Path) -> None:
    root = prepare(tmp_path / "1.0.0")
    path = root / "features.json"
    features = json.loads(path.read_text())
    features["featuresDict"]["features"]["words"] = tensor("int64", -1)
    features["featuresDict"]["features"]["image"] = tensor("uint8", -1, -1)
    path.write_text(json.dumps(features))
    dataset = load(root, window=2, features=("words",), split="none")
    assert dataset.train.take(np.array([0, 4])).inputs.tolist() == [[1, 0], [1, 1]]
    assert "features left out: image (Tensor)" in dataset.notes
    assert "words (Tensor of several lengths: set the window)" in " ".join(load(root, split="none").notes)


def test_records_that_are_missing_are_noticed(tmp_path: Path) -> None:
    root = prepare(tmp_path / "1.0.0")
    (root / "shapes-train.tfrecord-00001-of-00002").unlink()
    with pytest.raises(DataError, match=r"the split train of .* has 6 records of 12: files are damaged or missing"):
        load(root)
