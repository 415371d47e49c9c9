"""Describes a plan's data, and its model without training it; warms TensorFlow up with a step of a small model."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import keras
import tensorflow as tf

from accel_engine import data
from accel_engine.data.data_options import Progress
from accel_engine.data.dataset import Split
from accel_engine.data_profile.described_data import entry_of
from accel_engine.errors import DataError
from accel_engine.keras_support.divisibility import is_divisible
from accel_engine.keras_support.model_structure import has_custom_train_step, parameter_count
from accel_engine.models.build import build
from accel_engine.models.data_description import DataDescription, describe_entry
from accel_engine.models.loaded_data import describe_data
from accel_engine.models.traits import preprocessing
from accel_engine.plan import Plan
from accel_engine.plan.array_bytes import StageShare
from accel_engine.plan.memory_estimate import data_bytes
from accel_engine.plan.resolved_plan import resolve
from accel_engine.requests.describe_model import Description, ModelRequest
from accel_engine.requests.protocol.request import Send, reports
from accel_engine.training.core.compiled_model import build_plan_model
from accel_engine.training.core.pipeline.stages import TracedLayers, stage_shares, traced_layers
from accel_engine.training.core.recipe.freezing import freeze
from accel_engine.training.core.rematerialization.choice import is_all_keras, planned_parts
from accel_engine.training.core.rematerialization.division import divide_model
from accel_engine.training.model_analysis.activations import LayerActivations, output_sizes
from accel_engine.training.model_analysis.model_blocks import model_blocks


def describe_plan_model(request: ModelRequest, send: Send) -> Description:
    """Describe a plan's model; see :func:`measure_model`."""
    return measure_model(request.plan, reports(send) if request.loads_data else None)


def measure_model(plan: Plan, progress: Progress | None = None) -> Description:
    """Build the plan's model and return its size.

    The model is built in a separate graph, where variables are declared but not created, so the process can still
    configure TensorFlow's devices. If the data is loaded first, it cannot: builders compute with it.

    Args:
        plan: The plan.
        progress: Reports the number of examples read; without it, data is never loaded.

    Raises:
        AccelError: The data cannot be read, or the model does not fit it.
    """
    entry = data.survey(data.find(plan.data), plan.data_options)
    description = describe_entry(entry, plan.task)
    if progress is not None and resolve(plan).with_data(entry).is_sized_by_data:
        dataset = data.load(plan.data, plan.data_options, progress)
        return _described(plan, entry_of(dataset, entry), describe_data(dataset, plan.task))
    if description is None:
        raise DataError(f"the shape of the data {plan.data} is not known before it is read")
    with _own_graph():
        return _described(plan, entry, description)


@contextmanager
def _own_graph() -> Iterator[None]:
    try:
        with tf.Graph().as_default():
            yield
    finally:
        keras.backend.clear_session(free_memory=False)


def _described(plan: Plan, entry: data.DatasetEntry, description: DataDescription) -> Description:
    model = build_plan_model(plan, description)
    traced = traced_layers(model, description.inputs)
    activations = _activations(model, traced)
    saved_share, automatic = _rematerialized(plan, model)
    blocks, is_chain = model_blocks(model)
    trained = freeze(model, plan).variables
    return Description(
        parameters=model.count_params(),
        trainable=parameter_count(trained),
        widest=max((parameter_count([each]) for each in trained), default=0),
        layers=len(model.layers),
        saved=sum(layer.saved for layer in activations),
        largest=max((layer.largest for layer in activations), default=0),
        remat_share=saved_share,
        auto_activations=automatic,
        operations=traced.operations,
        is_divisible=is_divisible(model),
        stages=_stage_shares(model, plan, traced),
        examples=entry.examples,
        data_bytes=data_bytes(entry),
        input_shape=entry.shape or (),
        classes=entry.classes or 0,
        preprocessing=preprocessing(model, declared=entry.value_range is None or entry.value_range.declared),
        blocks=blocks,
        is_chain=is_chain,
    )


def _activations(model: keras.Model, traced: TracedLayers) -> tuple[LayerActivations, ...]:
    """The activations of a traced step; for a model that cannot be traced, the outputs of its layers."""
    return traced.activations or tuple(LayerActivations(size, size) for size in output_sizes(model))


def _rematerialized(plan: Plan, model: keras.Model) -> tuple[float | None, int]:
    """The share of the activations that stay in memory with rematerialization, and how many ``--remat auto`` counts.

    Both are unknown, ``None`` and 0, for a user's model that cannot be divided.

    Raises:
        PlanError: The plan has rematerialization, which this model cannot have, or names no layer of it.
    """
    custom_step = has_custom_train_step(model)
    if plan.remat == "on":
        parts, _ = planned_parts(plan, model, custom_step=custom_step)
        return parts.saved_share, 0
    try:
        parts, applies = divide_model(model), not custom_step and is_all_keras(model)
    except Exception:  # noqa: BLE001 (as above)
        return None, 0
    return parts.saved_share, (parts.activations or 0 if applies else 0)


def _stage_shares(model: keras.Model, plan: Plan, traced: TracedLayers) -> tuple[tuple[StageShare, ...], ...]:
    """The stages of a model; empty for a user's model that cannot be cut."""
    try:
        return stage_shares(model, plan, traced)
    except Exception:  # noqa: BLE001 (as above)
        return ()


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
    """Give the devices of a session their own threads; otherwise it would fix their number for the whole process."""
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
