from typing import Any

import numpy as np
import pytest

from accel_engine.data.arrays import make_dataset
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.splits import split_rows
from accel_engine.data.structure import ArraySpec, Batch
from accel_engine.errors import DataError, PlanError

RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (40, 9, 8, 3)).astype(np.uint8)
Y = np.arange(40) % 4


def made(
    x: Any = X, y: Any = Y, weights: Any = None, *, validation: Any = None, test: Any = None, **options: Any
) -> Dataset:
    parts = {"train": Batch(x, y, weights)}
    parts |= {name: part for name, part in (("validation", validation), ("test", test)) if part is not None}
    return make_dataset("mine", parts, DataOptions(**options))


def train(dataset: Dataset) -> Split:
    assert isinstance(dataset.train, Split)
    return dataset.train


def test_bytes_stay_bytes() -> None:
    dataset = made(validation=Batch(X[:8], Y[:8]))
    assert train(dataset).inputs.dtype == np.uint8
    assert dataset.value_range == ValueRange("uint8", 255, pixels=True, declared=False)
    assert dataset.shape == (9, 8, 3)
    assert (dataset.class_names, dataset.task, dataset.kind) == (("0", "1", "2", "3"), "classification", "images")
    assert train(dataset).targets.dtype == np.int32
    assert isinstance(dataset.validation, Split)
    assert len(dataset.validation) == 8
    assert dataset.notes == ()


@pytest.mark.parametrize(
    ("x", "held", "largest", "pixels"),
    [
        (X, np.uint8, 255, True),
        (X[..., 0], np.uint8, 255, True),
        (X[..., :1], np.uint8, 255, True),
        (X.astype(np.uint16) * 257, np.uint16, 65535, True),
        (X[..., :2], np.uint8, 255, False),  # two channels are no image's
        (X[:, :1], np.uint8, 255, False),  # nor is a line
        (X[:, 0, :, 0], np.uint8, 255, False),  # nor are a table or tokens
        (X[:, 0, :, 0].astype(np.uint16), np.uint16, 65535, False),
        (X.astype(np.int64), np.int64, None, False),
        (X.astype(np.int64) - 9, np.int64, None, False),
        (X > 99, np.bool_, 1, False),
        (X / 255, np.float32, None, False),
    ],
)
def test_type_and_shape_alone_say_what_numbers_are(x: Any, held: Any, largest: int | None, pixels: bool) -> None:
    dataset = made(x)
    assert train(dataset).inputs.dtype == held
    assert dataset.value_range == ValueRange(str(x.dtype), largest, pixels, declared=False)
    rows = split_rows(40, DataOptions()).train
    np.testing.assert_array_equal(train(dataset).inputs.reshape(-1), x[rows].reshape(-1).astype(held))


def test_only_bytes_in_the_size_of_images_get_a_channel_axis() -> None:
    dataset = made(X[..., 0])
    assert dataset.shape == (9, 8, 1)
    assert "like images: added a channel axis" in dataset.notes[0]
    for series in (X[..., 0].astype(np.float32), X[..., 0].astype(np.int32), X[:, :, 0], X[..., 0] > 9):
        assert made(series).shape == series.shape[1:]
    declared = make_dataset("mine", {"train": Batch(X[:, :5, :5, 0], Y)}, DataOptions(), images=True)
    assert declared.shape == (5, 5, 1)
    plain = make_dataset("mine", {"train": Batch(X[..., 0], Y)}, DataOptions(), add_channels=False)
    assert (plain.shape, plain.value_range.pixels) == ((9, 8), False)


def test_a_tenth_is_the_validation_split() -> None:
    one, again, other = made(), made(), made(seed=1)
    parts = [dataset.validation for dataset in (one, again, other)]
    assert all(isinstance(part, Split) for part in parts)
    assert (len(train(one)), len(parts[0])) == (36, 4)
    np.testing.assert_array_equal(parts[0].inputs, parts[1].inputs)
    assert not np.array_equal(parts[0].inputs, parts[2].inputs)
    together = np.concatenate([train(one).inputs, parts[0].inputs]).reshape(40, -1)
    assert len(np.unique(together, axis=0)) == 40
    assert "validation split: 4 of 40 examples" in one.notes[0]


def test_splits_of_the_plan() -> None:
    both = made(split="stratified", validation_split=0.2, test_split=0.2)
    assert [len(part) for part in (both.train, both.validation, both.test)] == [24, 8, 8]
    assert sorted(both.validation.targets) == [0, 0, 1, 1, 2, 2, 3, 3]
    hot = made(y=np.eye(4)[Y], split="stratified", validation_split=0.2)
    assert (hot.validation.targets.sum(axis=0) == 2).all()
    assert made(split="none").validation is None
    tested = made(validation=Batch(X, Y), test_split=0.1)
    assert [len(part) for part in (tested.train, tested.validation, tested.test)] == [36, 40, 4]
    own = made(test=Batch(X[:5], Y[:5]), test_split=0.5)
    assert [len(part) for part in (own.train, own.validation, own.test)] == [36, 4, 5]
    with pytest.raises(PlanError, match="split"):
        made(y=RNG.random(40), split="stratified")


