"""Variables other than weights that a step updates under central storage."""

import numpy as np

from accel_engine.events import Outcome
from accel_engine.plan import Plan

from .conftest import Gym

PLAN = Plan(strategy="central-storage", virtual_cpus=2, batch_size=128)


def test_batch_normalization_and_dropout_train_and_continue_from_a_checkpoint(gym: Gym, random_model: str) -> None:
    plan = PLAN.replace(model=random_model, learning_rate=0.02, epochs=2)
    whole = gym.train(plan)
    half = gym.train(plan.replace(epochs=1))
    resumed = gym.train(plan, run=half.directory)

    assert whole.ended.metrics["validation_accuracy"] > 0.5  # the moving means were learned: it is 0.1 without
    np.testing.assert_allclose(resumed.series["loss"], whole.series["loss"], atol=1e-4)


def test_loss_scaling_is_rejected(gym: Gym) -> None:
    ended = gym.train(PLAN.replace(model="mlp", precision="mixed_float16")).ended

    assert ended.outcome is Outcome.FAILED
    assert "central-storage does not support loss scaling: use mixed_bfloat16, or the mirrored strategy" in ended.reason
