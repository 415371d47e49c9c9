"""TFRecord files that TensorFlow's file systems read; ``ram://`` stands for Google Cloud Storage."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from accel_engine import data
from accel_engine.data import DataOptions
from accel_engine.data.dataset import Dataset
from accel_engine.data.prepared import tfrecord
from accel_engine.data.source import DatasetEntry
from accel_engine.data_profile.described_data import DescribedData
from accel_engine.errors import DataError, PlanError
from accel_engine.plan import Plan
from engine.data.prepared.records import write

DESCRIPTION = {"features": {"x": {"shape": [2]}, "label": {"dtype": "int64"}}, "target": "label"}


def put(url: str, content: bytes) -> None:
    with tf.io.gfile.GFile(url, "wb") as file:
        file.write(content)


@pytest.fixture
def fill(tmp_path: Path):
    """Write files with their numbers of records to a folder in memory."""

    def fill(name: str, files: dict[str, int], description: Any = DESCRIPTION, compression: str = "") -> str:
        root, first = f"ram://{name}", 0
        if tf.io.gfile.exists(root):  # of an attempt before; files in memory are not truncated
            tf.io.gfile.rmtree(root)
        for file, count in files.items():
            examples = [{"x": [float(index), 0.0], "label": index % 3} for index in range(first, first + count)]
            put(f"{root}/{file}", write(tmp_path / file, examples, compression).read_bytes())
            first += count
        if description is not None:
            put(f"{root}/features.json", json.dumps(description).encode())
        return root

    return fill


def load(url: str, **options: Any) -> Dataset:
    entry = DatasetEntry("mine", "", "prepared.tfrecord:RemoteTFRecord", url=url)
    return tfrecord.RemoteTFRecord(entry, DataOptions(**options)).load(lambda *_: None)


def test_a_file_is_read(fill) -> None:
    root = fill("file", {"a.tfrecord": 10})
    dataset = load(f"{root}/a.tfrecord", split="none")
    assert (len(dataset.train), dataset.task, dataset.class_names) == (10, "classification", ("0", "1", "2"))
    batch = dataset.train.take(np.array([7, 2]))
    assert batch.inputs.tolist() == [[7, 0], [2, 0]]
    assert batch.targets.tolist() == [1, 2]


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_a_folder_has_splits(fill, compression: str) -> None:
    description = DESCRIPTION
    files = {"train-0.tfrecord": 4, "train-1.tfrecord": 3, "val.tfrecord": 2, "test.tfrecord": 1}
    root = fill(f"folder{compression}", files, description, compression)
    dataset = load(f"{root}/")
    assert [len(each) for each in (dataset.train, dataset.validation, dataset.test)] == [7, 2, 1]
    assert dataset.train.take(np.array([5])).inputs.tolist() == [[5, 0]]
    others = fill(f"other{compression}", {"a.tfrecord": 5}, description, compression)
    other = load(root, validation_data=f"{others}/a.tfrecord")
    assert len(other.validation) == 5


def test_what_cannot_be_read_is_explained(fill, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"there is no ram://nowhere/a.tfrecord"):
        load("ram://nowhere/a.tfrecord")
    with pytest.raises(DataError, match="this build of TensorFlow does not read s5://: copy the files"):
        load("s5://bucket/a.tfrecord")
    root = fill("plain", {"a.tfrecord": 4}, None)
    with pytest.raises(DataError, match=r'write ram://plain/features.json, such as this(.|\n)*"target": "label"'):
        load(f"{root}/a.tfrecord")
    wrong = fill("wrong", {"a.tfrecord": 4}, {"features": {"z": {}}})
    with pytest.raises(DataError, match=r"describes z, but the first record of ram://wrong/a.tfrecord has label, x"):
        load(wrong)
    with pytest.raises(PlanError, match=r"^validation_data = 'v.tfrecord': must be in ram:// too"):
        load(fill("two", {"a.tfrecord": 4}), validation_data="v.tfrecord")
    put("ram://damaged/a.tfrecord", b"no records, but some text that is long enough")
    put("ram://damaged/features.json", json.dumps(DESCRIPTION).encode())
    with pytest.raises(DataError, match=r"ram://damaged/a\.tfrecord is not a TFRecord file"):
        load("ram://damaged")
    monkeypatch.setattr(tfrecord, "fits_in_memory", lambda _: False)
    with pytest.raises(DataError, match=r"too much for this machine's memory: copy the files"):
        load(fill("large", {"a.tfrecord": 4}))


@pytest.mark.parametrize(
    "error", [tf.errors.PermissionDeniedError, tf.errors.AbortedError, tf.errors.UnauthenticatedError]
)
def test_missing_credentials_are_explained(monkeypatch: pytest.MonkeyPatch, error: type[tf.errors.OpError]) -> None:
    def refuse(_: str) -> bool:
        raise error(None, None, "All 10 retry attempts failed")

    monkeypatch.setattr(tf.io.gfile, "isdir", refuse)
    words = r"cannot read ram://b/a: All 10 retry attempts failed. For Google Cloud Storage, log in with gcloud"
    with pytest.raises(DataError, match=words):
        load("ram://b/a")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("gs://bucket/train.tfrecord", "train"),
        ("gs://bucket/deep/train.tfrecord-00000-of-00010", "train"),
        ("gs://bucket/folder/", "folder"),
        ("gs://bucket/folder", "folder"),
    ],
)
def test_an_address_is_kept_as_it_is(url: str, name: str) -> None:
    entry = data.find(url)
    assert (entry.name, entry.url, entry.path, entry.reader) == (name, url, None, "prepared.tfrecord:RemoteTFRecord")
    surveyed = data.survey(entry, DataOptions(image_size="8x8"))
    assert surveyed.notes == ("Google Cloud Storage is not read before TensorFlow starts",)
    plan = Plan(data=url, validation_data=url)
    assert plan.absolute() == plan
    assert f"--data {url}" in plan.command()
    assert DescribedData.of(entry).to_json()["url"] == url


@pytest.mark.parametrize("url", ["gs://", "gs://bucket", "gs://bucket/", "gs://bucket/a.csv"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(PlanError, match="must be a TFRecord file or a folder of these"):
        data.find(url)
