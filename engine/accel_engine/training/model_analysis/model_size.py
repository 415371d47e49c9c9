"""Computes the size of a plan's model without initializing TensorFlow's devices.

The model is built in a separate graph, where variables are declared but not created, so the process can still
configure its devices.
"""

import math
from typing import Any

import keras
import tensorflow as tf

from accel_engine import data
from accel_engine.errors import DataError
from accel_engine.keras_support.model_structure import parameter_count
from accel_engine.models.data_description import describe_entry
from accel_engine.models.traits import preprocessing
from accel_engine.plan import Plan
from accel_engine.training.build_plan_model import build_plan_model


def measure_model(plan: Plan) -> dict[str, Any]:
    """Build the plan's model and return its size.

    Returns:
        The fields of :class:`accel_engine.launch.warm_engine.Description`.

    Raises:
        AccelError: The data cannot be read, or the model does not fit it.
    """
    entry = data.survey(data.find(plan.data), plan.data_options)
    description = describe_entry(entry, plan.task)
    if description is None:
        raise DataError(f"the shape of the data {plan.data} is not known before it is read")
    try:
        with tf.Graph().as_default():
            model = build_plan_model(plan, description)
            return {
                "parameters": model.count_params(),
                "trainable": parameter_count(model.trainable_weights),
                "layers": len(model.layers),
                "activations": _activations(model),
                "input_shape": entry.shape,
                "classes": entry.classes or 0,
                "preprocessing": preprocessing(model, declared=entry.value_range is None or entry.value_range.declared),
            }
    finally:
        keras.backend.clear_session(free_memory=False)


def _activations(model: keras.Model) -> int:
    """Values in all layers' outputs for one example, also of nested models; 0 for a subclassed model."""
    return sum(
        _activations(operation)
        if isinstance(operation, keras.Model)
        else sum(math.prod(side or 1 for side in tensor.shape[1:]) for tensor in _outputs(operation))
        for operation in getattr(model, "operations", model.layers)
    )


def _outputs(operation: Any) -> list[Any]:
    outputs: list[Any] = keras.tree.flatten(getattr(operation, "output", ()))
    return outputs
