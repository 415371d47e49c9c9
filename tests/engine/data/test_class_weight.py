from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data.class_weight import check_class_weights, unlearned_classes, weighted
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.source import DatasetEntry
from accel_engine.data.structure import ArraySpec, Batch
from accel_engine.errors import PlanError

X = np.zeros((6, 2), np.float32)
LABELS = np.array([0, 0, 0, 0, 1, 2])
CATS = ("cat", "dog", "eel")


def given(*values: str, **more: Any) -> DataOptions:
    return DataOptions(class_weight=values, **more)


def weights(targets: Any, *values: str, own: Any = None, **about: Any) -> Any:
    made = Dataset("mine", Split(X, targets, own), **about)
    train = weighted(made, given(*values)).train
    assert isinstance(train, Split)
    return train.weights


@pytest.mark.parametrize("targets", [LABELS, LABELS[:, None], np.eye(3)[LABELS], LABELS.astype(np.float32)])
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("balanced",), [0.5, 2, 2]),
        (("cat=3", "2=0"), [3, 1, 0]),
        (("2=0.25",), [1, 1, 0.25]),
    ],
)
def test_each_example_weighs_as_its_class(targets: Any, values: tuple[str, ...], expected: list[float]) -> None:
    found = weights(targets, *values, class_names=CATS, task="classification")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.array(expected, np.float32)[LABELS])


def test_sample_weights_are_multiplied() -> None:
    own = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(weights(LABELS, "0=2", own=own), own * [2, 2, 2, 2, 1, 1])


def test_classes_without_names_are_indices_and_others_weigh_1() -> None:
    np.testing.assert_array_equal(weights(LABELS, "1=5"), [1, 1, 1, 1, 5, 1])
    np.testing.assert_array_equal(weights(LABELS - 1, "1=5"), [1, 1, 1, 1, 1, 5])


def test_balanced_leaves_classes_without_examples_out() -> None:
    np.testing.assert_array_equal(weights(np.array([0, 0, 0, 2, 2, 2]), "balanced", class_names=CATS), np.ones(6))


def test_the_weights_are_noted_and_other_splits_unchanged() -> None:
    split = Split(X, LABELS)
    made = weighted(Dataset("mine", split, split, split, class_names=CATS, notes=("a",)), given("balanced"))
    assert made.notes == ("a", "class weights of training examples: cat 0.5, dog 2, eel 2")
    assert (made.validation, made.test) == (split, split)
    many = Dataset("mine", Split(np.zeros((12, 1)), np.arange(12)))
    assert weighted(many, given("balanced")).notes[0].endswith("7 1 and 4 more")


@dataclass
class Lazy:
    shape = (6,)
    dtype = np.dtype(np.int64)
    nbytes = 48

    def take(self, rows: Any) -> Any:
        return LABELS[rows]

    def __len__(self) -> int:
        return 6


def test_targets_that_are_not_in_memory_are_read() -> None:
    np.testing.assert_array_equal(weights(Lazy(), "balanced"), [0.5, 0.5, 0.5, 0.5, 2, 2])


@dataclass
class Batches:
    targets: Any
    weights: Any = None
    batches = 2
    batch_size = 3

    @property
    def spec(self) -> Batch:
        sides = self.targets.shape[1:]
        own = None if self.weights is None else ArraySpec((), "float64")
        return Batch(ArraySpec((2,), "float32"), ArraySpec(sides, self.targets.dtype.name), own)

    def read(self, epoch: int, position: int) -> Any:
        for index in range(position, 2):
            rows = slice(3 * index, 3 * index + 3)
            yield Batch(X[rows], self.targets[rows], None if self.weights is None else self.weights[rows])


@pytest.mark.parametrize("own", [None, np.arange(6.0)])
def test_the_batches_of_a_stream_get_weights(own: Any) -> None:
    made = weighted(Dataset("mine", Batches(LABELS, own)), given("0=2", "1=3")).train
    assert (made.batches, made.batch_size, made.spec.weights) == (2, 3, ArraySpec((), "float32"))
    expected = np.array([2, 2, 2, 2, 3, 1], np.float32) * (1 if own is None else own)
    np.testing.assert_array_equal(np.concatenate([each.weights for each in made.read(0, 0)]), expected)
    (last,) = made.read(0, 1)
    np.testing.assert_array_equal(last.weights, expected[3:])


