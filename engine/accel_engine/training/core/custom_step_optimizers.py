"""Creates the variables of the optimizers that a custom ``train_step`` uses."""

import traceback
from typing import Any
from unittest.mock import patch

import keras
import tensorflow as tf

from accel_engine.data.dataset import Dataset
from accel_engine.data.structure import map_structure


def build_optimizers(model: keras.Model, dataset: Dataset, batch: int) -> None:
    """Create the variables of a custom step's optimizers: on replicas, they could not be created in the step itself.

    The step is traced once, with updates that only create the variables. What is wrong with it is in the log, and
    reported when training traces it.

    Args:
        model: Built and compiled, with a custom ``train_step``.
        dataset: The data.
        batch: The per-replica batch size.
    """
    spec = map_structure(lambda each: tf.TensorSpec((batch, *each.shape), each.dtype), dataset.spec)
    parts = tuple(part for part in spec if part is not None)

    def build(optimizer: keras.Optimizer, gradients: Any, variables: Any = None) -> None:
        del gradients
        optimizer.build(variables)

    def no_gradient(tape: tf.GradientTape, target: Any, sources: Any, *_: Any, **__: Any) -> Any:
        del tape, target
        return keras.tree.map_structure(lambda each: tf.zeros(each.shape, each.dtype), sources)

    patches = patch.object(keras.Optimizer, "apply", build), patch.object(tf.GradientTape, "gradient", no_gradient)
    with patches[0], patches[1], keras.StatelessScope():
        step = tf.function(model.train_step, autograph=True)
        try:
            step.get_concrete_function(parts if len(parts) > 1 else parts[0])
        except Exception:  # noqa: BLE001 (a user's train_step may raise anything)
            traceback.print_exc()
