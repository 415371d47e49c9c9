"""Events as a run tells them, for tests to which most of what they say does not matter."""

from dataclasses import replace
from typing import Any

from accel_engine.events import ModelBuilt


def model_built(**changes: Any) -> ModelBuilt:
    """A small model that was built, with some of it changed."""
    example = ModelBuilt(
        time=0.0,
        parameters=10,
        trainable=10,
        layers=2,
        input_shape=(8, 8, 1),
        classes=10,
        examples=6400,
        validation_examples=10,
        epochs=4,
        steps_per_epoch=100,
        global_batch=64,
        per_replica_batch=64,
        dropped_examples=0,
        replicas=1,
        optimizer="Adam",
        loss="sparse_categorical_crossentropy",
        series=("loss",),
        precision="float32",
        xla=False,
        feed="resident",
    )
    return replace(example, **changes)
