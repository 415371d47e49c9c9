import csv

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.data import DataOptions, find, load, survey
from accel_engine.data.dataset import Dataset
from accel_engine.data.structure import ArraySpec
from accel_engine.data.tables import preprocessing
from accel_engine.data.tables.raw_inputs import raw_inputs
from accel_engine.errors import DataError, PlanError
from accel_engine.models.exported_model import categories
from accel_engine.trained.prediction.table_examples import read_raw_columns

ROWS = 200


def write(path, columns: dict[str, list]) -> str:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return str(path)


def mixed_columns(rows: int = ROWS) -> dict[str, list]:
    """Columns of all kinds, each with missing values."""
    generator = np.random.default_rng(3)
    age = generator.normal(40, 12, rows).round(1)
    job = generator.choice(["clerk", "nurse", "cook"], rows)
    good = generator.integers(0, 2, rows)
    columns: dict[str, list] = {
        "age": age.tolist(),
        "job": job.tolist(),
        "joined on": [str(np.datetime64("2020-01-01") + int(day)) for day in generator.integers(0, 900, rows)],
        "note": [f"a {'good' if flag else 'bad'} day number {row}" for row, flag in enumerate(good)],
        "left": np.where(good == 1, "no", "yes").tolist(),
        "pay": (age * 10 + good).round(2).tolist(),
    }
    for position, name in enumerate(("age", "job", "joined on", "note")):
        for row in range(position, rows, 23):
            columns[name][row] = ""
    return columns


def read(path, columns: dict[str, list], **options) -> Dataset:
    return load(write(path, columns), DataOptions(**options))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "people.csv"


def test_columns_become_a_matrix_without_nan(file):
    dataset = read(file, mixed_columns(), validation_split=0.2)
    assert (len(dataset.train), len(dataset.validation), dataset.test) == (160, 40, None)
    assert (dataset.kind, dataset.task, dataset.class_names) == ("table", "regression", ())
    assert dataset.target_names == ("pay",)
    for split in (dataset.train, dataset.validation):
        assert split.inputs.dtype == np.float32
        assert split.inputs.shape == (len(split), len(dataset.feature_names))
        assert np.isfinite(split.inputs).all()
        assert split.targets.shape == (len(split), 1)
    features = {name: dataset.train.inputs[:, index] for index, name in enumerate(dataset.feature_names)}
    assert features["age"].mean() == pytest.approx(0, abs=0.01)
    flagged = features["age is missing"] == 1
    assert 0 < flagged.sum() < 10
    np.testing.assert_array_equal(features["age"][flagged], 0)  # the mean
    job = [features[f"job={name}"] for name in ("clerk", "nurse", "cook", "missing")]
    np.testing.assert_array_equal(sum(job), 1)
    assert features["job=missing"].sum() > 0
    assert {"joined on year", "joined on month", "joined on weekday", "note: good", "left=no"} <= features.keys()
    assert any("36 missing values filled: age 9, job 9, joined on 9, note 9" in str(each) for each in dataset.changes)


def test_statistics_and_vocabularies_are_of_the_training_rows_only(file):
    rows = 40
    columns = {
        "size": [*range(1, 33), *[10_000] * 8],
        "colour": [*["red", "blue"] * 16, *["green"] * 8],
        "text": [f"an old word number {row}" for row in range(32)]
        + [f"some new text number {row}" for row in range(8)],
        "y": [row / 7 for row in range(rows)],
    }
    dataset = read(file, columns, split="ordered", validation_split=0.2)
    size = dataset.train.inputs[:, 0]
    np.testing.assert_allclose(size, (np.arange(1, 33) - 16.5) / np.arange(1, 33).std(), rtol=1e-5)
    assert "colour=green" not in dataset.feature_names
    other = dataset.feature_names.index("colour=other values")
    np.testing.assert_array_equal(dataset.validation.inputs[:, other], 1)
    assert "text: old" in dataset.feature_names
    assert "text: new" not in dataset.feature_names


