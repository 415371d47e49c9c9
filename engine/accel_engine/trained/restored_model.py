"""Restores the model of a run's checkpoint for inference."""

from collections.abc import Callable
from pathlib import Path

import keras
import tensorflow as tf

from accel_engine import models
from accel_engine.data.dataset import Dataset
from accel_engine.data.structure import Batch, Structure, map_structure
from accel_engine.errors import RunError
from accel_engine.keras_support.model_structure import has_custom_train_step
from accel_engine.models import UserModel
from accel_engine.models.build import output_specs
from accel_engine.models.data_description import DataDescription
from accel_engine.models.loaded_data import describe_data
from accel_engine.models.model_call import call_model
from accel_engine.plan import Plan
from accel_engine.run.diagnostics import read
from accel_engine.run.directory.run_paths import CHECKPOINTS
from accel_engine.training.build_plan_model import build_plan_model
from accel_engine.training.core.readable_checkpoint import reading
from accel_engine.training.core.recipe.loss import change_loss, loss_of_uncompiled
from accel_engine.training.core.run_scaling import scaler
from accel_engine.training.core.saved_weights import restore_weights
from accel_engine.training.core.task import Task, custom_task, find_task
from accel_engine.training.model_analysis.layer_table import changed_layer


class RestoredModel:
    """A restored model that takes raw examples.

    Args:
        model: The built model.
        task: What it was trained for.
        output_specs: The specs of its outputs.
        scale: How raw inputs are scaled.
    """

    def __init__(
        self, model: keras.Model, task: Task, output_specs: Structure, scale: Callable[[Structure], Structure]
    ) -> None:
        self.model = model
        self.task = task
        self.output_specs = output_specs
        self._scale = scale

    def prepare(self, raw: Batch) -> Batch:
        """What the model and its loss take, from raw examples."""
        inputs = self._scale(raw.inputs)
        return Batch(inputs, self.task.encode(raw.targets, inputs), raw.weights)

    def outputs(self, raw: Structure) -> Structure:
        """The model's outputs for raw inputs."""
        inputs = self._scale(map_structure(tf.convert_to_tensor, raw))
        return call_model(self.model, inputs, training=False)


def restore_model(
    plan: Plan,
    data: Dataset,
    scale: Callable[[keras.Model], float],
    directory: Path,
    step: int,
    description: DataDescription | None = None,
    build: Callable[[], keras.Model] | None = None,
) -> RestoredModel:
    """Build a plan's model and load a checkpoint's weights.

    Args:
        plan: The run's plan.
        data: The data, of which only the description is used.
        scale: Returns the factor that the model's raw inputs are multiplied by.
        directory: The run's directory.
        step: The checkpoint's step.
        description: What the model is built with, where the data has no examples.
        build: Makes the model, in place of the plan's builder.

    Raises:
        ModelError: The model cannot be built.
        RunError: The checkpoint is damaged, or belongs to another model.
    """
    keras.config.set_dtype_policy(plan.policy)
    layers = read(directory).layers
    description = description or describe_data(data, plan.task)
    model = build() if build else build_plan_model(plan, description)
    change = changed_layer(model, layers)
    if change and not isinstance(models.find(plan.model), UserModel):
        raise RunError(f"run {directory.name} was trained with another version of model {plan.model}: {change}")
    outputs = output_specs(model, description)
    if not model.compiled:
        model.compile(loss=loss_of_uncompiled(model, outputs, data, plan))
    own_step = has_custom_train_step(model)
    if not own_step:
        change_loss(model, outputs, data, plan)
    task = custom_task(model, outputs, data) if own_step else find_task(model, outputs, data, plan.task)
    restored = RestoredModel(model, task, outputs, scaler(scale(model), data))
    with reading(directory / CHECKPOINTS, step) as path:
        restore_weights(model, path, averages=True)
    return restored
