"""Models that take batches of one size only get any number of examples."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.keras_support.model_structure import fixed_batch
from accel_engine.models.model_call import call_model

INPUTS = np.linspace(-40, 40, 60).reshape(20, 3).astype(np.float32)
LABELS = np.arange(20) % 2


def made(batch: int | None, activation: str = "softmax") -> keras.Model:
    """A confident classifier of three numbers, with the same weights for each batch size."""
    inputs = keras.Input(batch_shape=(batch, 3))
    outputs = keras.layers.Dense(2, activation if activation == "softmax" else tf.nn.softmax)(inputs)
    model = keras.Model(inputs, outputs)
    model.layers[-1].set_weights([np.arange(6, dtype=np.float32).reshape(3, 2) - 2, np.ones(2, np.float32)])
    model.compile(loss="sparse_categorical_crossentropy")
    return model


def loss_of(model: keras.Model) -> float:
    """The loss of all examples in one graph, as an evaluation computes it."""

    def compute(inputs: tf.Tensor) -> tf.Tensor:
        outputs = call_model(model, inputs, training=False)
        return model.compute_loss(inputs, tf.constant(LABELS), outputs, training=False)

    graph = tf.function(compute, autograph=False, reduce_retracing=fixed_batch(model) is None)
    return float(graph(tf.constant(INPUTS)))


@pytest.mark.parametrize("activation", ["softmax", "of TensorFlow"])
def test_more_examples_than_a_batch_have_the_logits_of_all_parts(activation: str) -> None:
    own = made(8, activation)
    outputs = call_model(own, tf.constant(INPUTS), training=False)

    assert outputs.numpy() == pytest.approx(made(None).predict(INPUTS, verbose=0))
    assert loss_of(own) == pytest.approx(loss_of(made(None)), rel=1e-6)
    assert loss_of(own) > 16.2  # beyond what clipped probabilities can give


def test_a_graph_that_does_not_know_that_examples_are_more_than_a_batch_fails() -> None:
    model = made(8)
    graph = tf.function(lambda inputs: call_model(model, inputs, training=False), autograph=False)
    traced = graph.get_concrete_function(tf.TensorSpec((None, 3)))

    assert traced(tf.constant(INPUTS[:5])).shape == (5, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="the model takes batches of 8 only"):
        traced(tf.constant(INPUTS))