def test_preprocessing_model_gives_the_same_numbers_after_loading(file, tmp_path):
    columns = mixed_columns()
    columns["a/b c"] = columns["age"]
    columns["a b/c"] = [f"line\nof {row % 3}, «ä»" for row in range(ROWS)]
    dataset = read(file, columns, target=("left",), split="ordered")
    model = dataset.preprocess()
    model.save(tmp_path / "preprocess.keras")
    loaded = keras.models.load_model(tmp_path / "preprocess.keras")
    from accel_engine.data.tables.column_reading import read_columns

    table = read_columns(file, DataOptions())
    raw = {each.key: each.values for each in raw_inputs(table.columns, table.columns)}
    inputs = {name: tf.constant(raw[name][:, None]) for name in loaded.input}
    matrix = np.concatenate([dataset.train.inputs, dataset.validation.inputs])
    np.testing.assert_array_equal(loaded(inputs), matrix)


def test_many_numbers_are_one_input_of_the_preprocessing(file, tmp_path, monkeypatch):
    monkeypatch.setattr(preprocessing, "MANY_NUMBERS", 2)
    columns = {**mixed_columns(), "same": [7] * ROWS, "large": [1e12 + row * 3 for row in range(ROWS)]}
    dataset = read(file, columns, target=("left",), split="none", keeps_raw=True)
    model = dataset.preprocess()
    assert {each.name: (each.shape[1], each.dtype) for each in model.inputs} == {
        "job": (1, "string"), "note": (1, "string"), "table_numbers": (9, "float64")
    }  # fmt: skip
    raw = dataset.raw_inputs["training"]
    given = {name: tf.constant(array) for name, array in raw.learned.raw(raw.inputs, raw.rows).items()}
    np.testing.assert_array_equal(model(given), dataset.train.inputs)
    monkeypatch.setattr(preprocessing, "MANY_NUMBERS", 100)
    other = read(file, columns, target=("left",), split="none")
    assert other.feature_names == dataset.feature_names
    np.testing.assert_allclose(other.train.inputs, dataset.train.inputs, atol=1e-5)


