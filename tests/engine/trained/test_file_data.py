"""The model of a file gets the same values from a table in each format, as in its training."""

import keras
import numpy as np
import pytest

from accel_engine.data import load
from accel_engine.models.exported_model import LABEL, PROBABILITIES, categories
from accel_engine.plan import Plan
from accel_engine.trained.file_data import load_for
from accel_engine.trained.open_trained import open_trained
from accel_engine.trained.prediction.table_examples import read_raw_columns

from ..data.tables.test_other_formats import ROWS, options, table, write

INPUTS = ("member", "size", "rooms", "floor", "code", "shop", "price", "colour")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A table, a classifier of it in the form of exported ones, and the plan of its columns."""
    rows, folder = table().select([*INPUTS, "ok"]), tmp_path_factory.mktemp("trained")
    preprocessing = load(write(rows, folder / "t.parquet"), options()).preprocess()
    probabilities = keras.layers.Dense(2, activation="softmax")(preprocessing.output)
    lookup = keras.layers.StringLookup(vocabulary=["false", "true"], num_oov_indices=0, invert=True, name=LABEL)
    label = lookup(keras.ops.argmax(probabilities, axis=-1))
    model = keras.Model(preprocessing.input, {PROBABILITIES: probabilities, LABEL: label})
    model.save(folder / "model.keras")
    return rows, model, folder / "model.keras"


@pytest.mark.parametrize("words", [("False", "True"), (0, 1), ("no", "yes")])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_other_formats_and_words(trained, tmp_path, suffix, words):
    rows, model, _ = trained
    changed = {name: [words[value] for value in rows[name].to_pylist()] for name in ("member", "ok")}
    paths = [write(rows, tmp_path / "same.parquet"), write(rows, tmp_path / f"other{suffix}", **changed)]
    same, other = (load_for(model, Plan(data=path, target=("ok",), split="none"), lambda *_: None) for path in paths)
    assert other.class_names == same.class_names == ("false", "true")
    np.testing.assert_array_equal(other.train.targets, rows["ok"].to_numpy().astype(int))
    assert other.warnings == ()
    specs = open_trained(Plan(model=str(trained[2])), data=None).dataset.spec.inputs
    predicted = [read_raw_columns(tmp_path / path, specs, categories(model)) for path in paths]
    for name in INPUTS:
        np.testing.assert_array_equal(other.train.inputs[name], same.train.inputs[name])
        np.testing.assert_array_equal(predicted[1].inputs[name], predicted[0].inputs[name])
    assert predicted[1].notes == ()


def test_categories_that_the_model_does_not_know(trained, tmp_path):
    rows, model, _ = trained
    other = write(rows, tmp_path / "other.csv", colour=["violet", "red", "blue"] * (ROWS // 3))
    note = "20 values of column colour not in the training data, such as 'violet': taken as other values"
    assert load_for(model, Plan(data=other, target=("ok",)), lambda *_: None).warnings == (f"other.csv: {note}",)
    specs = open_trained(Plan(model=str(trained[2])), data=None).dataset.spec.inputs
    assert read_raw_columns(tmp_path / "other.csv", specs, categories(model)).notes == (note,)
    none = write(rows, tmp_path / "none.csv", colour=["violet"] * ROWS)
    found = load_for(model, Plan(data=none, target=("ok",)), lambda *_: None)
    assert found.warnings == (f"none.csv: {note.replace('20', str(ROWS))}",)
    predicted = read_raw_columns(tmp_path / "none.csv", specs, categories(model))
    assert predicted.notes == (note.replace("20", str(ROWS)),)
    assert not predicted.problems


def test_the_target_before_other_columns_is_found_although_a_date_is_taken_in_parts(tmp_path):
    rows = [
        f"2024-01-{day:02d} {hour:02d}:00,{day * hour},{hour / 2}" for day in range(1, 11) for hour in range(0, 24, 3)
    ]
    path = tmp_path / "load.csv"
    path.write_text("time,load,temp\n" + "\n".join(rows))
    plan = Plan(data=str(path), target=("load",), split="none")
    preprocessing = load(plan.data, plan.data_options).preprocess()
    model = keras.Model(preprocessing.input, keras.layers.Dense(1)(preprocessing.output))
    given, found = (load_for(model, each, lambda *_: None) for each in (plan, plan.replace(target=())))
    assert "temp" in found.train.inputs
    np.testing.assert_array_equal(found.train.targets, given.train.targets)


def test_which_of_several_other_columns_is_the_target_is_said(trained, tmp_path):
    rows, model, _ = trained
    more = rows.append_column("remark", [["a", "b"] * (ROWS // 2)]).select(["remark", "ok", *INPUTS])
    found = load_for(model, Plan(data=write(more, tmp_path / "more.csv"), split="none"), lambda *_: None)
    np.testing.assert_array_equal(found.train.targets, rows["ok"].to_numpy().astype(int))
    assert found.warnings == ("the model takes no column remark or ok: the last of them is taken as its target",)


def test_sample_weights_are_not_taken_as_the_target(trained, tmp_path):
    rows, model, _ = trained
    weights = np.arange(ROWS, dtype=np.float32)
    weighted = rows.append_column("sample_weight", [weights])
    found = load_for(model, Plan(data=write(weighted, tmp_path / "weighted.csv"), split="none"), lambda *_: None)
    np.testing.assert_array_equal(found.train.targets, rows["ok"].to_numpy().astype(int))
    np.testing.assert_array_equal(found.train.weights, weights)
    assert found.warnings == ()