@pytest.mark.parametrize(
    ("y", "task", "classes"),
    [
        (Y, "classification", 4),
        (Y[:, None], "classification", 4),
        (Y.astype(float), "classification", 4),
        ((Y % 2).astype(bool), "classification", 2),
        ((Y % 2).astype(np.float32)[:, None], "classification", 2),
        (np.eye(4)[Y], "classification", 4),
        (np.eye(4, dtype=np.uint8)[Y], "classification", 4),
        (RNG.integers(0, 2, (40, 5)), "multi-label", 5),
        (RNG.random(40), "regression", 0),
        (RNG.random((40, 1)), "regression", 0),
        (RNG.random((40, 3)), "regression", 0),
        (Y * 2.5, "regression", 0),
        (RNG.random((40, 3, 2)), "regression", 0),
        (Y - 9, "regression", 0),
        (Y + 1990, "regression", 0),
        (np.arange(40), "regression", 0),
        (Y * 1_000_000, "regression", 0),
        (Y * 0, "auto", 0),
        (np.stack([Y, Y + 1], 1), "sequence", 5),
        (X[..., :1] // 64, "segmentation", 4),
        (X[..., 0] // 64, "segmentation", 4),
        (X[..., 0] > 99, "segmentation", 2),
        (np.eye(4)[X[..., 0] // 64], "segmentation", 0),
        (X, "reconstruction", 0),
        (X[..., :1] / 255, "reconstruction", 0),
        (None, "auto", 0),
    ],
)
def test_targets_tell_the_task(y: Any, task: str, classes: int) -> None:
    dataset = made(y=y, split="none")
    assert (dataset.task, dataset.classes) == (task, classes)
    got = train(dataset).targets
    if y is None:
        assert got is None
        return
    if task == "classification" and y.shape[1:] in ((), (1,)):
        assert (got.dtype, got.shape) == (np.int32, (40,))
        np.testing.assert_array_equal(got, y.reshape(-1))
    else:
        assert got.dtype == (np.float32 if y.dtype.kind == "f" or task == "regression" else y.dtype)
        np.testing.assert_allclose(got, y, rtol=1e-6)


def test_tokens_beside_tokens_are_a_sequence_even_if_they_are_0_and_1() -> None:
    tokens = RNG.integers(0, 9, (40, 6))
    assert made(tokens, tokens % 2, split="none").task == "sequence"
    assert made(RNG.random((40, 6)), tokens % 2, split="none").task == "multi-label"
    vectors = RNG.random((40, 6))
    assert made(vectors, vectors, split="none").task == "reconstruction"


def test_the_plan_says_what_targets_are() -> None:
    numbers = made(y=Y, task="regression", split="none")
    assert (numbers.task, numbers.classes, train(numbers).targets.dtype) == ("regression", 0, np.float32)
    custom = made(y=Y - 1, task="custom", split="none")
    assert (custom.task, train(custom).targets.dtype) == ("custom", Y.dtype)
    with pytest.raises(DataError, match=r"y_train\[0\] is -1: labels must be integers from 0"):
        made(y=Y - 1, task="classification")
    with pytest.raises(DataError, match="only one class"):
        made(y=Y * 0, task="classification")
    with pytest.raises(DataError, match="segmentation needs a label per pixel"):
        made(y=Y, task="segmentation")
    with pytest.raises(DataError, match="row 0 is not one-hot"):
        made(y=np.stack([Y, Y], 1), task="classification")
    with pytest.raises(DataError, match="row 2 is not all 0 or 1"):
        made(y=np.stack([Y, Y], 1), task="multi-label")


def test_texts_as_targets_are_classes() -> None:
    names = np.array(["dog", "cat", "emu", "fox"])[Y]
    dataset = made(y=names, validation=Batch(X[:2], names[:2].astype(object)))
    assert dataset.class_names == ("cat", "dog", "emu", "fox")
    assert train(dataset).targets[:4].tolist() == [1, 0, 2, 3]
    assert dataset.validation.targets.tolist() == [1, 0]
    with pytest.raises(DataError, match=r"y_val\[1\] is 'gnu', a class without training examples"):
        made(y=names, validation=Batch(X[:2], np.array(["dog", "gnu"])))


def test_named_classes() -> None:
    parts = {"train": Batch(X, Y)}
    dataset = make_dataset("mine", parts, DataOptions(), class_names=("a", "b", "c", "d", "e"))
    assert dataset.class_names == ("a", "b", "c", "d", "e")
    with pytest.raises(DataError, match="y_train has 4 classes, but there are 3 class names"):
        make_dataset("mine", parts, DataOptions(), class_names=("a", "b", "c"))


def test_structures() -> None:
    inputs = {"image": X, "age": RNG.random(40), "name": np.array(["a", "bc"] * 20)}
    targets = (Y, {"box": RNG.random((40, 4))})
    dataset = made(inputs, targets, np.ones(40), validation=Batch(inputs, targets))
    assert dataset.spec.inputs == {
        "image": ArraySpec((9, 8, 3), "uint8"),
        "age": ArraySpec((), "float32"),
        "name": ArraySpec((), "string"),
    }
    assert dataset.spec.targets == (ArraySpec((), "int64"), {"box": ArraySpec((4,), "float32")})
    assert dataset.spec.weights == ArraySpec((), "float32")
    assert (dataset.task, dataset.classes, dataset.shape) == ("auto", 0, None)


def test_values_that_are_not_finite() -> None:
    x, y = RNG.random((40, 3)), RNG.random(40)
    x[5, 1], y[7] = np.nan, np.inf
    with pytest.raises(DataError, match=r"x_train\[5\] has values that are NaN .*--invalid-examples skip"):
        made(x, y)
    dataset = made(x, y, split="none", invalid_examples="skip")
    assert len(train(dataset)) == 38
    np.testing.assert_array_equal(train(dataset).targets, np.delete(y, [5, 7]).astype(np.float32))
    words = "2 of 40 examples with values that are NaN or infinite left out: the first is x_train[5]"
    assert words in map(str, dataset.changes)
    with pytest.raises(DataError, match="all examples have values that are NaN"):
        made(x * np.nan, y, invalid_examples="skip")


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (X[:0], Y[:0], "x_train has no examples"),
        (X[:, :0], Y, "its examples are empty"),
        (X[0, 0, 0, 0], Y, "x_train is a single value"),
        (X, Y[:7], "x_train has 40 rows but y_train has 7"),
        ({"a": X, "b": X[:7]}, Y, "x_train/a has 40 rows but x_train/b has 7"),
        (X, np.array([None] * 40), "y_train has only one class"),
        (X, Y.astype(complex), "y_train holds complex numbers"),
        (X, np.array(list(map(str, range(40)))), "40 different texts in 40 examples: not class names"),
        (X.astype(object), Y, "x_train holds Python objects"),
        (X.astype(complex), Y, "x_train holds complex numbers"),
        (np.where(X[5, 0, 0, 0] == X, np.nan, 1.0), Y, "has values that are NaN or infinite"),
        (np.full((40, 2), 1e300), Y, r"x_train\[0\] has values that are NaN"),
    ],
)
def test_what_cannot_be_trained_on_is_explained(x: Any, y: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        made(x, y)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (X[:, :5], Y, "examples are uint8 9x8x3 in x_train but uint8 5x8x3 in x_val"),
        (X, Y + 1, "y_val has labels up to 4, but there are only classes 0 to 3"),
        (X / 255, Y, "examples are uint8 in x_train but float64 in x_val: both must have the same value range"),
        (
            X.astype(np.uint16),
            Y,
            "examples are uint8 in x_train but uint16 in x_val: both must have the same value range",
        ),
        (
            X.astype(np.int64),
            Y,
            "examples are uint8 in x_train but int64 in x_val: both must have the same value range",
        ),
        (X.astype(str), Y, "examples are uint8 in x_train but string in x_val"),
        (X, Y[:3], "x_val has 40 rows but y_val has 3"),
        (X, None, "y_train and y_val differ, one array and nothing: all splits must have the same arrays"),
        ({"a": X}, Y, "x_train and x_val differ, one array and a"),
    ],
)
def test_validation_data_must_be_like_training_data(x: Any, y: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        made(validation=Batch(x, y))


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (X // 16, Y, "has values only up to 15, although uint8 goes up to 255"),
        (X * 1.0, Y, "has float64 values up to 255: not scaled, as only uint8 and uint16 with 1, 3 or 4"),
        (X.astype(np.int64), Y, "has int64 values up to 255: not scaled"),
        (X[..., :2], Y, "has uint8 values up to 255: not scaled"),
        (X.reshape(40, -1), Y, "is uint8 but not in the shape of images: not scaled (--scale 0-1 divides by its"),
        (X.transpose(0, 3, 1, 2), Y, "looks channels-first"),
        (X, np.where(Y == 0, 1, Y), "y_train has no examples of 1 of its 4 classes, e.g. class 0"),
        (X, Y * 0, "y_train has the same value in all examples: not used as classes"),
        (X, Y + 1990, "integers from 1990 to 1993: used as numbers"),
        (X, np.arange(40) // 2 + 5, "integers from 5 to 24: used as classes; set the task to regression"),
    ],
)
def test_what_is_odd_is_said(x: Any, y: Any, words: str) -> None:
    assert any(words in note for note in made(x, y).notes)


@pytest.mark.parametrize("x", [X[:, 0, :, 0] // 5, X > 99, X / 255, X])
def test_what_is_usual_is_not_said(x: Any) -> None:
    assert made(x, validation=Batch(x, Y)).notes == ()
