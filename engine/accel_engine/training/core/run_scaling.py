"""Decides how a run scales its examples."""

from collections.abc import Callable

import keras
import tensorflow as tf

from accel_engine.data.dataset import Dataset
from accel_engine.data.pixel_scaling import Scaling, choose_scaling, scaling_by
from accel_engine.data.structure import Structure, map_structure
from accel_engine.models.traits import preprocessing
from accel_engine.plan import Plan
from accel_engine.plan.task_choices import IMAGENET
from accel_engine.run.diagnostics import InputSpec


def decide_scaling(plan: Plan, dataset: Dataset, model: keras.Model, trained: InputSpec | None = None) -> Scaling:
    """Decide the factor that raw examples are multiplied by.

    Args:
        plan: The plan.
        dataset: The data.
        model: The built model.
        trained: The recorded input of a run that continues from a checkpoint, whose scaling is kept.

    Raises:
        PlanError: The plan's scaling does not fit the data.
    """
    chosen = choose_scaling(
        plan.scale,
        dataset.value_range,
        preprocessing(model, declared=dataset.value_range.declared),
        takes_bytes=plan.initial_weights == IMAGENET,
    )
    if trained is None or trained.scale == chosen.factor:
        return chosen
    same = scaling_by(trained.scale, dataset.value_range.noun)
    note = f"{same.text}, as before the checkpoint; in a new run they would be {chosen.text}"
    return Scaling(trained.scale, same.text, (note,))


def scaler(scale: float, dataset: Dataset) -> Callable[[Structure], Structure]:
    """A function from raw inputs to what the model takes, in a graph.

    Pixels become float32 and are multiplied by the factor. All other inputs keep their types, as in ``fit``.
    """
    if scale == 1.0 and not dataset.value_range.pixels:
        return lambda inputs: inputs

    def scaled(array: tf.Tensor) -> tf.Tensor:
        floats = tf.cast(array, tf.float32)
        return floats * scale if scale != 1.0 else floats

    return lambda inputs: map_structure(scaled, inputs)
