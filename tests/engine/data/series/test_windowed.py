from dataclasses import replace
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine.data import dataset
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.series.series_parts import window_counts
from accel_engine.data.series.windowed import TEST, TRAIN, VALIDATION, windowed
from accel_engine.errors import DataError, PlanError

RNG = np.random.default_rng(0)


def options(**values: Any) -> DataOptions:
    return DataOptions(**{"window": 4, **values})


def raw(dataset: Dataset) -> list[Split | None]:
    splits = [dataset.train, dataset.validation, dataset.test]
    assert all(split is None or isinstance(split, Split) for split in splits)
    return splits  # type: ignore[return-value]


def rows_of(split: Split | None) -> set[float]:
    """The row numbers in a split of a series whose only column counts its rows."""
    if split is None:
        return set()
    batch = split.take(np.arange(len(split)))
    return {*batch.inputs.ravel().tolist(), *batch.targets.ravel().tolist()}


def test_targets_follow_their_window() -> None:
    made = windowed("mine", {"a": np.arange(10.0)}, options(window=3, horizon=2, split="none", scale="none"))
    assert isinstance(made.train, Split)
    np.testing.assert_array_equal(made.train.inputs[0], [[0], [1], [2]])
    np.testing.assert_array_equal(made.train.targets[0], [3, 4])
    np.testing.assert_array_equal(made.train.inputs[-1], [[5], [6], [7]])
    np.testing.assert_array_equal(made.train.targets[-1], [8, 9])
    assert (made.task, made.kind, made.validation, made.test) == ("regression", "series", None, None)


def test_windows_are_those_of_keras() -> None:
    """With targets moved by the window, as its documentation recommends."""
    values = RNG.normal(size=(50, 3)).astype(np.float32)
    table = dict(zip("abc", values.T, strict=True))
    made = windowed("mine", table, options(window=7, target=("b",), split="none", scale="none"))
    theirs = keras.utils.timeseries_dataset_from_array(values[:-1], values[7:, 1], 7, batch_size=100)
    ((inputs, targets),) = theirs.as_numpy_iterator()
    assert isinstance(made.train, Split)
    np.testing.assert_array_equal(made.train.inputs, inputs)
    np.testing.assert_array_equal(made.train.targets[:, 0], targets)


@pytest.mark.parametrize(
    ("targets", "horizon", "shape"),
    [
        (("b",), 1, (1,)),
        (("b",), 5, (5,)),
        (("b", "a"), 1, (2,)),
        (("b", "a"), 5, (5, 2)),
        ((), 1, (3,)),
        ((), 5, (5, 3)),
    ],
)
def test_shapes(targets: tuple[str, ...], horizon: int, shape: tuple[int, ...]) -> None:
    table = {name: RNG.normal(size=60) for name in "abc"}
    made = windowed("mine", table, options(target=targets, horizon=horizon))
    assert (made.spec.inputs.shape, made.spec.inputs.dtype) == ((4, 3), "float32")
    assert (made.spec.targets.shape, made.spec.targets.dtype) == (shape, "float32")
    assert (made.feature_names, made.target_names) == (("a", "b", "c"), targets or ("a", "b", "c"))
    assert isinstance(made.train, Split)
    assert made.target_scaling is not None
    restored = made.target_scaling.restore(made.train.targets[0].reshape(horizon, -1))
    expected = np.stack([table[name][4 : 4 + horizon] for name in made.target_names], axis=1)
    np.testing.assert_allclose(restored, expected, rtol=1e-5, atol=1e-5)


def random_series(seed: int) -> tuple[dict[str, Any], DataOptions]:
    """Groups of random lengths in random order, sometimes with missing values, and random options."""
    generator = np.random.default_rng(seed)
    window, horizon, groups = map(int, generator.integers(1, [9, 5, 5]))
    lengths = generator.integers(1, 12 * (window + horizon), groups)
    lengths[0] = 4 * (window + horizon)  # one at least can be divided
    rows = int(lengths.sum())
    table = {
        "row": np.arange(rows),
        "time": np.concatenate([np.arange(length) for length in lengths]),
        "group": np.repeat(np.arange(groups), lengths),
        "noise": generator.normal(size=rows),
    }
    if seed % 3 == 0:
        table["noise"][generator.integers(0, rows, 2)] = np.nan
    shuffled = generator.permutation(rows)
    chosen = options(
        window=window,
        horizon=horizon,
        time="time",
        group="group",
        scale="none",
        invalid_examples="skip",
        validation_split=float(generator.choice([0.1, 0.3])),
        test_split=float(generator.choice([0.0, 0.2])),
    )
    return {name: column[shuffled] for name, column in table.items()}, chosen


