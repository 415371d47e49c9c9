"""Trains a small model for a step before there is a plan, so that the first steps of a run take less time.

The first steps of a process take longer than later ones: modules are imported late, and TensorFlow loads kernels and
optimizes a graph for the first time. A session of its own leaves TensorFlow's eager context alone, so the process can
still configure its devices.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import keras
import tensorflow as tf

from accel_engine import data
from accel_engine.data.dataset import Split
from accel_engine.models.build import build
from accel_engine.models.loaded_data import describe_data

EXAMPLES = 64

_OWN_THREADS = "TF_OVERRIDE_GLOBAL_THREADPOOL"
"""The environment variable with which each of TensorFlow's devices has its own threads for operations."""

UPDATES = ("AssignAddVariableOp", "AssignSubVariableOp")
"""The operations with which Keras' optimizers update variables."""


def warm_up() -> None:
    """Train ``mlp`` on ``digits`` for a step on the CPU; does nothing where TensorFlow is built for GPUs.

    A session initializes the driver of a GPU even if it uses none, and no plan has chosen devices yet.
    """
    if tf.test.is_built_with_gpu_support():
        return
    graph = tf.Graph()
    try:
        with graph.as_default(), _threads_of_its_own(), tf.compat.v1.Session(graph=graph) as session:
            loss = _train()
            session.run(tf.compat.v1.global_variables_initializer())
            session.run([loss, *(operation for operation in graph.get_operations() if operation.type in UPDATES)])
    finally:
        keras.backend.clear_session(free_memory=False)


@contextmanager
def _threads_of_its_own() -> Iterator[None]:
    """Give the devices of a session threads of their own; otherwise it would fix their number for the whole process."""
    os.environ[_OWN_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_OWN_THREADS]


def _train() -> tf.Tensor:
    """The loss of a step, in the current graph. A loop or a gradient tape would initialize TensorFlow's devices."""
    dataset = data.load("digits", data.DataOptions())
    assert isinstance(dataset.train, Split)  # noqa: S101 (it is in memory)
    inputs = tf.constant(dataset.train.inputs[:EXAMPLES], tf.float32)
    targets = tf.constant(dataset.train.targets[:EXAMPLES])
    model = build("mlp", describe_data(dataset, "auto"))
    model.compile("adam", "sparse_categorical_crossentropy")
    model.optimizer.build(model.trainable_variables)
    loss: tf.Tensor = model.compute_loss(inputs, targets, model(inputs, training=True))
    gradients = tf.gradients(loss, [variable.value for variable in model.trainable_variables])
    model.optimizer.apply(gradients, model.trainable_variables)
    return loss
