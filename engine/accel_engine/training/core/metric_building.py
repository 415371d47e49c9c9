"""Creates the variables of a model's losses and metrics before its first step, and checks that they fit the data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from accel_engine.data.dataset import Dataset
from accel_engine.data.structure import Batch, Structure, flatten, map_structure
from accel_engine.errors import ModelError
from accel_engine.keras_support.losses import masked_ctc_fault
from accel_engine.keras_support.model_structure import metrics_of
from accel_engine.models.model_call import call_model
from accel_engine.plan import Plan
from accel_engine.private_names.keras_names import compiled_metrics, kept_losses
from accel_engine.training.core.metric_states import compute_loss, not_additive, own_metrics, update_metrics
from accel_engine.training.core.recipe.loss import mixed_metrics_note
from accel_engine.training.core.recipe.metrics import (
    measure_in_units,
    plan_metrics,
    regression_metrics,
    second_class_note,
)
from accel_engine.training.core.task import Task
from accel_engine.user_code import model_errors


@dataclass(frozen=True, slots=True)
class Measures:
    """The metrics of a model besides its own."""

    metrics: tuple[keras.Metric, ...] = ()
    information: tuple[str, ...] = ()
    """Notes for the user."""
    notes: tuple[str, ...] = ()
    """Warnings for the user."""


_MOST_TRIED = 10**7
"""Values of an example up to which the user's own metrics are tried before training."""


def measures_of(
    model: keras.Model, task: Task, outputs: Structure, dataset: Dataset, plan: Plan, batch: int
) -> Measures:
    """Create the metrics of a model, and the variables of losses and metrics that it has itself.

    Args:
        model: Compiled, without a custom ``train_step``.
        task: What it learns.
        outputs: The specs of its outputs, ``(None, ...)``.
        dataset: The data.
        plan: The plan, with its metrics.
        batch: Examples of a batch.

    Raises:
        ModelError: The loss or a metric does not fit the outputs and the targets, or there is none.
        PlanError: A metric of the plan does not fit the task.
    """
    _build_metrics(model, task, outputs, dataset, batch)
    information = measure_in_units(model, outputs, dataset)
    # now that the names of the model's own are known
    metrics = (*task.metrics(model), *regression_metrics(model, task, outputs, dataset))
    metrics += plan_metrics(plan, task, outputs, dataset, (*metrics_of(model), *metrics))
    _build_plan_metrics(metrics, task, outputs, dataset)
    information += second_class_note(plan, task, outputs, dataset)
    notes = check_metrics(model, task, outputs, dataset)
    notes += mixed_metrics_note(plan, task.name, (*metrics_of(model), *metrics))
    return Measures(metrics, tuple(information), tuple(notes))


def _build_metrics(model: keras.Model, task: Task, outputs: Structure, dataset: Dataset, batch: int) -> None:
    """Create the variables of the model's losses and metrics.

    Raises:
        ModelError: The loss or a metric does not fit the outputs and the targets, or there is none.
    """
    if fault := masked_ctc_fault(model.loss, model):
        raise ModelError(fault)
    own = keras.tree.flatten([each for each in compiled_metrics(model) if each is not None])
    # Keras adjusts it in Python, of the number of examples times outputs (keras-team/keras#23334).
    if any(isinstance(each, keras.metrics.R2Score) and each.num_regressors for each in own):
        raise ModelError(
            "the model's R2Score has num_regressors: Keras 3.15 cannot adjust it in a graph, and with several outputs "
            "adjusts it wrongly; leave num_regressors out"
        )

    def evaluate(inputs: Structure, targets: Structure, outputs: Structure) -> tf.Tensor:
        encoded = task.encode(targets, inputs)
        if model.loss is None:  # its layers may add the loss when they are called
            weights = [(variable, tf.convert_to_tensor(variable.value)) for variable in model.trainable_variables]
            with keras.StatelessScope(state_mapping=weights, collect_losses=True):
                outputs = call_model(model, inputs, training=True)
                model.compute_metrics(inputs, encoded, outputs, None)
                return compute_loss(model, Batch(inputs, encoded), outputs, training=True)
        model.compute_metrics(inputs, encoded, outputs, None)
        return compute_loss(model, Batch(inputs, encoded), outputs, training=True)

    def spec_of(each: Any, first: int) -> tf.TensorSpec:
        return tf.TensorSpec((batch, *each.shape[first:]), each.dtype)

    raw = [map_structure(lambda each: spec_of(each, 0), part) for part in dataset.spec[:2]]
    specs = *raw, keras.tree.map_structure(lambda each: spec_of(each, 1), outputs)
    # The variables are created after the scope, as they must be outside of a graph.
    problem = "the model's loss or metrics do not fit the data"
    with model_errors(problem), kept_losses(model), keras.StatelessScope():
        tf.function(evaluate, autograph=False).get_concrete_function(*specs)


def _build_plan_metrics(metrics: Sequence[keras.Metric], task: Task, outputs: Structure, dataset: Dataset) -> None:
    """Create the variables of metrics that are not part of the model."""
    if not metrics:
        return

    def update(inputs: Structure, targets: Structure, outputs: Structure) -> None:
        update_metrics(metrics, task.encode(targets, inputs), outputs)

    specs = [
        keras.tree.map_structure(lambda each, first=first: tf.TensorSpec((2, *each.shape[first:]), each.dtype), part)
        for part, first in ((dataset.spec.inputs, 0), (dataset.spec.targets, 0), (outputs, 1))
    ]
    with keras.StatelessScope():
        tf.function(update, autograph=False).get_concrete_function(*specs)


def check_metrics(model: keras.Model, task: Task, outputs: Structure, dataset: Dataset) -> list[str]:
    """A note on metrics whose values over several batches differ from ``fit``."""
    specs = [*flatten(dataset.spec[:2]), *flatten(outputs)]
    if not own_metrics(model) or sum(math.prod(side or 1 for side in spec.shape) for spec in specs) > _MOST_TRIED:
        return []

    def ones(spec: Any) -> tf.Tensor:
        shape = (2, *(side or 1 for side in spec.shape))
        return tf.zeros(shape, spec.dtype) if spec.dtype == "string" else tf.ones(shape, spec.dtype)

    def any_values(spec: Any) -> tf.Tensor:
        shape = (2, *(side or 1 for side in spec.shape[1:]))
        return tf.cast(tf.random.stateless_uniform(shape, (0, 0)), spec.dtype)

    try:
        inputs, targets = (map_structure(ones, part) for part in dataset.spec[:2])
        some = keras.tree.map_structure(any_values, outputs)
        names = not_additive(model, Batch(inputs, task.encode(targets, inputs)), some)
    except Exception:  # noqa: BLE001 (a metric that cannot take these values)
        return []
    return [
        f"metric {name} does not keep sums that start at zero, and its states are added over batches and replicas: "
        "only its value of a single batch is right"
        for name in names
    ]