@pytest.mark.parametrize("seed", range(150))
def test_no_row_is_in_two_splits_and_scaling_knows_training_rows_only(seed: int) -> None:
    table, chosen = random_series(seed)
    group_of = dict(zip(table["row"].tolist(), table["group"].tolist(), strict=True))
    missing = set(table["row"][np.isnan(table["noise"])].tolist())
    both = replace(chosen, features=("row", "noise"), target=("row",))
    try:
        splits = raw(windowed("mine", table, both))
    except DataError:
        if missing:  # in all windows of a part
            return
        raise
    used = []
    for split in splits:
        whole = np.zeros((0, 1))
        if split is not None:
            batch = split.take(np.arange(len(split)))
            whole = np.concatenate([batch.inputs[..., 0], batch.targets], axis=1)
            assert (np.diff(whole) == 1).all(), "rows that do not follow each other"
            assert all(group_of[row[0]] == group_of[row[-1]] for row in whole.tolist()), "a window over two series"
        used.append(set(whole.ravel().tolist()))
    assert sum(map(len, used)) == len(set.union(*used)), "a row in two splits"
    assert set.union(*used).isdisjoint(missing)
    assert [bool(rows) for rows in used] == [True, True, chosen.test_split > 0]
    for earlier, later in (used[:2], used[1:], used[::2]):
        for group in set(group_of.values()):
            before, after = ([row for row in rows if group_of[row] == group] for rows in (earlier, later))
            assert not before or not after or max(before) < min(after), "not in order"

    scaled = replace(chosen, scale="auto", features=("row", "noise"), target=("noise",))
    held = np.isin(table["row"], list(used[1] | used[2]))
    changed = {**table, "noise": np.where(held, 1e6, table["noise"])}
    one, other = (raw(windowed("mine", each, scaled))[0] for each in (table, changed))
    assert one is not None
    assert other is not None
    for mine, theirs in zip(one.arrays, other.arrays, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("rows", [12, 20, 57, 400])
@pytest.mark.parametrize(("window", "horizon"), [(1, 1), (4, 2)])
@pytest.mark.parametrize("test_split", [0.0, 0.2])
def test_only_windows_over_a_border_are_left_out(rows: int, window: int, horizon: int, test_split: float) -> None:
    chosen = options(window=window, horizon=horizon, test_split=test_split)
    if rows == 12 and window == 4 and test_split:
        with pytest.raises(PlanError, match="18 rows at least, but the longest series has 12"):
            window_counts(rows, chosen)
        return
    made = windowed("mine", {"a": np.arange(rows)}, chosen)
    lengths = tuple(len(split) if split else 0 for split in raw(made))
    assert lengths == window_counts(rows, chosen)
    borders = 2 if test_split else 1
    assert sum(lengths) == rows - (borders + 1) * (window + horizon - 1)


def test_inputs_and_targets_are_standardised_by_training_rows() -> None:
    table = {"a": RNG.normal(5, 3, 500), "b": np.arange(500) % 7, "same": np.full(500, 0.1)}
    made = windowed("mine", table, options(target=("b",), horizon=2))
    train = raw(made)[0]
    assert train is not None
    inputs = np.concatenate([train.inputs[:, 0], train.inputs[-1, 1:]])
    np.testing.assert_allclose(inputs.mean(axis=0), [0, 0, 0], atol=0.02)
    np.testing.assert_allclose(inputs.std(axis=0), [1, 1, 0], atol=0.02)
    assert made.target_scaling is not None
    np.testing.assert_allclose(made.target_scaling.restore(train.targets[0]), [4, 5], rtol=1e-6)
    words = "all columns standardized: also those to predict, by mean and standard deviation of the training rows"
    assert words in map(str, made.changes)
    assert made.preprocess is not None
    model = made.preprocess()
    window = np.stack([table[name][:4] for name in made.feature_names], axis=1)[np.newaxis].astype(np.float32)
    np.testing.assert_allclose(model(window), train.inputs[:1], atol=1e-5)


def test_scale_none_leaves_numbers_as_they_are() -> None:
    made = windowed("mine", {"a": np.arange(50.0)}, options(scale="none"))
    assert (made.preprocess, made.target_scaling) == (None, None)
    assert not made.changes
    assert raw(made)[0].inputs[3, 0, 0] == 3  # type: ignore[union-attr]


def test_many_windows_stay_lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"a": RNG.normal(size=200), "b": RNG.normal(size=200)}
    chosen = options(target=("b",), horizon=3)
    eager = windowed("mine", table, chosen)
    monkeypatch.setattr(dataset, "LARGEST_MADE", 10)
    lazy = windowed("mine", table, chosen)
    for one, other in zip(raw(eager), raw(lazy), strict=True):
        assert (one is None) == (other is None)
        if one is None or other is None:
            continue
        assert (one.in_memory, other.in_memory) == (True, False)
        assert (len(one), one.nbytes, one.spec) == (len(other), other.nbytes, other.spec)
        rows = np.array([5, 0, 5, len(one) - 1])
        for mine, theirs in zip(one.take(rows), other.take(rows), strict=True):
            if mine is not None:
                np.testing.assert_array_equal(mine, theirs)
                assert theirs.dtype == np.float32


