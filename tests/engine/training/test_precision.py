"""Training in mixed precision, and loss scaling with overflowing float16 gradients."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine.events import ModelBuilt, Outcome
from accel_engine.plan import Plan

from .conftest import Gym, Trained

TOO_LARGE = 24
"""Exponent of a loss scale at which float16 gradients overflow."""

STEEP = f"""
import keras
from keras import layers

def build(input_shape, classes):
    model = keras.Sequential([keras.Input(input_shape), layers.Flatten(), layers.Dense(classes),
                              layers.Activation("softmax", dtype="float32")])
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.5), initial_scale=2.0**{TOO_LARGE}),
                  "sparse_categorical_crossentropy")
    return model
"""


def optimizer_of(trained: Trained) -> Any:
    """The optimizer at the end of training."""
    return keras.models.load_model(trained.directory / "model.keras").optimizer


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("model", "precision"),
    [
        ("mlp", "mixed_bfloat16"),
        ("mlp", "mixed_float16"),
        ("mlp", "float32"),
        ("cnn", "mixed_float16"),
        ("cnn", "mixed_bfloat16"),
    ],
)
def test_every_precision_trains(gym: Gym, model: str, precision: str) -> None:
    trained = gym.train(Plan(model=model, epochs=6 if model == "mlp" else 2, precision=precision))

    assert trained.only(ModelBuilt).precision == precision
    assert hasattr(optimizer_of(trained), "dynamic_scale") == (precision == "mixed_float16")
    loss = trained.series["loss"]
    assert np.isfinite(loss).all()
    assert loss[-10:].mean() < loss[:10].mean() / 2
    assert trained.ended.metrics["accuracy"] > 0.85
    assert trained.ended.metrics["validation_accuracy"] > 0.85


@pytest.mark.parametrize("replicas", [pytest.param(1, marks=pytest.mark.campaign), 2])
def test_a_step_whose_gradients_overflow_is_skipped_and_the_scale_shrinks(
    gym: Gym, tmp_path: Path, replicas: int
) -> None:
    path = tmp_path / "steep.py"
    path.write_text(STEEP)
    strategy = "mirrored" if replicas == 2 else "default"
    # A step takes all examples but one, so that losses differ by nothing but the weights.
    plan = Plan(
        model=f"{path}:build",
        precision="mixed_float16",
        batch_size=1436,
        last_batch="drop",
        epochs=1,
        steps_per_epoch=24,
        validation="off",
        strategy=strategy,
        virtual_cpus=replicas,
    )

    trained = gym.train(plan)

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    optimizer = optimizer_of(trained)
    skipped = trained.ended.steps - int(optimizer.inner_optimizer.iterations)
    assert 3 < skipped < 20
    assert float(optimizer.dynamic_scale) == 2.0 ** (TOO_LARGE - skipped)
    loss = trained.series["loss"]
    np.testing.assert_allclose(loss[: skipped + 1], loss[0], atol=0.01)
    assert (np.diff(loss[skipped:]) < -0.01).all()
