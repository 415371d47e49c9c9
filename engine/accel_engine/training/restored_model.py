"""The model of a run's checkpoint, to be asked outside of training."""

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
from accel_engine.run.paths import CHECKPOINTS
from accel_engine.training.label_encoding import choose_loss, labels_for
from accel_engine.training.layer_table import changed_layer
from accel_engine.training.loop import scaled
from accel_engine.training.run_scaling import recorded_scale


class RestoredModel:
    """A model with what is needed to show it raw examples.

    Args:
        model: Built.
        intake: What it takes.
        scale: What raw examples are multiplied with.

    Raises:
        ModelError: It is no classifier.
    """

    def __init__(self, model: keras.Model, intake: InputSpec, scale: float) -> None:
        classes = len(intake.names)
        units = output_units(model, intake.shape)
        if not (units >= classes or (units == 1 and classes == 2)):
            raise ModelError("the run's model is no classifier: it has no output for each class")
        loss = model.loss if model.compiled else choose_loss(units, classes, logits=returns_logits(model))
        self.model = model
        self.labels = labels_for(loss, units, classes)
        self._scale = scale

    def outputs(self, x: npt.NDArray[Any] | tf.Tensor) -> tf.Tensor:
        """What it answers, ``[batch, units]``, to raw examples."""
        return self.model(scaled(tf.convert_to_tensor(x), self._scale), training=False)

    def probabilities(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """What it gives to each class, ``[batch, classes]``, of raw examples."""
        given: npt.NDArray[np.float32] = self.labels.probabilities(self.outputs(x)).numpy()
        return given


def restored(plan: Plan, intake: InputSpec, directory: Path, step: int) -> RestoredModel:
    """Build the model of a plan as a checkpoint has it.

    Args:
        plan: The run's.
        intake: What the model takes, as it was trained.
        directory: The run's.
        step: The checkpoint's.

    Raises:
        ModelError: It cannot be built, or is no classifier.
        RunError: The checkpoint is damaged, or is of another model.
    """
    keras.config.set_dtype_policy(plan.policy)
    layers = read(directory).layers
    model = build(plan.model, intake.shape, len(intake.names), lambda model: not changed_layer(model, layers))
    change = changed_layer(model, layers)
    if change and isinstance(models.find(plan.model), ModelEntry):
        raise RunError(f"run {directory.name} was trained with another version of model {plan.model}: {change}")
    ready = RestoredModel(model, intake, recorded_scale(plan, intake, model))
    checkpoint = directory / CHECKPOINTS / f"step-{step}"
    try:
        found = tf.train.Checkpoint(model=model).restore(str(checkpoint))
        found.expect_partial().assert_existing_objects_matched()
    except (AssertionError, ValueError, tf.errors.OpError) as error:
        why = str(error).splitlines()[0]
        raise RunError(f"the checkpoint {checkpoint.name} is damaged or does not fit the model: {why}") from error
    return ready