def test_the_split_of_a_column() -> None:
    parts = np.array([TRAIN] * 20 + [VALIDATION] * 8 + [TRAIN] * 9 + [TEST] * 7)
    made = windowed("mine", {"row": np.arange(44.0)}, options(scale="none"), parts=parts)
    used = [rows_of(split) for split in raw(made)]
    assert used == [set(range(20)) | set(range(28, 37)), set(range(20, 28)), set(range(37, 44))]


def test_validation_and_test_data_of_their_own() -> None:
    tables = [{"row": np.arange(30.0) + first, "more": np.zeros(30)} for first in (0, 100, 200)]
    chosen = options(scale="none", features=("row",), target=("row",))
    made = windowed("mine", tables[0], chosen, validation=tables[1], test=tables[2])
    assert [min(rows_of(split)) for split in raw(made)] == [0, 100, 200]
    assert [len(rows_of(split)) for split in raw(made)] == [30, 30, 30]
    made = windowed("mine", tables[0], replace(chosen, scale="auto"), validation=tables[1])
    assert made.target_scaling is not None
    assert made.target_scaling.mean == pytest.approx([14.5])
    with pytest.raises(DataError, match=r"validation data: .*no column 'row'; did you mean rows"):
        windowed("mine", tables[0], chosen, validation={"rows": np.arange(30.0)})
    with pytest.raises(DataError, match="validation data has no windows of 4 rows and 1 to predict"):
        windowed("mine", tables[0], chosen, validation={"row": np.arange(4.0)})
    other = replace(chosen, validation_data="data/other.csv")
    with pytest.raises(DataError, match=r"^other\.csv has no windows of 4 rows and 1 to predict"):
        windowed("mine", tables[0], other, validation={"row": np.arange(4.0)})


def test_evaluated_data_leaves_the_training_rows_as_they_were() -> None:
    own, other = ({"row": np.arange(40.0) + first} for first in (0, 100))
    trained = windowed("mine", own, options())
    evaluated = windowed("mine", own, options(validation_data="other.csv", keeps_split=True), validation=other)
    train, validation, _ = raw(evaluated)
    assert train is not None
    assert rows_of(train) == rows_of(raw(trained)[0])
    assert validation is not None
    assert len(validation) == 36  # each window of 4 and the row that follows
    assert evaluated.target_scaling is not None
    assert trained.target_scaling is not None
    assert evaluated.target_scaling.mean == trained.target_scaling.mean
    lowest = evaluated.target_scaling.restore(validation.take(np.arange(1)).inputs)
    np.testing.assert_allclose(lowest[0, :, 0], [100, 101, 102, 103], rtol=1e-6)


@pytest.mark.parametrize("split", ["random", "stratified"])
def test_a_random_split_is_refused(split: str) -> None:
    with pytest.raises(PlanError, match=f"split = '{split}': would put neighbours"):
        windowed("mine", {"a": np.arange(50)}, options(split=split))


def test_too_few_rows() -> None:
    words = "in each of 2 parts, 10 rows at least, but the longest series has 9; use fewer or --split none"
    with pytest.raises(PlanError, match=f"window = 4: needs 4 rows and 1 to predict {words}"):
        windowed("mine", {"a": np.arange(9)}, options())
    windowed("mine", {"a": np.arange(10)}, options())
    with pytest.raises(PlanError, match="needs 4 rows and 1 to predict, but the longest series has 4 rows"):
        windowed("mine", {"a": np.arange(4)}, options(split="none"))
    with pytest.raises(PlanError, match="leave none of"):
        windowed("mine", {"a": np.arange(50)}, options(validation_split=0.6, test_split=0.6))


def test_short_series_are_counted() -> None:
    group = np.repeat(list("abc"), [100, 7, 3])
    made = windowed("mine", {"a": np.arange(110), "g": group}, options(group="g"))
    assert "2 of 3 series are too short to be divided: their windows, if any, are for training" in made.notes
    assert made.feature_names == ("a",)


def test_without_a_target_all_columns_are_predicted() -> None:
    made = windowed("mine", {"a": np.arange(50), "b": np.arange(50)}, options(ignore=("b",)))
    assert made.target_names == ("a",)
    assert "no target is given: all columns of the inputs are predicted" in made.notes
