import os
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine import data
from accel_engine.data import dataset as dataset_module
from accel_engine.data.data_options import DataOptions
from accel_engine.errors import DataError


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    """Laid out as IMDB."""
    for part, count in (("train", 5), ("test", 3)):
        for name, word in (("neg", "dull"), ("pos", "grand")):
            for index in range(count):
                path = tmp_path / "reviews" / part / name / f"{index}_{index}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{word} film n° {index}\nin {part}")
        (tmp_path / "reviews" / part / "labeledBow.feat").write_text("")
    (tmp_path / "reviews" / "train" / "unsup").mkdir()
    (tmp_path / "reviews" / "train" / "unsup" / "1.txt").write_text("who knows")
    return tmp_path / "reviews"


def load(path: Path, **options: Any) -> dataset_module.Dataset:
    return data.load(str(path), DataOptions(**options))


@pytest.mark.parametrize("in_memory", [True, False])
def test_texts_by_class(reviews: Path, in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_memory:
        monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
    dataset = load(reviews, split="stratified", validation_split=0.2)
    assert (dataset.kind, dataset.class_names) == ("text", ("neg", "pos"))
    assert [len(split) for split in (dataset.train, dataset.validation, dataset.test)] == [8, 2, 6]
    batch = dataset.test.take(np.arange(6))
    assert batch.inputs.tolist() == [
        f"{word} film n° {index}\nin test" for word in ("dull", "grand") for index in range(3)
    ]
    assert batch.targets.tolist() == [0, 0, 0, 1, 1, 1]
    assert str(dataset.spec.inputs) == "string"
    assert dataset.notes[0] == f"{reviews / 'train' / 'unsup'} is ignored: it is not a class"
    assert in_memory or dataset.train.nbytes > 8 * 20
    # Keras takes them as they are.
    layer = keras.layers.TextVectorization()
    layer.adapt(batch.inputs)
    assert "grand" in layer.get_vocabulary()


def test_survey_shows_beginnings(reviews: Path) -> None:
    entry = data.survey(data.find(str(reviews)), DataOptions())
    assert (entry.kind, entry.examples, entry.validation_examples, entry.test_examples) == ("text", 10, 6, 0)
    assert entry.samples[0] == ("neg", "dull film n° 0 in train")
    assert str(entry.spec.inputs) == "string"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_tells_the_encoding_and_is_no_character(reviews: Path, encoding: str) -> None:
    path = reviews / "train" / "neg" / "0_0.txt"
    path.write_bytes("schön".encode(encoding))
    assert load(reviews).train.inputs[0] == "schön"
    assert data.survey(data.find(str(reviews)), DataOptions()).samples[0] == ("neg", "schön")
    path.write_bytes("schön".encode("utf-16")[:-1])
    with pytest.raises(DataError, match=f"the text {path} is not UTF-16: line 1 has an invalid byte"):
        load(reviews)


def test_texts_that_are_not_utf8_are_read_as_windows_writes_them(reviews: Path) -> None:
    (reviews / "train" / "neg" / "0_0.txt").write_bytes("gut\nschön".encode("latin-1"))
    said = "1 of 16 texts converted: from Windows-1252"
    dataset = load(reviews)
    assert dataset.train.inputs[0] == "gut\nschön"
    assert [*map(str, dataset.changes)] == [said]
    assert [*map(str, data.survey(data.find(str(reviews)), DataOptions()).changes)] == [said]


def test_texts_that_are_in_no_encoding(reviews: Path) -> None:
    bad = reviews / "train" / "neg" / "2_2.txt"
    bad.write_bytes(b"gut\nsch\x81n")
    with pytest.raises(DataError) as caught:
        load(reviews)
    skip = "(--invalid-examples skip leaves such examples out)"
    assert str(caught.value) == f"the text {bad} is not UTF-8: line 2 has an invalid byte (position 7) {skip}"
    dataset = load(reviews, invalid_examples="skip")
    assert len(dataset.train) == 9
    assert dataset.warnings[-1] == "skipped 1 of 16 examples that cannot be read: neg/2_2.txt"


def test_a_pipe_is_skipped_and_named(reviews: Path) -> None:
    path = reviews / "train" / "neg" / "0_0.txt"
    path.unlink()
    os.mkfifo(path)
    entry = data.survey(data.find(str(reviews)), DataOptions())
    assert entry.notes[-1] == "1 of 16 files seem damaged; those that cannot be read will be left out: neg/0_0.txt"
    assert entry.samples[0] == ("neg", "cannot be read: it is a pipe, not a file")
    assert load(reviews).warnings[-1] == "skipped 1 of 16 examples that cannot be read: neg/0_0.txt"
    with pytest.raises(DataError, match=f"cannot read the text {path}: it is a pipe, not a file"):
        load(reviews, invalid_examples="fail")
