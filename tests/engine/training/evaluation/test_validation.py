"""Validation of a model during training."""

import keras
import pytest

from accel_engine import data
from accel_engine.events import Validated
from accel_engine.plan import Plan

from ..conftest import Gym

PLAN = Plan(model="mlp", epochs=2, batch_size=256, last_batch="drop")
"""Ten steps."""


def test_validation_counts_every_example_once(gym: Gym) -> None:
    plan = PLAN.replace(data="synthetic:6x6x1:3:700", epochs=1, batch_size=100)
    trained = gym.train(plan)
    shared = gym.train(plan.replace(strategy="mirrored", virtual_cpus=2))

    held_out = data.load(plan.data, plan.data_options).validation
    assert held_out is not None
    model = keras.models.load_model(trained.directory / "model.keras")
    model.compile(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    loss, accuracy = model.evaluate(held_out.inputs / 255, held_out.targets, verbose=0)
    for metrics in (trained.only(Validated).metrics, shared.only(Validated).metrics):
        assert metrics["loss"] == pytest.approx(loss, rel=1e-4)
        assert metrics["accuracy"] == pytest.approx(accuracy, abs=1e-6)


def test_validation_end_validates_once(gym: Gym) -> None:
    assert [event.step for event in gym.train(PLAN.replace(validation="end")).all(Validated)] == [10]
    assert gym.train(PLAN.replace(validation="off")).all(Validated) == []
