"""Restores the model of a run's checkpoint for inference."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine import models
from accel_engine.errors import ModelError, RunError
from accel_engine.models import ModelEntry
from accel_engine.models.build import build
from accel_engine.models.traits import output_units, returns_logits
from accel_engine.plan import Plan
from accel_engine.run.diagnostics import InputSpec, read
from accel_engine.run.run_paths import CHECKPOINTS
from accel_engine.training.core.label_encoding import choose_loss, encoding_for
from accel_engine.training.core.run_scaling import recorded_scale
from accel_engine.training.core.step import scaled
from accel_engine.training.model_analysis.layer_table import changed_layer


class RestoredModel:
    """A restored classifier that takes raw examples.

    Args:
        model: The built model.
        input_spec: Its input.
        scale: The factor that raw examples are multiplied by.

    Raises:
        ModelError: It is not a classifier.
    """

    def __init__(self, model: keras.Model, input_spec: InputSpec, scale: float) -> None:
        classes = len(input_spec.names)
        units = output_units(model, input_spec.shape)
        if not (units >= classes or (units == 1 and classes == 2)):
            raise ModelError("the run's model is not a classifier: it does not have an output for each class")
        loss = model.loss if model.compiled else choose_loss(units, classes, logits=returns_logits(model))
        self.model = model
        self.label_encoding = encoding_for(loss, units, classes)
        self._scale = scale

    def outputs(self, x: npt.NDArray[Any] | tf.Tensor) -> tf.Tensor:
        """The model's outputs for raw examples, ``[batch, units]``."""
        return self.model(scaled(tf.convert_to_tensor(x), self._scale), training=False)

    def probabilities(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """The probability of each class for raw examples, ``[batch, classes]``."""
        probabilities: npt.NDArray[np.float32] = self.label_encoding.probabilities(self.outputs(x)).numpy()
        return probabilities


def restore_model(plan: Plan, input_spec: InputSpec, directory: Path, step: int) -> RestoredModel:
    """Build a plan's model and load a checkpoint's weights.

    Args:
        plan: The run's plan.
        input_spec: The input that the model was trained with.
        directory: The run's directory.
        step: The checkpoint's step.

    Raises:
        ModelError: The model cannot be built, or is not a classifier.
        RunError: The checkpoint is damaged, or belongs to another model.
    """
    keras.config.set_dtype_policy(plan.policy)
    layers = read(directory).layers
    model = build(plan.model, input_spec.shape, len(input_spec.names), lambda model: not changed_layer(model, layers))
    change = changed_layer(model, layers)
    if change and isinstance(models.find(plan.model), ModelEntry):
        raise RunError(f"run {directory.name} was trained with another version of model {plan.model}: {change}")
    restored = RestoredModel(model, input_spec, recorded_scale(plan, input_spec, model))
    checkpoint = directory / CHECKPOINTS / f"step-{step}"
    try:
        status = tf.train.Checkpoint(model=model).restore(str(checkpoint))
        status.expect_partial().assert_existing_objects_matched()
    except (AssertionError, ValueError, tf.errors.OpError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(f"the checkpoint {checkpoint.name} is damaged or does not fit the model: {reason}") from error
    return restored
