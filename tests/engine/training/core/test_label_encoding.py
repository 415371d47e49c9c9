import re
from typing import Any

import keras
import pytest
import tensorflow as tf

from accel_engine.keras_support.losses import loss_name
from accel_engine.training.core.label_encoding import BINARY, ONE_HOT, SPARSE, encoding_for

LOSSES = keras.losses


def own(y_true: Any, y_pred: Any) -> Any:
    return tf.reduce_mean((tf.cast(y_true, y_pred.dtype) - y_pred[:, 0]) ** 2)


class Own(keras.losses.Loss):
    def call(self, y_true: Any, y_pred: Any) -> Any:
        return own(y_true, y_pred)


def named(value: Any) -> str:
    """A name for a test that is the same in every process."""
    return re.sub(r" object at 0x\w+| at 0x\w+|0x\w+", "", str(value))


@pytest.mark.parametrize(
    ("loss", "form"),
    [
        (None, SPARSE),
        ("sparse_categorical_crossentropy", SPARSE),
        (LOSSES.SparseCategoricalCrossentropy(), SPARSE),
        (LOSSES.sparse_categorical_crossentropy, SPARSE),
        (["sparse_categorical_crossentropy"], SPARSE),
        ({"out": LOSSES.SparseCategoricalCrossentropy()}, SPARSE),
        ("categorical_crossentropy", ONE_HOT),
        (LOSSES.CategoricalFocalCrossentropy(), ONE_HOT),
        (LOSSES.kl_divergence, ONE_HOT),
        (["mse"], ONE_HOT),
        (own, SPARSE),
        (Own(), SPARSE),
    ],
    ids=named,
)
def test_a_loss_gets_the_encoding_that_it_expects(loss: Any, form: str) -> None:
    assert encoding_for(loss, units=3, classes=3).form == form


@pytest.mark.parametrize("loss", ["binary_crossentropy", "mse", own, ["binary_crossentropy"]], ids=named)
def test_one_output_for_two_classes_gets_binary_labels(loss: Any) -> None:
    assert encoding_for(loss, units=1, classes=2).form == BINARY


@pytest.mark.parametrize(("logits", "threshold"), [(True, 0.0), (False, 0.5)])
def test_the_threshold_depends_on_logits(logits: bool, threshold: float) -> None:
    labels = encoding_for(LOSSES.BinaryCrossentropy(from_logits=logits), units=1, classes=2)

    assert labels.threshold == threshold
    outputs = tf.constant([[threshold - 0.1], [threshold + 0.1]])
    assert labels.correct(tf.constant([0, 0]), outputs).numpy().tolist() == [1.0, 0.0]


def test_one_hot_labels_are_as_wide_as_the_output() -> None:
    assert encoding_for("categorical_crossentropy", units=5, classes=3).encode(tf.constant([2])).shape == (1, 5)


def test_a_loss_in_a_list_has_its_own_name() -> None:
    assert loss_name(["mse"]) == "mse"
