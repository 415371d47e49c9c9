from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from accel_engine.data.dataset import Split
from accel_engine.data_profile import ProfiledData, profile_data, values
from accel_engine.data_profile.equal_rows import row_hashes
from accel_engine.data_profile.values import MAX_ROWS
from accel_engine.run import diagnostics
from accel_engine.run.diagnostics import DataProfile
from accel_engine.run.store.schema import DiagnosticsRow

RNG = np.random.default_rng(0)


class Lazy:
    """An array whose rows are read one by one."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._array = array
        self.shape, self.dtype, self.nbytes = array.shape, array.dtype, array.nbytes
        self.read = 0

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
        self.read += len(rows)
        taken: npt.NDArray[Any] = self._array[rows]
        return taken

    def __len__(self) -> int:
        return len(self._array)


def classes(count: int = 600, noise: float = 0.3) -> Split:
    """Two clouds of points."""
    y = RNG.integers(0, 2, count)
    x = RNG.normal(size=(count, 4)).astype(np.float32) * noise + y[:, np.newaxis]
    return Split(x, y.astype(np.int32))


def profiled(train: Any, validation: Any = None, **others: Any) -> DataProfile:
    found = profile_data(ProfiledData(train, validation, **others))
    assert found is not None
    return found


def test_counts_and_neighbours_of_classes() -> None:
    train = classes()

    found = profiled(train, classes(100), classes=2)

    assert sum(found.classes) == 600
    assert sum(found.validation_classes) == 100
    assert found.neighbours is not None
    assert found.neighbours > 0.95
    assert found.neighbours_chance == pytest.approx(0.5, abs=0.02)
    assert found.class_runs == pytest.approx(0.5, abs=0.1)
    assert (found.duplicates, found.leaked, found.examples, found.features) == (0, 0, 600, 4)
    assert found.shift is not None
    assert found.shift.features == 0


def test_shuffled_labels_have_neighbours_by_chance() -> None:
    train = classes()

    found = profiled(Split(train.inputs, RNG.permutation(train.targets)), classes=2)

    assert found.neighbours == pytest.approx(0.5, abs=0.1)


def test_one_hot_targets_are_classes() -> None:
    train = classes()

    assert (
        profiled(Split(train.inputs, np.eye(2)[train.targets]), classes=2).classes == profiled(train, classes=2).classes
    )


def test_equal_examples_are_counted() -> None:
    train, validation = classes(), classes(50)
    x = np.concatenate([train.inputs, train.inputs[:20], validation.inputs[:5]])
    y = np.concatenate([train.targets, 1 - train.targets[:20], validation.targets[:5]])

    found = profiled(Split(x, y), validation, classes=2)

    assert (found.duplicates, found.conflicts, found.leaked) == (20, 20, 5)
    assert (found.compared, found.compared_validation) == (625, 50)


def test_more_examples_than_labels_are_counted_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "_MAX_LABELS", 1100)
    train = classes()
    twice = Split(np.concatenate([train.inputs] * 2), np.concatenate([train.targets, 1 - train.targets]))
    found = profiled(twice, classes=2)
    assert (found.compared, found.duplicates, found.conflicts, sum(found.classes)) == (1200, 600, 600, 1100)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "uint8", "int64", "bool"])
@pytest.mark.parametrize("width", [1, 3, 8, 100])
def test_hashes_differ_where_rows_do(dtype: str, width: int) -> None:
    array = (RNG.random((300, width)) * 200).astype(dtype)

    hashes = row_hashes(array, np.arange(300))

    assert len(np.unique(hashes)) == len(np.unique(array, axis=0))


def test_texts_are_compared() -> None:
    x = np.array(["a", "b", "a"], object)

    assert profiled(Split(x, np.array([0, 1, 0])), Split(np.array(["b"], object), np.array([1])), classes=2).leaked == 1


def test_values_are_those_that_the_model_gets() -> None:
    x = RNG.integers(0, 256, (100, 4, 4, 1), np.uint8)

    found = profiled(Split(x, np.zeros(100, int)), scale=1 / 255, classes=2).inputs

    assert found is not None
    assert (found.low, found.high) == pytest.approx((x.min() / 255, x.max() / 255))
    assert found.mean == pytest.approx(x.mean() / 255, rel=1e-4)
    assert found.deviation == pytest.approx(x.std() / 255, rel=1e-4)


def test_values_that_are_not_finite_are_counted_and_left_out() -> None:
    x = np.ones((100, 2), np.float32)
    x[0, 0], x[1, 1] = np.nan, np.inf

    found = profiled(Split(x, np.array([np.nan, *[1.0] * 99])))

    assert found.inputs is not None
    assert found.inputs.not_finite == pytest.approx(0.01)
    assert found.inputs.high == 1.0
    assert found.targets_not_finite == pytest.approx(0.01)


def test_features_that_are_constant_uneven_or_shifted() -> None:
    x = RNG.normal(size=(500, 3)).astype(np.float32) * [0, 1, 1e6]
    other = x[:200] + np.array([0, 2, 0])

    found = profiled(Split(x, x[:, 1]), Split(other, other[:, 1]), names=("a", "b", "c"))

    assert found.constant_features == 1
    assert found.feature_scales is not None
    assert found.feature_scales > 1e5
    assert found.shift is not None
    assert (found.shift.feature, found.shift.features) == ("b", 1)
    assert found.shift.deviations == pytest.approx(2.0, abs=0.3)
    assert found.neighbours is not None
    assert found.neighbours > 0.9
    assert found.target_deviation == pytest.approx(1.0, abs=0.1)


def test_constant_targets_deviate_by_0() -> None:
    assert profiled(Split(np.ones((60, 2)), np.full(60, 3.0))).target_deviation == 0


def test_sorted_classes_are_noticed() -> None:
    train = classes()
    order = np.argsort(train.targets, kind="stable")

    assert profiled(Split(train.inputs[order], train.targets[order]), classes=2).class_runs == pytest.approx(598 / 599)


def test_several_inputs_count_together() -> None:
    train = Split({"a": np.ones((60, 2)), "b": RNG.random((60, 3)), "c": np.array(["x"] * 60, object)}, np.ones(60))

    assert profiled(train).features == 5


def test_tokens_have_no_values() -> None:
    found = profiled(Split(RNG.integers(0, 9, (60, 5)), np.zeros(60, int)), classes=2, tokens=True)

    assert (found.features, found.inputs, found.neighbours) == (0, None, None)


def test_of_large_examples_some_values_are_looked_at() -> None:
    x = np.zeros((40, 300_000), np.float32)

    found = profiled(Split(x, np.zeros(40, int)), classes=2)

    assert (found.examples, found.features) == (40, 300_000)


def test_few_rows_are_read_of_lazy_arrays() -> None:
    lazy = Lazy(RNG.random((100_000, 4)))

    found = profiled(Split(lazy, np.arange(100_000) % 2), classes=2)

    assert found.classes == (50_000, 50_000)
    assert found.compared == 0
    assert 0 < found.examples <= MAX_ROWS
    assert lazy.read <= MAX_ROWS + 16


def test_streams_are_left_alone() -> None:
    class Stream:
        spec = batches = batch_size = None

        def read(self, epoch: int, position: int) -> Any:
            raise AssertionError("a stream can be read only once")

    assert profile_data(ProfiledData(Stream())) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [0, 1, 2, 49])
def test_few_examples_are_no_error(count: int) -> None:
    train = classes(count) if count else Split(np.zeros((0, 4)), np.zeros(0, int))

    found = profile_data(ProfiledData(train, train, classes=2))

    assert (found is None) == (count == 0)


def test_a_profile_is_stored() -> None:
    found = profiled(classes(), classes(), classes=2)

    row = DiagnosticsRow(diagnostics.row_name(found), 0.0, 0, *diagnostics.serialize(found))
    assert diagnostics.decode_row(row) == found
