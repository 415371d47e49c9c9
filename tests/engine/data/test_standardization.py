"""Values are standardised in float64, in training and in the saved preprocessing, whatever their magnitude."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.data import DataOptions, load
from accel_engine.data.arrays import make_dataset
from accel_engine.data.series.windowed import windowed
from accel_engine.data.standardization import Standardization
from accel_engine.data.structure import Batch
from accel_engine.data.tables.column_reading import read_columns
from accel_engine.data.tables.raw_inputs import raw_inputs

ROWS = 80
GENERATOR = np.random.default_rng(1)
COLUMNS = {
    "milliseconds": 1.7e12 + GENERATOR.integers(0, 1000, ROWS).cumsum().astype(float),
    "easting": 448_262.0 + GENERATOR.normal(0, 0.5, ROWS),
    "huge": 1e30 * GENERATOR.normal(2, 1, ROWS),
    "tiny": 1e-22 * GENERATOR.normal(2, 1, ROWS),
    "year": GENERATOR.integers(1990, 2020, ROWS).astype(float),
    "plain": GENERATOR.normal(3, 2, ROWS).round(3),
}
TARGET = 1.2e8 + GENERATOR.normal(0, 3, ROWS)


def standardized(values, rows=slice(None)):
    return (values - values[rows].mean(axis=0)) / values[rows].std(axis=0)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "t.csv"
    rows = zip(*(map(repr, values.tolist()) for values in (*COLUMNS.values(), TARGET)), strict=True)
    path.write_text("\n".join([",".join((*COLUMNS, "y")), *map(",".join, rows)]) + "\n")
    return path


OPTIONS = DataOptions(target=("y",), split="ordered", validation_split=0.25)


def test_columns_of_a_table(file, tmp_path):
    dataset, train = load(str(file), OPTIONS), slice(60)
    assert dataset.feature_names == tuple(COLUMNS)
    for index, values in enumerate(COLUMNS.values()):
        expected = standardized(values, train)
        np.testing.assert_allclose(dataset.train.inputs[:, index], expected[:60], atol=2e-5)
        np.testing.assert_allclose(dataset.validation.inputs[:, index], expected[60:], atol=2e-5)
    # The preprocessing that is saved with the model gives the same numbers.
    saved = tmp_path / "preprocessing.keras"
    dataset.preprocess().save(saved)
    model = keras.models.load_model(saved)
    raw = dataset.preprocess.raw(raw_inputs(read_columns(file, OPTIONS).columns, COLUMNS), np.arange(60))
    types = {each.name: each.dtype for each in model.inputs}
    assert types == {name: "float64" if name in ("milliseconds", "easting") else "float32" for name in COLUMNS}
    given = {name: tf.constant(values) for name, values in raw.items()}
    np.testing.assert_array_equal(model(given), dataset.train.inputs)


def test_a_target_of_a_table_keeps_its_digits(file):
    dataset = load(str(file), OPTIONS)
    np.testing.assert_allclose(dataset.train.targets[:, 0], standardized(TARGET, slice(60))[:60], atol=1e-6)
    np.testing.assert_allclose(dataset.target_scaling.restore(dataset.validation.targets)[:, 0], TARGET[60:], atol=1e-6)
    assert any("values of y standardized" in note for note in (*dataset.notes, *map(str, dataset.changes)))


def test_other_targets_stay_in_their_unit(file):
    dataset = load(str(file), DataOptions(target=("plain",), split="none"))
    assert dataset.target_scaling is None
    np.testing.assert_array_equal(dataset.train.targets[:, 0], COLUMNS["plain"].astype(np.float32))


def test_numbers_beside_classes_that_lose_their_digits_are_warned_of(tmp_path):
    file = tmp_path / "mixed.csv"
    rows = [
        f"{plain!r},{value!r},{plain > 0}"
        for plain, value in zip(COLUMNS["plain"].tolist(), TARGET.tolist(), strict=True)
    ]
    file.write_text("\n".join(["plain,value,positive", *rows]))
    dataset = load(str(file), DataOptions(target=("value", "positive"), split="none"))
    assert dataset.train.targets["value"].dtype == np.float32
    assert dataset.warnings == (
        "float32 loses digits that tell examples apart in value: subtract the mean, and divide by the scale",
    )
    assert load(str(file), DataOptions(target=("plain", "positive"), split="none")).warnings == ()


@pytest.mark.parametrize("shape", [(ROWS,), (ROWS, 1)])
def test_a_target_of_arrays_keeps_its_digits(shape):
    x = GENERATOR.normal(size=(ROWS, 2))
    dataset = make_dataset("a", {"train": Batch(x, TARGET.reshape(shape))}, DataOptions(validation_split=0.0))
    assert dataset.train.targets.dtype == np.float32
    np.testing.assert_allclose(dataset.train.targets.reshape(-1), standardized(TARGET), atol=1e-6)
    np.testing.assert_allclose(dataset.target_scaling.restore(dataset.train.targets).reshape(-1), TARGET, atol=1e-6)
    assert dataset.warnings == ()


def test_inputs_of_arrays_that_lose_their_digits_are_warned_of():
    x = np.stack([COLUMNS["plain"], COLUMNS["milliseconds"]], axis=1)
    dataset = make_dataset("a", {"train": Batch(x, COLUMNS["plain"])}, DataOptions(validation_split=0.0))
    assert dataset.warnings == (
        "float32 loses digits that tell examples apart in x_train[:, 1]: subtract the mean, and divide by the scale",
    )


def test_columns_of_a_series(tmp_path):
    dataset = windowed("s", COLUMNS, DataOptions(window=2, horizon=1, target=("easting",), validation_split=0.25))
    for index, values in enumerate(COLUMNS.values()):
        expected = standardized(values, slice(len(dataset.train) + 2))
        np.testing.assert_allclose(dataset.train.inputs[:, 0, index], expected[: len(dataset.train)], atol=1e-6)
    saved = tmp_path / "preprocessing.keras"
    dataset.preprocess().save(saved)
    raw = np.stack(list(COLUMNS.values()), axis=1)[np.newaxis, :2]
    model = keras.models.load_model(saved)
    assert model.input.dtype == "float64"
    np.testing.assert_allclose(model(raw)[0], dataset.train.inputs[0], atol=1e-6)


def test_a_column_that_varies_by_rounding_errors_alone_is_constant():
    scaling = Standardization.of_columns([np.array([0.3, 0.1 + 0.2, 0.3]), np.array([1e9, 1e9 + 1e-3])])
    np.testing.assert_allclose(scaling.scale, [1, 0.5e-3], rtol=1e-3)
