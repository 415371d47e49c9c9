"""Every step of each task equals plain Keras', on one device and on two replicas."""

from functools import cache
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.events import Outcome
from accel_engine.plan import Plan

from . import task_models
from .conftest import Gym, Trained

FILE = Path(__file__).with_name("task_models.py")

PLAN = Plan(
    model=f"{FILE}:regression_model",
    data=f"{FILE}:regression_data",
    precision="float32",
    batch_size=32,
    epochs=2,
    shuffle="off",
    split="none",
    validation="off",
)
"""Two epochs of eleven steps, of which the last has 25 examples."""


WHOLE = task_models.EXAMPLES // PLAN.batch_size * PLAN.batch_size
"""Examples of the batches that are not smaller."""


@cache
def plain(task: str, examples: int = task_models.EXAMPLES) -> dict[str, list[float]]:
    """The loss and the metrics of each batch of the first examples, as ``train_on_batch`` of Keras has them."""
    keras.utils.set_random_seed(PLAN.seed)
    model = getattr(task_models, f"{task}_model")()
    parts = getattr(task_models, f"{task}_data")()["train"]
    logs: dict[str, list[float]] = {}
    for _ in range(PLAN.epochs):
        for first in range(0, examples, PLAN.batch_size):
            rows = slice(first, first + PLAN.batch_size)
            model.reset_metrics()
            batch = tf.nest.map_structure(lambda array: array[rows], parts)  # noqa: B023
            for name, value in model.train_on_batch(*batch, return_dict=True).items():
                logs.setdefault(name, []).append(float(value))
    return logs


def check(trained: Trained, expected: dict[str, list[float]]) -> None:
    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    assert len(expected["loss"]) == trained.ended.steps >= 20
    for name, values in expected.items():
        np.testing.assert_allclose(trained.series[name], values, atol=1e-5, err_msg=name)


def plan_of(task: str, **changes: Any) -> Plan:
    return PLAN.replace(model=f"{FILE}:{task}_model", data=f"{FILE}:{task}_data", **changes)


ALIKE = [task for task in task_models.TASKS if task != "circle"]
"""Tasks that several replicas learn as one device does; Circle compares the examples of each replica only."""

EVEN_ONLY = ("one_value", "several_values", "triplets", "added_loss", "own_step")
"""Tasks whose losses are not known to be means, so that examples on several replicas count on each."""


@pytest.mark.share(8)
@pytest.mark.parametrize("task", task_models.TASKS)
def test_steps_equal_those_of_keras(gym: Gym, task: str) -> None:
    gym.steps = 11
    check(gym.train(plan_of(task)), plain(task))


@pytest.mark.share(8)
@pytest.mark.parametrize("task", ALIKE)
def test_steps_of_replicas_equal_those_of_keras(gym: Gym, task: str) -> None:
    """Two replicas cannot divide the last batch of 25 evenly."""
    gym.steps = 11
    plan = plan_of(task, strategy="mirrored", virtual_cpus=2)
    if task in EVEN_ONLY:
        check(gym.train(plan.replace(last_batch="drop")), plain(task, WHOLE))
    else:
        check(gym.train(plan), plain(task))


@pytest.mark.share(4)
@pytest.mark.parametrize("source", task_models.SOURCES)
def test_every_form_of_data_gives_the_same_steps(gym: Gym, source: str) -> None:
    gym.steps = 11
    check(gym.train(PLAN.replace(data=f"{FILE}:{source}")), plain("regression"))


@pytest.mark.share(4)
@pytest.mark.parametrize("source", task_models.SOURCES)
def test_every_form_of_data_gives_the_same_steps_to_two_replicas(gym: Gym, source: str) -> None:
    plan = PLAN.replace(data=f"{FILE}:{source}", strategy="mirrored", virtual_cpus=2)
    gym.steps = 11
    check(gym.train(plan), plain("regression"))
