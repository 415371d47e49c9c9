"""A fingerprint changes with the data, and with nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from accel_engine.data import fingerprint as module
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.fingerprint import changed_parts, fingerprint
from accel_engine.data.standardization import Standardization

TEXTS = np.array([f"text {index}" for index in range(50)], object)
X = np.arange(150, dtype=np.float32).reshape(50, 3)
Y = np.arange(50) % 2
DATASET = Dataset("some", Split((X, TEXTS), Y), Split((X, TEXTS), Y), class_names=("a", "b"), feature_names=("x", "y"))


def with_row(row: int) -> Split:
    other = X.copy()
    other[row] += 1
    return Split((other, TEXTS), Y)


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"class_names": ("b", "a")}, ["classes"]),
        ({"feature_names": ("xy", "")}, ["columns"]),
        ({"vocabulary": ("a",)}, ["vocabulary"]),
        ({"train": with_row(17)}, ["training examples"]),
        ({"validation": with_row(49)}, ["validation examples"]),
        ({"train": Split((X, TEXTS[::-1]), Y)}, ["training examples"]),
        ({"train": Split((X, TEXTS), 1 - Y)}, ["training examples"]),
        ({"validation": None, "name": "other"}, []),
        (
            {"target_scaling": Standardization(np.zeros(1), np.ones(1))},
            ["training examples", "validation examples"],
        ),
    ],
)
def test_what_changes_is_named(changes: dict[str, object], parts: list[str]) -> None:
    before = fingerprint(DATASET)

    assert changed_parts(replace(DATASET), before) == []
    assert changed_parts(replace(DATASET, **changes), before) == parts


def test_of_large_arrays_some_rows_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", X.nbytes // 5)
    before = fingerprint(DATASET)

    assert changed_parts(replace(DATASET, train=with_row(49)), before) == ["training examples"]
    assert changed_parts(replace(DATASET, train=with_row(1)), before) == []
