from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data import characters, dataset, language_text
from accel_engine.data.characters import BYTES, UNKNOWN
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Dataset, Split
from accel_engine.errors import DataError, PlanError

LINE = "The quick brown fox jumps over the lazy dog.\n"
TEXT = LINE * 40
"""1,800 characters."""


@pytest.fixture
def write(tmp_path: Path):
    def write(content: str | bytes, name: str = "mine.txt") -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


def load(spec: str, **values: Any) -> Dataset:
    return data.load(spec, DataOptions(**values))


def splits_of(dataset: Dataset) -> list[Split]:
    splits = [split for split in (dataset.train, dataset.validation, dataset.test) if split is not None]
    assert all(isinstance(split, Split) for split in splits)
    return splits  # type: ignore[return-value]


def text_of(split: Split, vocabulary: tuple[str, ...]) -> str:
    """The text of a split's blocks, and the last token to predict."""
    batch = split.take(np.arange(len(split)))
    tokens = [*batch.inputs.ravel(), batch.targets[-1, -1]]
    return bytes(tokens).decode("utf-8", "replace") if vocabulary == BYTES else "".join(vocabulary[i] for i in tokens)


@pytest.mark.parametrize("tokenizer", ["characters", "bytes"])
@pytest.mark.parametrize("values", [{}, {"test_split": 0.2}, {"split": "none"}, {"split": "ordered", "window": 7}])
def test_blocks_follow_each_other_and_splits_share_no_token(write, tokenizer: str, values: dict[str, Any]) -> None:
    made = load(write(TEXT), tokenizer=tokenizer, **values)
    window = values.get("window", 64)
    splits = splits_of(made)
    assert len(splits) == {"test_split": 3, "split": 2 if "window" in values else 1}.get(next(iter(values), ""), 2)
    position = 0
    for split, tokens in zip(splits, (1800 - 180 * (len(splits) - 1), 180, 180), strict=False):
        batch = split.take(np.arange(len(split)))
        np.testing.assert_array_equal(batch.inputs[:, 1:], batch.targets[:, :-1])
        np.testing.assert_array_equal(batch.inputs.ravel()[1:], batch.targets.ravel()[:-1])
        assert (batch.inputs.dtype, batch.targets.dtype, batch.weights) == (np.int32, np.int32, None)
        assert batch.inputs.shape == batch.targets.shape == (len(split), window)
        text = text_of(split, made.vocabulary)
        if "test_split" not in values:
            assert TEXT[position:].startswith(text)
            assert 0 <= tokens - len(text) < window
            position += tokens
    assert (made.task, made.kind, made.class_names) == ("sequence", "tokens", ())


def test_the_three_parts_are_in_order(write) -> None:
    made = load(write("".join(map(chr, range(1000, 2000)))), test_split=0.3, window=4, tokenizer="characters")
    first = [split.take(np.arange(len(split))).inputs.min() for split in splits_of(made)]
    assert first == [0, 600, 600]  # validation and test are unknown
    assert len(made.vocabulary) == 601
    assert made.vocabulary[:600] == tuple(map(chr, range(1000, 1600)))


def test_vocabulary_is_of_the_training_part(write) -> None:
    made = load(write(TEXT + "é☃☃ß" + LINE), validation_split=0.2, window=5)
    assert made.vocabulary == (*sorted(set(TEXT)), UNKNOWN)
    assert list(map(str, made.changes)) == [
        "4 characters converted: to the token \ufffd, as the training part has none of them: '☃', 'ß', 'é'"
    ]
    train, validation = splits_of(made)
    assert UNKNOWN not in text_of(train, made.vocabulary)
    assert text_of(validation, made.vocabulary).count(UNKNOWN) == 4
    known = load(write(TEXT))
    assert known.vocabulary == tuple(sorted(set(TEXT)))
    assert len(known.notes) == 2


