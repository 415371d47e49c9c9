"""The cause of an error in a graph comes before the place in the graph, whatever TensorFlow raises."""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.errors import ModelError, cause_first, format_error, frames_in
from accel_engine.plan import Plan
from accel_engine.scripts.terminal_relay import end_of_output
from accel_engine.training.reporting.error_explanation import explain_error
from accel_engine.user_code import model_errors, reason

X, LABELS = np.linspace(0, 1, 40, dtype=np.float32).reshape(10, 4), np.arange(10) % 5


def fitted(call: Callable[[Any], Any] = lambda x: x, labels: Any = LABELS % 3) -> BaseException:
    """What ``fit`` raises of a model with a layer that calls a function."""

    class Own(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return call(x)

        def compute_output_shape(self, shape: Any) -> Any:
            return shape

    model = keras.Sequential([keras.Input((4,)), Own(), keras.layers.Dense(3)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    with pytest.raises(tf.errors.OpError) as raised:
        model.fit(X, labels, verbose=0)
    return raised.value


def asserted(x: Any) -> Any:
    tf.debugging.assert_less(x, 0.5, message="inputs must be below a half")
    return x


def reshaped(x: Any) -> Any:
    return tf.reshape(x, (tf.shape(x)[0], tf.cast(x[0, 0] * 0 + 3, tf.int32)))


def python(x: Any) -> Any:
    def wrong(_: Any) -> Any:
        raise ValueError("a bad row")

    return tf.ensure_shape(tf.py_function(wrong, [x], tf.float32), (None, 4))


@pytest.mark.parametrize(
    ("failed", "beginning"),
    [
        (lambda: fitted(labels=LABELS), r"InvalidArgumentError: Received a label value of [34] which is outside the v"),
        (lambda: fitted(asserted), r"InvalidArgumentError: assertion failed: \[inputs must be below a half\]"),
        (lambda: fitted(reshaped), r"InvalidArgumentError: Input to reshape is a tensor with 40 values, but the req"),
        (lambda: fitted(python), r"InvalidArgumentError: ValueError: a bad row \(at sequential"),
    ],
    ids=["label", "assert", "reshape", "python"],
)
def test_the_cause_is_first_and_the_frames_are_folded(failed: Callable[[], BaseException], beginning: str) -> None:
    error = failed()
    explained, _ = explain_error(error, Plan())
    printed = end_of_output(
        f'Traceback (most recent call last):\n  File "a.py", line 3\n{type(error).__name__}: {error}'
    )
    for text in (reason(error), format_error(error), explained):
        assert re.match(beginning, text)
        assert 'File "' not in text
        assert "most recent call" not in text
    assert beginning.split(":")[-1].lstrip()[:9].replace("\\", "") in printed
    if "label" not in beginning:
        assert f"({__file__}, line " in explained
        assert Path(frames_in(str(error))[-1][0]).name.endswith(".py")


def test_the_first_of_several_causes_is_told() -> None:
    text = (
        "Graph execution error:\n\nDetected at node a/Gather defined at (most recent call last):\n"
        '  File "/x/y.py", line 3, in call\n\nDetected at node b/Gather defined at (most recent call last):\n'
        '  File "/x/y.py", line 3, in call\n\n2 root error(s) found.\n  (0) INVALID_ARGUMENT:  indices[0] = 4 is not '
        "in [0, 3)\n\t [[{{node a/Gather}}]]\n\t [[b/Read/_8]]\n  (1) INVALID_ARGUMENT:  indices[1] = 5 is not in "
        "[0, 3)\n\t [[{{node b/Gather}}]]\n0 successful operations.\n0 derived errors ignored. [Op:__inference_f_1]"
    )
    assert cause_first(text) == "indices[0] = 4 is not in [0, 3) (at a/Gather)"


def test_errors_of_a_dataset_have_their_cause_first() -> None:
    rows = tf.data.Dataset.from_tensor_slices(["1", "a"]).map(tf.strings.to_number)
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        list(rows)
    assert re.match(r"InvalidArgumentError: Error in user-defined function.* convert string: a$", reason(raised.value))


@pytest.mark.parametrize("text", ["", "a\nb", 'File "x", line 3: bad', "Traceback (most recent call last):"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert cause_first(text) == text


def test_a_full_disk_is_not_blamed_on_the_model() -> None:
    for full in (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), RuntimeError("m.pb; No space left on device")):
        with pytest.raises(ModelError) as caught, model_errors("the model cannot be converted to ONNX"):
            raise full
        assert str(caught.value) == "the model cannot be converted to ONNX: the disk is full"