def test_many_categories_are_one_input_of_the_preprocessing(file, tmp_path, monkeypatch):
    monkeypatch.setattr(preprocessing, "MANY_CATEGORIES", 1)
    columns = {**mixed_columns(), "a b": ["x=y", "z", "x=y", ""] * (ROWS // 4), "same": ["one"] * ROWS}
    dataset = read(file, columns, target=("left",), split="ordered", keeps_raw=True)
    model = dataset.preprocess()
    assert {each.name: each.shape for each in model.inputs}["table_categories"] == (None, None)
    assert {"job", "a_b"}.isdisjoint(each.name for each in model.inputs)
    model.save(tmp_path / "preprocess.keras")
    loaded = keras.models.load_model(tmp_path / "preprocess.keras")
    for split, part in (("training", dataset.train), ("validation", dataset.validation)):
        raw = dataset.raw_inputs[split]
        given = {name: tf.constant(array) for name, array in raw.learned.raw(raw.inputs, raw.rows).items()}
        np.testing.assert_array_equal(loaded(given), part.inputs)
    assert {"a b=x=y", "a b=z", "a b=missing"} < {*dataset.feature_names}
    assert not any("other values" in name for name in dataset.feature_names)
    original = dataset.original(dataset.train.inputs[:4])
    assert original["a b"].tolist() == ["x=y", "z", "x=y", "missing"]
    monkeypatch.setattr(preprocessing, "MANY_CATEGORIES", 100)
    each_alone = read(file, columns, target=("left",), split="ordered")
    shared = [each_alone.feature_names.index(name) for name in dataset.feature_names]
    np.testing.assert_array_equal(each_alone.train.inputs[:, shared], dataset.train.inputs)


def test_a_saved_model_of_many_categories_takes_the_columns_of_files(file, tmp_path, monkeypatch):
    monkeypatch.setattr(preprocessing, "MANY_CATEGORIES", 1)
    columns = {"a b": ["x=y", "z", "x=y", ""] * 10, "c": ["p", "q"] * 20, "same": ["one"] * 40, "n": [*range(40)]}
    dataset = read(file, {**columns, "left": ["no", "yes"] * 20}, target=("left",), split="none")
    model = dataset.preprocess()
    path = tmp_path / "new.csv"
    path.write_text("same,n,c,a b\none,3.5,q,z\none,1,other,\n")
    specs = {each.name: ArraySpec(tuple(each.shape[1:]), each.dtype) for each in model.inputs}
    found = read_raw_columns(path, specs, categories(model))
    matrix = np.asarray(model({name: tf.constant(array) for name, array in found.inputs.items()}))
    names = {name: place for place, name in enumerate(dataset.feature_names)}
    assert [name for name, place in names.items() if matrix[0, place] == 1] == ["a b=z", "c=q"]
    assert [name for name, place in names.items() if matrix[1, place] == 1] == ["a b=missing"]
    path.write_text("same,n,c\none,3.5,q\n")
    with pytest.raises(DataError, match=r"new.csv has no column a_b, which the model needs"):
        read_raw_columns(path, specs, categories(model))


def test_preprocessing_does_not_follow_the_precision_of_the_run(file):
    keras.config.set_dtype_policy("mixed_float16")
    try:
        dataset = read(file, mixed_columns())
        assert keras.config.dtype_policy().name == "mixed_float16"
    finally:
        keras.config.set_dtype_policy("float32")
    np.testing.assert_array_equal(dataset.train.inputs, read(file, mixed_columns()).train.inputs)


@pytest.mark.parametrize(
    ("values", "task", "classes"),
    [
        (["no", "yes"], "classification", ("no", "yes")),
        ([0, 1], "classification", ("0", "1")),
        ([10, 9, 2], "classification", ("2", "9", "10")),
        ([1.5, 2.5], "regression", ()),
        (list(range(50)), "regression", ()),
    ],
)
def test_form_of_the_target(file, values, task, classes):
    columns = {"x": list(np.arange(100) * 0.5), "y": [values[row % len(values)] for row in range(100)]}
    dataset = read(file, columns)
    assert (dataset.task, dataset.class_names) == (task, classes)
    if classes:
        assert dataset.train.targets.dtype == np.int32
        assert set(dataset.train.targets) == set(range(len(classes)))


def test_plan_decides_whether_whole_numbers_are_classes(file):
    columns = {"x": list(np.arange(100) * 0.5), "label": [row % 30 for row in range(100)]}
    assert len(read(file, columns, task="classification").class_names) == 30
    assert read(file, columns, task="regression").train.targets.dtype == np.float32
    with pytest.raises(PlanError, match="different numbers; use regression"):
        read(file, columns, target=("x",), task="classification")


def test_several_targets(file):
    generator = np.random.default_rng(0)
    columns = {
        "x": generator.normal(size=60).tolist(),
        "a": generator.normal(size=60).tolist(),
        "b": generator.normal(size=60).tolist(),
        "funny": generator.integers(0, 2, 60).tolist(),
        "sad": generator.integers(0, 2, 60).tolist(),
        "kind": ["p", "q", "r"] * 20,
    }
    numbers = read(file, columns, target=("a", "b"))
    assert (numbers.task, numbers.train.targets.shape, numbers.target_names) == ("regression", (54, 2), ("a", "b"))
    labels = read(file, columns, target=("funny", "sad"))
    assert (labels.task, labels.class_names) == ("multi-label", ("funny", "sad"))
    assert set(np.unique(labels.train.targets)) == {0, 1}
    both = read(file, columns, target=("a", "kind"))
    assert both.task == "auto"
    assert {name: array.shape for name, array in both.train.targets.items()} == {"a": (54, 1), "kind": (54,)}


def test_reconstruction_has_the_inputs_as_targets(file):
    dataset = read(file, mixed_columns(), task="reconstruction")
    assert dataset.task == "reconstruction"
    assert dataset.train.targets is dataset.train.inputs
    assert "pay" in dataset.feature_names


def test_default_target_is_noted(file):
    dataset = read(file, {"class": ["p", "q"] * 20, "x": list(range(1, 80, 2)), "z": list(range(0, 120, 3))})
    assert dataset.target_names == ("class",)
    assert "the target is the column class: choose another one with --target" in dataset.notes


def test_features_and_ignored_columns(file):
    names = read(file, mixed_columns(), features=("age", "job")).feature_names
    assert {name.split("=")[0] for name in names} == {"age", "age is missing", "job"}
    names = read(file, mixed_columns(), ignore=("age", "note", "joined on")).feature_names
    assert {name.split("=")[0] for name in names} == {"job", "left"}


def test_split_by_a_column(file):
    columns = {
        "x": list(range(0, 60, 2)),
        "y": [0.5] * 15 + [1.5] * 15,
        "set": ["Train"] * 20 + ["val"] * 6 + ["test"] * 4,
    }
    dataset = read(file, columns, split="column:set", target=("y",))
    assert [len(split) for split in (dataset.train, dataset.validation, dataset.test)] == [20, 6, 4]
    assert dataset.feature_names == ("x",)
    columns["set"][3] = "other"
    with pytest.raises(PlanError, match="row 4 has 'other'; the column must have train, validation or test"):
        read(file, columns, split="column:set", target=("y",))


def test_stratified_split(file):
    columns = {"x": list(range(100)), "y": ["rare"] * 10 + ["common"] * 90}
    dataset = read(file, columns, split="stratified", validation_split=0.2, features=("x",))
    assert np.bincount(dataset.validation.targets).tolist() == [18, 2]


def test_time_puts_rows_in_order(file):
    days = np.random.default_rng(1).permutation(50)
    columns = {
        "day": [str(np.datetime64("2024-01-01") + int(day)) for day in days],
        "x": (days * 2).tolist(),
        "y": days,
    }
    dataset = read(file, columns, time="day", target=("y",), task="regression", validation_split=0.2)
    np.testing.assert_array_equal(dataset.train.targets[:, 0], np.arange(40))
    np.testing.assert_array_equal(dataset.validation.targets[:, 0], np.arange(40, 50))
    assert dataset.feature_names == ("x",)


def test_validation_file_has_the_vocabulary_of_the_training_file(file, tmp_path):
    other = write(
        tmp_path / "validation.csv", {"y": ["p", "q", "p"], "x": [1, "", 3], "c": ["u", "new", ""], "more": [1, 2, 3]}
    )
    columns = {"x": list(range(0, 80, 2)), "c": ["u", "v"] * 20, "y": ["p", "q"] * 20}
    dataset = read(file, columns, validation_data=other, test_split=0.1)
    assert (len(dataset.train), len(dataset.validation), len(dataset.test)) == (36, 3, 4)
    assert dataset.validation.targets.tolist() == [0, 1, 0]
    names = dataset.feature_names
    np.testing.assert_array_equal(dataset.validation.inputs[:, names.index("c=other values")], [0, 1, 1])
    assert dataset.validation.inputs[1, names.index("x")] == 0
    columns["z"] = list(range(40))
    with pytest.raises(PlanError, match="the file has no column z"):
        read(file, columns, validation_data=other, features=("x", "z"), target=("y",))
    with pytest.raises(PlanError, match="no such file"):
        read(file, columns, validation_data=str(tmp_path / "none.csv"), target=("y",))


def test_class_that_training_does_not_have(file, tmp_path):
    other = write(tmp_path / "validation.csv", {"x": [1, 2], "y": ["p", "s"]})
    columns = {"x": list(range(0, 80, 2)), "y": ["p", "q"] * 20}
    with pytest.raises(DataError, match="row 2 has a class that the training data does not have"):
        read(file, columns, validation_data=other)
    dataset = read(file, columns, validation_data=other, invalid_examples="skip")
    assert len(dataset.validation) == 1


def test_rows_without_a_target_or_with_infinite_numbers(file):
    columns = {"x": [*range(0, 38, 2), "inf"], "y": [*["p", "q"] * 9, "", "p"]}
    with pytest.raises(DataError, match=r"people.csv: row 19 has no value in the target, the column y"):
        read(file, columns)
    columns["y"][18] = "p"
    with pytest.raises(DataError, match="row 20 has an infinite number in the column x"):
        read(file, columns)
    columns["y"][18] = ""
    dataset = read(file, columns, invalid_examples="skip", split="none")
    assert len(dataset.train) == 18
    assert sum("1 of 20 rows of people.csv left out" in str(change) for change in dataset.changes) == 2


def test_columns_without_use_are_left_out(file):
    columns = {
        "id": list(range(40)),
        "constant": [1] * 40,
        "empty": [""] * 40,
        "x": [row * 1.5 for row in range(40)],
        "y": ["p", "q"] * 20,
    }
    dataset = read(file, columns)
    assert dataset.feature_names == ("x",)
    changes = "\n".join(map(str, dataset.changes))
    assert "column id left out: it has a different value in most rows" in changes
    assert "column empty left out: it has no values" in changes
    assert "1 column left out: constant: the same value in all training rows" in changes
    with pytest.raises(DataError, match="nothing to learn from"):
        read(file, {"constant": [1] * 40, "y": ["p", "q"] * 20})
    assert read(file, {"id": list(range(40)), "y": [row / 3 for row in range(40)]}).feature_names == ("id",)


def test_target_with_one_value(file):
    with pytest.raises(DataError, match="the target y has one value only, 'p'"):
        read(file, {"x": list(range(0, 40, 2)), "y": ["p"] * 20})


def test_words_of_one_text_only_are_not_features(file):
    columns = {"text": [f"it was {'fine' if row % 2 else 'dull'} on day d{row}" for row in range(40)], "y": [0, 1] * 20}
    names = read(file, columns).feature_names
    assert {"text: fine", "text: dull"} <= set(names)
    assert not [name for name in names if name.startswith("text: d") and name[7:].isdigit()]


def test_sample_weights(file):
    columns = {"x": list(range(0, 40, 2)), "sample_weight": [0.5, 2] * 10, "y": ["p", "q"] * 10}
    dataset = read(file, columns, split="none")
    np.testing.assert_array_equal(dataset.train.weights, np.float32([0.5, 2] * 10))
    assert dataset.feature_names == ("x",)


def test_large_tables_are_converted_when_they_are_needed(file, monkeypatch):
    expected = read(file, mixed_columns())
    monkeypatch.setattr("accel_engine.data.tables.table.fits_in_memory", lambda nbytes: False)
    dataset = read(file, mixed_columns())
    assert not dataset.train.in_memory
    assert dataset.train.spec == expected.train.spec
    rows = np.array([5, 3, 100])
    np.testing.assert_array_equal(dataset.train.take(rows).inputs, expected.train.inputs[rows])


def test_rows_can_be_shown_in_the_units_and_words_of_the_table(file):
    columns = mixed_columns()
    dataset = read(file, columns, split="none", target=("pay",))
    found = dataset.original(dataset.train.inputs)
    ages = ["missing" if text == "" else float(text) for text in columns["age"]]
    assert [each if each == "missing" else round(each, 3) for each in found["age"]] == ages
    assert found["job"].tolist() == [text or "missing" for text in columns["job"]]
    are_good = ["good" in words.split(", ") for words in found["note"]]
    assert are_good == ["good" in note for note in columns["note"]]
    assert {name for name in found if "=" in name or "is missing" in name} == set()


@pytest.mark.parametrize("weights", [["5 mg", "7 mg"], ["2020-01-01", "2021-02-03"], ["yes", "no"]])
def test_sample_weights_that_are_no_numbers(file, weights):
    columns = {"x": list(range(0, 40, 2)), "sample_weight": weights * 10, "y": ["p", "q"] * 10}
    with pytest.raises(DataError, match=f"the column sample_weight has {weights[0]}, but .* --ignore sample_weight"):
        read(file, columns)
    assert read(file, columns, ignore=("sample_weight",)).feature_names == ("x",)


def test_a_class_that_only_other_examples_have_is_named(file):
    columns = {"x": list(range(40)), "level": ["low", "high"] * 20, "part": ["train"] * 30 + ["validation"] * 10}
    usual = read(file, columns, target=("level",), split="column:part")
    columns["level"][5:30:2] = ["mid"] * 13
    columns["level"][1:5:2] = ["mid"] * 2
    options = DataOptions(target=("level",), split="column:part")
    words = "class high has no training examples, only others: it cannot be learned"
    assert (usual.warnings, load(write(file, columns), options).warnings) == ((), (words,))
    assert words in survey(find(str(file)), options).notes
