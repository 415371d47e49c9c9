from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data.array_file import Header
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Split
from accel_engine.data.series.array_series import survey_arrays, windowed_arrays
from accel_engine.data.source import DatasetEntry
from accel_engine.errors import DataError, PlanError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
T = np.arange(60)


def options(**values: Any) -> DataOptions:
    return DataOptions(**{"window": 4, **values})


@pytest.mark.parametrize(
    ("arrays", "values", "inputs", "targets"),
    [
        ({"a": T}, {}, ["a"], ["a"]),
        ({"a": T[:, np.newaxis]}, {}, ["a"], ["a"]),
        ({"x": X}, {}, ["x[0]", "x[1]", "x[2]"], ["x[0]", "x[1]", "x[2]"]),
        ({"x": X}, {"target": ("x[1]",)}, ["x[0]", "x[1]", "x[2]"], ["x[1]"]),
        ({"x": X}, {"target": ("x[1]",), "ignore": ("x[0]",)}, ["x[1]", "x[2]"], ["x[1]"]),
        ({"x": X, "y": T}, {}, ["x[0]", "x[1]", "x[2]"], ["y"]),
        ({"x": X, "y": T}, {"features": ("y", "x")}, ["y", "x[0]", "x[1]", "x[2]"], ["y"]),
        ({"x": X, "y": X}, {"target": ("y[2]", "y[0]")}, ["x[0]", "x[1]", "x[2]"], ["y[2]", "y[0]"]),
        (
            {"rain": T, "wind": X},
            {"target": ("wind",)},
            ["rain", "wind[0]", "wind[1]", "wind[2]"],
            ["wind[0]", "wind[1]", "wind[2]"],
        ),
        ({"rain": T, "when": T, "more": T}, {"time": "when", "ignore": ("more",)}, ["rain"], ["rain"]),
        ({"x_train": X, "y_train": T, "x_test": X, "y_test": T}, {}, ["x[0]", "x[1]", "x[2]"], ["y"]),
        ({"x_train": X, "x_val": X[:9], "x_test": X[:8]}, {}, ["x[0]", "x[1]", "x[2]"], ["x[0]", "x[1]", "x[2]"]),
        ({"train_x": X, "val_x": X[:9], "test_x": X[:8]}, {}, ["x[0]", "x[1]", "x[2]"], ["x[0]", "x[1]", "x[2]"]),
        ({"x": X, "y": T, "title": np.array("text")}, {"ignore": ("title",)}, ["x[0]", "x[1]", "x[2]"], ["y"]),
    ],
)
def test_survey_says_what_reading_gives(
    arrays: dict[str, Any], values: dict[str, Any], inputs: list[str], targets: list[str]
) -> None:
    chosen = options(horizon=2, **values)
    made = windowed_arrays("mine", arrays, chosen)
    assert (list(made.feature_names), list(made.target_names)) == (inputs, targets)
    headers = {name: Header(array.shape, array.dtype) for name, array in arrays.items()}
    entry = survey_arrays(DatasetEntry("mine", "", "npz"), headers, chosen)
    assert (entry.kind, entry.task, entry.classes, entry.shape) == (made.kind, made.task, made.classes, made.shape)
    assert (entry.spec, entry.value_range) == (made.spec, made.value_range)
    assert entry.notes == tuple(note for note in made.notes if "not used" in note)
    splits = (made.train, made.validation, made.test)
    lengths = [len(split) if isinstance(split, Split) else 0 for split in splits]
    assert [entry.examples, entry.validation_examples, entry.test_examples] == lengths
    roles = {column.name: column.role for column in entry.columns}
    assert {name for name, role in roles.items() if role == "target"} == set(targets)
    assert {name for name, role in roles.items() if role == "input"} == set(inputs) - set(targets)
    assert roles.get("when", "time") == "time"


def test_arrays_of_splits_are_used() -> None:
    arrays = {"x_train": T, "x_test": T + 100, "about": T}
    made = windowed_arrays("mine", arrays, options(scale="none"))
    assert isinstance(made.train, Split)
    assert isinstance(made.validation, Split)
    assert (made.train.inputs.min(), made.train.targets.max()) == (0, 59)
    assert (made.validation.inputs.min(), made.validation.targets.max()) == (100, 159)
    assert made.test is None
    made = windowed_arrays("mine", {**arrays, "x_val": T + 200}, options(scale="none"))
    assert isinstance(made.validation, Split)
    assert isinstance(made.test, Split)
    assert (made.validation.inputs.min(), made.test.inputs.min()) == (200, 100)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({}, "there are no arrays"),
        ({"x": X[np.newaxis]}, r"x has the shape \(1, 60, 3\); a time series is \[rows\] or \[rows, columns\]"),
        ({"x": X[:0]}, r"x has the shape \(0, 3\)"),
        ({"x": np.array(3)}, r"x has the shape \(\)"),
        ({"x": X, "y": T[:50]}, "y has 50 rows, but x has 60"),
        ({"x": T.astype(str)}, "column 'x' has text"),
        ({"x_test": X, "x_train": np.array(1)}, r"x has the shape \(\)"),
    ],
)
def test_arrays_that_cannot_be_used(arrays: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        windowed_arrays("mine", arrays, options())
    headers = {name: Header(array.shape, array.dtype) for name, array in arrays.items()}
    with pytest.raises(DataError, match=words):
        survey_arrays(DatasetEntry("mine", "", "npz"), headers, options())


def test_survey_refuses_options_that_do_not_fit() -> None:
    entry = DatasetEntry("mine", "", "npz")
    headers = {"x": Header((60, 3), np.dtype(float))}
    for field, value in {"target": ("x[7]",), "split": "random", "window": 40, "group": "g"}.items():
        with pytest.raises(PlanError, match=f"^{field} = "):
            survey_arrays(entry, headers, options(**{field: value}))
    assert survey_arrays(entry, dict.fromkeys("xg", Header((60,), np.dtype(int))), options(group="g")).examples is None


@pytest.mark.parametrize("suffix", ["npz", "npy"])
def test_files(tmp_path: Path, suffix: str) -> None:
    path, other = tmp_path / f"mine.{suffix}", tmp_path / f"other.{suffix}"
    for place, values in ((path, T), (other, T[:20] + 100)):
        if suffix == "npz":
            np.savez(place, x=values, hour=values, more=values)
        else:
            np.save(place, values)
    more = {"time": "hour"} if suffix == "npz" else {}
    for values in ({}, {"validation_data": str(other)}):
        chosen = options(scale="none", **more, **values)
        made, entry = data.load(str(path), chosen), data.survey(data.find(str(path)), chosen)
        assert isinstance(made.train, Split)
        assert isinstance(made.validation, Split)
        assert (entry.examples, entry.validation_examples) == (len(made.train), len(made.validation))
        assert made.train.inputs.shape[1:] == (4, 1)
        assert made.validation.inputs.min() == (100 if values else 51)
        if more:
            assert "columns that are not used: 'more'" in made.notes
    with pytest.raises(PlanError, match=r"kinds = .*only for tables"):
        data.load(str(path), options(kinds=("x=number",)))
    with pytest.raises(DataError, match=rf"mine\.{suffix}.*windows of 4|window = 90"):
        data.load(str(path), options(validation_data=str(other), horizon=30))
