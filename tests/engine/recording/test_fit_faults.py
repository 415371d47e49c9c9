"""What Keras does otherwise than a call of ``fit`` says, noticed by the recorder and told by advice."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine import RunRecorder
from accel_engine.advice import find_troubles, read_recorded
from accel_engine.events import ARGUMENT_LOST, CLASS_WEIGHT_IGNORED, EMPTY_BATCH, Warned
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


class Scale(keras.layers.Layer):
    def __init__(self, factor: float = 1.0, shift: float = 0.0, **other: Any) -> None:
        super().__init__(**other)
        self.factor, self.shift = factor, shift

    def call(self, inputs: Any) -> Any:
        return inputs * self.factor + self.shift


class Forgetful(Scale):
    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "shift": self.shift}


class Complete(Forgetful):
    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.update(factor=self.factor)
        return config


class Computed(Scale):
    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **{name: getattr(self, name) for name in ("factor", "shift")}}


class Restored(Forgetful):
    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        return cls(factor=3.0, **config)


class ScaledDense(keras.layers.Dense):
    def __init__(self, units: int, factor: float = 1.0, **other: Any) -> None:
        super().__init__(units, **other)
        self.factor = factor

    def call(self, inputs: Any) -> Any:
        return super().call(inputs) * self.factor


class Holder(keras.layers.Layer):
    def __init__(self, **other: Any) -> None:
        super().__init__(**other)
        self.inner = Forgetful(3.0)

    def build(self, shape: Any) -> None:
        self.inner.build(shape)

    def call(self, inputs: Any) -> Any:
        return self.inner(inputs)


@pytest.mark.parametrize(
    ("layer", "is_lost"),
    [
        (lambda: Scale(3.0), False),
        (lambda: Forgetful(3.0), True),
        (lambda: Forgetful(shift=2.0), False),
        (lambda: Complete(3.0), False),
        (lambda: Computed(3.0), False),
        (lambda: Restored(3.0), False),
        (lambda: ScaledDense(2, factor=3.0), True),
        (lambda: ScaledDense(2, use_bias=False), False),
        (lambda: keras.Sequential([Forgetful(factor=3.0)]), True),
        (lambda: Holder(), False),
    ],
)
def test_an_argument_that_a_saved_model_loses(layer: Any, is_lost: bool, tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((2,)), layer()])
    kind = type(layer()).__name__.replace("Sequential", "Forgetful")
    lost = f"{ARGUMENT_LOST}: {kind} has factor=3.0, which a saved model does not have: it loads with 1.0"
    assert faults_of({"self": model}) == ((lost,) if is_lost else ())

    classes = (Scale, Forgetful, Complete, Computed, Restored, ScaledDense, Holder)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", {each.__name__: each for each in classes})
    outputs = [each(np.ones((1, 2), np.float32)).numpy() for each in (model, loaded)]
    assert np.allclose(*outputs) is not is_lost  # so it is in this version of Keras


def test_no_code_of_a_layer_is_called_to_find_what_it_loses() -> None:
    model = keras.Sequential([keras.Input((2,)), Forgetful(3.0), Computed(2.0)])
    called = []

    def notice(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename == __file__:
            called.append(frame.f_code.co_name)

    sys.setprofile(notice)
    try:
        found = faults_of({"self": model})
    finally:
        sys.setprofile(None)
    assert len(found) == 1
    assert not called


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
