from typing import Any

import numpy as np
import pytest

from accel_engine.data.data_options import DataOptions
from accel_engine.data.splits import choose_split, split_counts, split_rows
from accel_engine.errors import PlanError


def options(**values: Any) -> DataOptions:
    return DataOptions(**values)


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("examples", [1, 2, 9, 100, 1797])
def test_random_split_is_numpys_permutation(examples: int, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(examples)
    count = 0 if examples < 2 else max(1, round(examples * 0.1))
    train, validation, test = split_rows(examples, options(seed=seed))
    np.testing.assert_array_equal(validation, np.sort(order[:count]))
    np.testing.assert_array_equal(train, np.sort(order[count:]))
    assert len(test) == 0


@pytest.mark.parametrize("split", ["auto", "random", "stratified", "ordered", "none"])
@pytest.mark.parametrize("shares", [(0.1, 0.0), (0.2, 0.2), (0.5, 0.1), (0.1, 0.6)])
@pytest.mark.parametrize("examples", [20, 57, 500])
def test_every_example_is_in_one_split(split: str, shares: tuple[float, float], examples: int) -> None:
    labels = np.random.default_rng(1).integers(0, 4, examples)
    if split == "none":
        shares = (shares[0], 0.0)
    chosen = options(split=split, validation_split=shares[0], test_split=shares[1])
    rows = split_rows(examples, chosen, labels)
    assert sorted(np.concatenate(rows)) == list(range(examples))
    assert (len(rows.validation), len(rows.test)) == split_counts(examples, chosen)
    assert all((np.diff(part) > 0).all() for part in rows)
    for part, again in zip(rows, split_rows(examples, chosen, labels), strict=True):
        np.testing.assert_array_equal(part, again)


def test_seed_changes_random_and_stratified_splits_only() -> None:
    labels = np.arange(60) % 3
    for split, same in {"random": False, "stratified": False, "ordered": True}.items():
        one, other = (split_rows(60, options(split=split, seed=seed), labels).validation for seed in (0, 1))
        assert np.array_equal(one, other) == same, split


def test_ordered_split_ends_with_validation_and_test() -> None:
    train, validation, test = split_rows(20, options(split="ordered", validation_split=0.2, test_split=0.1))
    assert (list(train), list(validation), list(test)) == (list(range(14)), [14, 15, 16, 17], [18, 19])


def test_auto_is_ordered_where_the_order_means_something() -> None:
    assert choose_split(options()) == "random"
    assert choose_split(options(), ordered=True) == "ordered"
    assert list(split_rows(10, options(), ordered=True).validation) == [9]
    for split in ("random", "stratified"):
        assert choose_split(options(split=split)) == split
        with pytest.raises(PlanError, match=f"split = '{split}': would put neighbours .* use ordered or none"):
            choose_split(options(split=split), ordered=True)


def test_stratified_split_has_the_share_of_every_class() -> None:
    labels = np.repeat([5, "b", "c"], [900, 90, 10])
    rows = split_rows(1000, options(split="stratified", validation_split=0.1, test_split=0.2), labels)
    for part, expected in zip(rows, [(630, 63, 7), (90, 9, 1), (180, 18, 2)], strict=True):
        assert tuple(np.unique(labels[part], return_counts=True)[1]) == expected


@pytest.mark.parametrize("seed", range(20))
def test_every_class_of_a_stratified_split_is_trained_on(seed: int) -> None:
    generator = np.random.default_rng(seed)
    labels = np.concatenate([generator.integers(0, 30, 100), [30, 31, 32]])  # some with very few examples
    chosen = options(split="stratified", validation_split=0.3, test_split=0.2, seed=seed)
    rows = split_rows(len(labels), chosen, labels)
    assert set(labels[rows.train]) == set(labels)
    assert (len(rows.validation), len(rows.test)) == split_counts(len(labels), chosen)


def test_stratified_split_needs_classes_with_several_examples() -> None:
    with pytest.raises(PlanError, match="needs one class per example; use random"):
        split_rows(10, options(split="stratified"))
    with pytest.raises(PlanError, match="10 classes are too many for 10 examples; use random"):
        split_rows(10, options(split="stratified"), np.arange(10))


def test_no_split_has_all_examples_in_training() -> None:
    train, validation, test = split_rows(7, options(split="none"))
    assert (list(train), list(validation), list(test)) == (list(range(7)), [], [])
    with pytest.raises(PlanError, match=r"test_split = 0\.2: needs another split than --split none"):
        split_rows(7, options(split="none", test_split=0.2))


def test_a_file_with_validation_examples_leaves_the_others_to_training() -> None:
    chosen = options(validation_data="valid.csv", test_split=0.1)
    train, validation, test = split_rows(30, chosen)
    assert (len(train), len(validation), len(test)) == (27, 0, 3)


def test_split_by_a_column_needs_a_table() -> None:
    with pytest.raises(PlanError, match="split = 'column:part': needs a table with this column"):
        split_rows(10, options(split="column:part"))


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ((0.1, 0.9), "test_split = 0.9: 1 validation and 4 test examples leave none of 4 to train on"),
        ((0.9, 0.1), "validation_split = 0.9: 4 validation and 1 test examples leave none"),
    ],
)
def test_shares_that_leave_nothing_to_train_on(shares: tuple[float, float], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        split_rows(4, options(validation_split=shares[0], test_split=shares[1]))


def test_very_few_examples() -> None:
    assert split_counts(0, options()) == (0, 0)
    assert split_counts(1, options(test_split=0.5)) == (0, 0)
    assert split_counts(2, options()) == (1, 0)
