"""What a script trains, as far as its model tells."""

import time
from typing import Any

import numpy as np

from accel_engine.events import ModelBuilt


def strategy(model: Any) -> str:
    """The class of ``tf.distribute`` that the model is under; ``default`` where that is none of the user's choice."""
    found = getattr(model, "distribute_strategy", None)  # Keras has it with TensorFlow only
    name = type(found).__name__
    return "default" if found is None or name == "_DefaultDistributionStrategy" else name


def built(model: Any, *, epochs: int, steps: int | None, batch: int | None, series: tuple[str, ...]) -> ModelBuilt:
    """The event that says what is trained.

    Args:
        model: Built and compiled.
        epochs: Of the whole run.
        steps: Of an epoch.
        batch: Examples of a step.
        series: Names of what is recorded.
    """
    replicas = getattr(getattr(model, "distribute_strategy", None), "num_replicas_in_sync", 1)
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)  # without what scales the loss
    return ModelBuilt(
        time=time.time(),
        parameters=model.count_params(),
        trainable=sum(int(np.prod(weight.shape)) for weight in model.trainable_weights),
        layers=len(model.layers),
        input_shape=_input_shape(model),
        classes=None,
        examples=None,
        validation_examples=None,
        epochs=epochs,
        steps_per_epoch=steps,
        global_batch=batch,
        per_replica_batch=batch // replicas if batch else None,
        dropped_examples=0,
        replicas=replicas,
        optimizer=type(optimizer).__name__,
        loss=_loss(model.loss),
        series=series,
        precision=model.dtype_policy.name,
        xla=bool(model.jit_compile),
        feed="own",
    )


def _input_shape(model: Any) -> tuple[int, ...] | None:
    shape = getattr(model, "input_shape", None)
    if isinstance(shape, tuple) and shape and all(isinstance(side, int) for side in shape[1:]):
        return shape[1:]
    return None


def _loss(loss: Any) -> str:
    if loss is None:
        return "the model's own"
    return loss if isinstance(loss, str) else str(getattr(loss, "name", None) or getattr(loss, "__name__", "several"))
