"""What Keras does otherwise than a call of ``fit`` says, noticed by the recorder and told by advice."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine import RunRecorder
from accel_engine.advice import find_troubles, read_recorded
from accel_engine.events import CLASS_WEIGHT_IGNORED, EMPTY_BATCH, Warned
from accel_engine.recording.fit_faults import faults_of

from .conftest import Read, examples

pytestmark = pytest.mark.filterwarnings("ignore:Your input ran out of data:UserWarning")

X = examples()[0][:24]


def classifier(units: int = 3, **compiled: Any) -> keras.Model:
    model = keras.Sequential([keras.Input(X.shape[1:]), keras.layers.Flatten(), keras.layers.Dense(units)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.0), loss, **compiled)
    return model


def batches() -> Iterator[tuple[Any, Any]]:
    for first in range(0, 24, 4):
        yield X[first : first + 4], np.zeros(4, np.int32)


def fixed(size: int | None = 4) -> tf.data.Dataset:
    spec = tf.TensorSpec((size, *X.shape[1:]), X.dtype), tf.TensorSpec((size,), "int32")
    return tf.data.Dataset.from_generator(batches, output_signature=spec)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({0: 1.0, 1: 2.0, 2: 1.0}, ()),
        ({np.int64(1): 2.0, 2.0: 1.0}, ()),
        ({"0": 1.0, "1": 5.0}, ("'0', '1': Keras compares them with integer classes",)),
        ({0: 1.0, 3: 5.0, 0.5: 1.0}, ("3, 0.5: the model has 3 classes, counted from 0",)),
        (None, ()),
    ],
)
def test_keys_of_class_weight_that_no_class_has(weights: Any, words: tuple[str, ...]) -> None:
    found = faults_of({"self": classifier(), "x": X, "class_weight": weights})
    assert found == tuple(f"{CLASS_WEIGHT_IGNORED}: {each}" for each in found_texts(found))
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True))


def found_texts(messages: tuple[str, ...]) -> list[str]:
    return [message.partition(": ")[2] for message in messages]


@pytest.mark.parametrize(
    ("arguments", "compiled", "is_found"),
    [
        ({"x": fixed}, {}, True),
        ({"x": X, "validation_data": fixed}, {}, True),
        ({"x": lambda: fixed(None)}, {}, False),
        ({"x": lambda: fixed().apply(tf.data.experimental.assert_cardinality(6))}, {}, False),
        ({"x": fixed, "steps_per_epoch": 6}, {}, False),
        ({"x": fixed}, {"run_eagerly": True}, False),
        ({"x": fixed}, {"steps_per_execution": 2}, False),
        ({"x": fixed}, {"jit_compile": True}, False),
    ],
)
def test_a_batch_too_many_is_told_where_keras_counts_it(
    arguments: dict[str, Any], compiled: dict[str, Any], is_found: bool
) -> None:
    given = {name: value() if callable(value) else value for name, value in arguments.items()}
    model = classifier(**compiled)
    assert any(each.startswith(EMPTY_BATCH) for each in faults_of({"self": model, **given})) is is_found
    right = classifier(run_eagerly=True)
    right.set_weights(model.get_weights())
    data = given.get("validation_data", given["x"])
    losses = [each.evaluate(data, verbose=0) for each in (model, right)] if "steps_per_epoch" not in given else [1, 1]
    assert (losses[0] < 0.95 * losses[1]) is is_found  # so it is in this version of Keras


def test_an_ended_generator_and_ignored_weights_are_findings_of_advice() -> None:
    recorder = RunRecorder()
    classifier().fit(X, np.zeros(24, np.int32), class_weight={"0": 9.0}, verbose=0, callbacks=[recorder])
    (warning,) = Read(recorder.directory).all(Warned)
    assert warning.message.startswith(CLASS_WEIGHT_IGNORED)
    found = {each.id: each for each in find_troubles(read_recorded(recorder.directory))}
    assert found["class-weight-ignored"].evidence[0].text.startswith("'0': Keras compares")

    recorder = RunRecorder()
    classifier().fit(batches(), epochs=3, shuffle=False, verbose=0, callbacks=[recorder])
    found = {each.id: each for each in find_troubles(read_recorded(recorder.directory))}
    assert found["fewer-batches"].evidence[0].text == "the first epoch has 6 batches, the 2 after it have 2"


def test_a_fit_that_keras_carries_out_as_it_says_has_no_such_finding() -> None:
    recorder = RunRecorder()
    arguments = {"epochs": 3, "class_weight": {0: 9.0}, "verbose": 0, "callbacks": [recorder]}
    classifier().fit(X, np.zeros(24, np.int32), batch_size=4, **arguments)
    found = {each.id for each in find_troubles(read_recorded(recorder.directory))}
    assert not Read(recorder.directory).all(Warned)
    assert not found & {"class-weight-ignored", "empty-batch-counted", "fewer-batches"}
