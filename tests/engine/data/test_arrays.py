from typing import Any

import numpy as np
import pytest

from accel_engine.data.arrays import from_arrays
from accel_engine.data.dataset import Dataset, split_rows, validation_count
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.errors import DataError

RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (40, 6, 5, 3)).astype(np.uint8)
Y = np.arange(40) % 4


def made(x: Any = X, y: Any = Y, **test: Any) -> Dataset:
    return from_arrays("mine", {"x_train": np.asarray(x), "y_train": np.asarray(y), **test}, seed=0)


def test_bytes_stay_bytes() -> None:
    dataset = made(x_test=X[:8], y_test=Y[:8])
    assert dataset.train.x.dtype == np.uint8
    assert dataset.value_range == ValueRange("uint8", 255, pixels=True, declared=False)
    assert dataset.shape == (6, 5, 3)
    assert (dataset.classes, dataset.class_names) == (4, ("0", "1", "2", "3"))
    assert dataset.train.y.dtype == np.int32
    assert dataset.validation is not None
    assert len(dataset.validation) == 8
    assert dataset.notes == ()


@pytest.mark.parametrize(
    ("x", "held", "largest", "pixels"),
    [
        (X, np.uint8, 255, True),
        (X[..., 0], np.uint8, 255, True),
        (X[..., :1], np.uint8, 255, True),
        (X.astype(np.uint16) * 257, np.float32, 65535, True),
        (X[..., :2], np.uint8, 255, False),  # two channels are no image's
        (X[:, :1], np.uint8, 255, False),  # nor is a line
        (X[:, 0, :, 0], np.uint8, 255, False),  # nor are a table or tokens
        (X[:, 0, :, 0].astype(np.uint16), np.uint8, 65535, False),
        (X.astype(np.int64), np.uint8, None, False),
        (X.astype(np.int64) * 257, np.float32, None, False),
        (X.astype(np.int64) - 9, np.float32, None, False),
        (X > 99, np.uint8, 1, False),
        (X / 255, np.float32, None, False),
    ],
)
def test_type_and_shape_alone_say_what_numbers_are(x: Any, held: Any, largest: int | None, pixels: bool) -> None:
    dataset = made(x)
    assert dataset.train.x.dtype == held
    assert dataset.value_range == ValueRange(str(x.dtype), largest, pixels, declared=False)
    np.testing.assert_array_equal(dataset.train.x.reshape(-1), x[split_rows(40, 0)[0]].reshape(-1).astype(held))


def test_a_tenth_is_the_validation_split() -> None:
    one, again = made(), made()
    other = from_arrays("mine", {"x_train": X, "y_train": Y}, seed=1)
    assert one.validation is not None
    assert again.validation is not None
    assert other.validation is not None
    assert (len(one.train), len(one.validation)) == (36, 4)
    np.testing.assert_array_equal(one.validation.x, again.validation.x)
    assert not np.array_equal(one.validation.x, other.validation.x)
    together = np.concatenate([one.train.x, one.validation.x]).reshape(40, -1)
    assert len(np.unique(together, axis=0)) == 40
    assert "validation split: 4 of 40 examples" in one.notes[0]


def test_every_example_is_on_one_side_of_a_split() -> None:
    for examples in (1, 2, 9, 100, 1797):
        chosen, apart = split_rows(examples, seed=3)
        assert sorted([*chosen, *apart]) == list(range(examples))
        assert len(apart) == validation_count(examples)
    assert (validation_count(1), validation_count(2), validation_count(100)) == (0, 1, 10)


def test_images_without_channels_get_one() -> None:
    dataset = made(X[..., 0])
    assert dataset.shape == (6, 5, 1)
    assert "no channel axis" in dataset.notes[0]


@pytest.mark.parametrize(
    "y", [Y[:, None], Y.astype(float), np.eye(4)[Y], np.eye(4, dtype=bool)[Y], np.eye(4, dtype=np.uint8)[Y]]
)
def test_labels_in_every_form_become_sparse(y: Any) -> None:
    dataset = made(y=y, x_test=X, y_test=y)
    np.testing.assert_array_equal(dataset.train.y, Y)
    assert dataset.classes == 4


def test_binary_labels() -> None:
    assert made(y=(Y % 2).astype(bool)).classes == 2
    assert made(y=(Y % 2).astype(np.float32)[:, None]).classes == 2


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (X[:0], Y[:0], "x_train has no examples"),
        (X[:, :0], Y, "its examples are empty"),
        (X[0, 0, 0, 0], Y, "x_train is a single value"),
        (X, Y[:7], "x_train has 40 examples but y_train has 7 labels"),
        (X, Y - 1, r"y_train\[0\] is -1: labels must be integers from 0"),
        (X, Y + 0.5, r"y_train\[0\] is 0.5"),
        (X, np.where(Y == 3, np.nan, Y), r"y_train\[3\] is nan"),
        (X, np.where(Y == 3, np.inf, Y), r"y_train\[3\] is inf"),
        (X, Y * 1_000_000, "not class labels"),
        (X, Y * 0, "only one class"),
        (X, np.stack([Y, Y], 1), "row 0 is not one-hot"),
        (X, np.zeros((40, 2, 2)), r"y_train has the shape \(40, 2, 2\)"),
        (X, np.array(["a"] * 40), "y_train holds text"),
        (X, np.array([None] * 40), "y_train holds Python objects"),
        (X.astype(str), Y, "x_train holds text"),
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
        (X[:, :5], Y, "examples are 6x5x3 in x_train but 5x5x3 in x_test"),
        (X, Y + 1, "y_test has labels up to 4, but y_train only has classes 0 to 3"),
        (X / 255, Y, "x_train is uint8 but x_test is float64: both must have the same value range"),
        (X.astype(np.uint16), Y, "x_train is uint8 but x_test is uint16: both must have the same value range"),
        (X.astype(np.int64), Y, "x_train is uint8 but x_test is int64: both must have the same value range"),
        (X, Y[:3], "x_test has 40 examples but y_test has 3 labels"),
    ],
)
def test_test_data_must_be_like_training_data(x: Any, y: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        made(x_test=x, y_test=y)


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
    ],
)
def test_what_is_odd_is_said(x: Any, y: Any, words: str) -> None:
    assert any(words in note for note in made(x, y).notes)


@pytest.mark.parametrize("x", [X[:, 0, :, 0] // 5, X > 99, X / 255, X])
def test_what_is_usual_is_not_said(x: Any) -> None:
    assert made(x, x_test=x, y_test=Y).notes == ()