@pytest.mark.parametrize("chunk", [1, 7, 1 << 22])
def test_chunks_make_no_difference(write, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(characters, "CHUNK", chunk)
    text = "\ufeff" + "añ☃😀b" * 100
    made = load(write(text + "x" * 5), window=4)
    train, validation = splits_of(made)
    assert (text[1:]).startswith(text_of(train, made.vocabulary))
    assert set(made.vocabulary) == {*"añ☃😀b", UNKNOWN}
    assert text_of(validation, made.vocabulary).count(UNKNOWN) == 4  # the last one is in no block


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_tells_the_encoding_and_is_no_character(write, encoding: str) -> None:
    made = load(write((TEXT + "é☃").encode(encoding)), split="none")
    assert text_of(splits_of(made)[0], made.vocabulary) == TEXT[: len(TEXT) // 64 * 64 + 1]


def test_bytes(write) -> None:
    made = load(write("é☃" * 500), tokenizer="bytes", window=10)
    assert made.vocabulary == BYTES
    assert ("é☃" * 500).startswith(text_of(splits_of(made)[0], made.vocabulary).rstrip(UNKNOWN))
    load(write(bytes(range(256)) * 10), tokenizer="bytes")


def test_validation_text_of_its_own(write) -> None:
    made = load(write(TEXT), validation_data=write(LINE * 3 + "é" * 5, "valid.txt"), test_split=0.1)
    train, validation, test = splits_of(made)
    assert (len(train), len(validation), len(test)) == (1619 // 64, 139 // 64, 179 // 64)
    assert made.vocabulary[-1] == UNKNOWN
    with pytest.raises(PlanError, match=r"validation_data = .*nothing\.txt.*: no such text file"):
        load(write(TEXT), validation_data="nothing.txt")
    short = write("short", "short.txt")
    with pytest.raises(PlanError, match="an example needs 65 tokens, but the file has 5"):
        load(write(TEXT), validation_data=short)


def test_characters_that_a_trained_model_has_no_token_for_are_named(write) -> None:
    other = write(LINE * 3 + "é" * 5, "other.txt")
    with pytest.raises(DataError, match=r"other.txt has characters for which the trained model has no token: 'é'$"):
        load(write(TEXT), validation_data=other, keeps_split=True)
    own = load(write(TEXT + "ß"))
    kept = load(write(TEXT + "ß"), validation_data=other, keeps_split=True)
    assert (own.vocabulary[-1], kept.vocabulary) == (UNKNOWN, own.vocabulary)


def test_large_texts_stay_lazy(write, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = write(TEXT)
    eager = splits_of(load(spec))
    monkeypatch.setattr(dataset, "LARGEST_MADE", 100)
    lazy = splits_of(load(spec))
    for one, other in zip(eager, lazy, strict=True):
        assert (one.in_memory, other.in_memory) == (True, False)
        assert (len(one), one.nbytes, one.spec) == (len(other), other.nbytes, other.spec)
        rows = np.array([len(one) - 1, 0, 0], np.int32)
        for mine, theirs in zip(one.take(rows)[:2], other.take(rows)[:2], strict=True):
            np.testing.assert_array_equal(mine, theirs)
            assert theirs.dtype == np.int32


def test_text_that_is_not_utf8(write) -> None:
    spec = write(TEXT.encode() + b"\xff\xfe" + TEXT.encode())
    words = r"is not UTF-8 at byte 1,800, in line 41: save it as UTF-8 \(--invalid-examples skip replaces .*--tokenizer"
    with pytest.raises(DataError, match=rf"mine\.txt {words} bytes reads bytes"):
        load(spec)
    with pytest.raises(DataError, match=words):
        data.survey(data.find(spec), DataOptions())
    made = load(spec, invalid_examples="skip")
    assert UNKNOWN in made.vocabulary
    assert str(made.changes[-1]) == "2 bytes outside UTF-8 converted: to \ufffd"


@pytest.mark.parametrize(
    ("content", "values", "words"),
    [
        ("", {}, "window = 64: an example needs 65 tokens, in each of 1 parts, but the text has 0"),
        (
            "a" * 100,
            {},
            "an example needs 65 tokens, in each of 2 parts, but the text has 100; use a smaller one, or --split",
        ),
        ("a" * 190, {"test_split": 0.1}, "in each of 3 parts, but the text has 190"),
        (TEXT, {"split": "random"}, "split = 'random': would put neighbours"),
        (TEXT, {"split": "stratified"}, "split = 'stratified': would put neighbours"),
        (TEXT, {"split": "column:part"}, "split = 'column:part': needs a table"),
    ],
)
def test_options_that_do_not_fit(write, content: str, values: dict[str, Any], words: str) -> None:
    spec = write(content)
    for call in (lambda: load(spec, **values), lambda: data.survey(data.find(spec), DataOptions(**values))):
        with pytest.raises(PlanError, match=words):
            call()


@pytest.mark.parametrize("values", [{}, {"tokenizer": "bytes"}, {"window": 7, "test_split": 0.2}, {"split": "none"}])
def test_survey_says_what_reading_gives(write, values: dict[str, Any]) -> None:
    spec = write(TEXT + "é" * 100)
    entry, made = data.survey(data.find(spec), DataOptions(**values)), load(spec, **values)
    assert (entry.kind, entry.task, entry.classes, entry.shape) == (made.kind, made.task, made.classes, made.shape)
    assert (entry.spec, entry.value_range) == (made.spec, made.value_range)
    lengths = [len(split) for split in splits_of(made)]
    counts = [entry.examples, entry.validation_examples, entry.test_examples]
    assert [count for count in counts if count] == lengths
    assert entry.samples == (("start", TEXT[:240]),)
    details = {"bytes": "2,000 bytes", "characters": "1,900 characters, 31 different ones at the start"}
    assert entry.columns[0].detail == details[values.get("tokenizer", "characters")]


def test_survey_does_not_count_the_characters_of_a_very_large_file(write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_text, "_COUNTED", 1000)
    spec = write(TEXT)
    entry = data.survey(data.find(spec), DataOptions())
    assert (entry.examples, entry.validation_examples) == (None, None)
    assert entry.columns[0].detail == "many characters, 30 different ones at the start"
    assert data.survey(data.find(spec), DataOptions(tokenizer="bytes")).examples == 1619 // 64


def test_validation_text_is_surveyed(write) -> None:
    spec, other = write(TEXT), write(LINE * 3, "valid.txt")
    entry = data.survey(data.find(spec), DataOptions(validation_data=other))
    assert (entry.examples, entry.validation_examples) == (1799 // 64, 134 // 64)
    with pytest.raises(PlanError, match="no such text file"):
        data.survey(data.find(spec), DataOptions(validation_data="nothing.txt"))


def test_a_file_that_changes_is_noticed(write, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = write(TEXT)
    count = characters.CharacterEncoder.count

    def shrink(self: characters.CharacterEncoder, path: Path) -> int:
        number = count(self, path)
        path.write_text(TEXT[:-5])
        return number

    monkeypatch.setattr(characters.CharacterEncoder, "count", shrink)
    with pytest.raises(DataError, match="changed while it was read"):
        load(spec)


def test_progress(write) -> None:
    calls: list[tuple[int, int]] = []
    data.load(write(TEXT), DataOptions(), lambda done, total: calls.append((done, total)))
    assert calls[-1] == (1800, 1800)