@pytest.mark.parametrize(
    ("dataset", "values", "words"),
    [
        (Dataset("", Batches(LABELS)), ("balanced",), "the classes of a stream are not counted.*cat=1,dog=5"),
        (Dataset("", Split(X, X)), ("0=1",), "needs one class for each example; the data has float32 2"),
        (Dataset("", Split(X)), ("0=1",), "the data has no targets"),
        (Dataset("", Split(X, {"a": LABELS, "b": X})), ("0=1",), "the data has several targets"),
        (Dataset("", Split(X, X[:, 0])), ("0=1",), "the data has float32"),
        (Dataset("", Split(X, LABELS), task="regression"), ("0=1",), "the task is regression"),
        (Dataset("", Split(X, X), task="multi-label", class_names=("a", "b")), ("a=1",), "the task is multi-label"),
        (Dataset("", Split(X, LABELS), class_names=CATS), ("cta=1",), r"no class 'cta'; did you mean cat\?"),
        (Dataset("", Split(X, LABELS), class_names=CATS), ("3=1",), "no class '3'; known: cat, dog, eel"),
        (
            Dataset("", Split(X, LABELS), class_names=CATS),
            ("cat=1", "0=5"),
            "two weights for class cat, by its name and",
        ),
        (
            Dataset("", Split(X, LABELS), class_names=("1", "2", "3")),
            ("0=1", "1=5"),
            "no class '0'; known: 1, 2, 3; numbers are names here",
        ),
        (Dataset("", Split(X, LABELS)), ("cat=1",), "no class 'cat'; the data has no names of classes: use their ind"),
    ],
)
def test_what_cannot_be_weighted(dataset: Dataset, values: tuple[str, ...], words: str) -> None:
    with pytest.raises(PlanError, match=words) as caught:
        weighted(dataset, given(*values))
    assert caught.value.field == "class_weight"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (("balance",), "must be balanced or CLASS=WEIGHT, e.g. balance=2"),
        (("=3",), "must be balanced or CLASS=WEIGHT"),
        (("cat=x",), "the weight must be a number of at least 0"),
        (("cat=-1",), "at least 0"),
        (("cat=nan",), "at least 0"),
        (("cat=inf",), "at least 0"),
        (("balanced", "cat=1"), "must be balanced or CLASS=WEIGHT"),
        (("cow=1",), "no class 'cow'"),
        (("cat=1", "cat=5"), "has two weights for class cat"),
    ],
)
def test_mistakes_are_found_before_the_data_is_read(values: tuple[str, ...], words: str) -> None:
    entry = DatasetEntry("mine", "", "npz", classes=len(CATS), class_names=CATS, task="classification")
    with pytest.raises(PlanError, match=words):
        check_class_weights(entry, given(*values))
    with pytest.raises(PlanError, match="the task is regression"):
        check_class_weights(replace(entry, task="regression"), given("cat=1"))
    with pytest.raises(PlanError, match="the task is multi-label"):
        check_class_weights(entry, given("cat=1", task="multi-label"))
    check_class_weights(entry, given("cat=1", "2=3"))
    check_class_weights(replace(entry, class_names=(), task="auto"), given("cow=1"))
    check_class_weights(replace(entry, classes=None), given("cow=1"))  # there may be others


def test_a_file_is_surveyed_and_loaded_with_weights(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, x=X, y=np.array(CATS)[LABELS])
    options = given("balanced", split="none")
    assert data.survey(data.find(str(path)), options).examples == 6
    train = data.load(str(path), options).train
    assert isinstance(train, Split)
    np.testing.assert_array_equal(train.weights, [0.5, 0.5, 0.5, 0.5, 2, 2])
    with pytest.raises(PlanError, match="did you mean eel"):
        data.survey(data.find(str(path)), given("eeel=2"))


def test_classes_without_training_examples_are_named_by_name_or_index() -> None:
    train, other = Split(X[:4], LABELS[:4]), Split(X, LABELS)
    for names, named in ((CATS, "dog, eel"), ((), "1, 2")):
        made = Dataset("mine", train, test=other, class_names=names, task="classification")
        (warning,) = unlearned_classes(made, DataOptions())
        assert warning == f"classes {named} have no training examples, only others: they cannot be learned"
    assert not unlearned_classes(replace(made, train=other, test=train), DataOptions())
    assert not unlearned_classes(made, DataOptions(task="regression"))
