"""The metrics of an epoch are Keras' over all its examples, with any strategy, not means of batches."""

from functools import cache
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine.events import EpochEnded, Outcome, Validated, Warned
from accel_engine.plan import Plan

from . import epoch_metric_models
from .conftest import Gym, Trained

FILE = Path(epoch_metric_models.__file__)

PLAN = Plan(
    model=f"{FILE}:compiled",
    data=f"{FILE}:rare",
    precision="float32",
    batch_size=32,
    epochs=2,
    shuffle="off",
    split="none",
    validation="off",
)
"""Two epochs of eleven steps, of which the last has ten examples; few are positive."""

OWN = PLAN.replace(model=f"{FILE}:with_own_step")


@cache
def fitted(model: str) -> dict[str, list[float]]:
    """The metrics of each epoch, as ``fit`` has them of the same batches."""
    keras.utils.set_random_seed(PLAN.seed)
    x, y, weights = epoch_metric_models.rare()["train"]
    built = getattr(epoch_metric_models, model)()
    found = built.fit(x, y, 32, PLAN.epochs, sample_weight=weights, shuffle=False, verbose=0).history
    return {name.replace("-", "_"): values for name, values in found.items()}


def check(trained: Trained, model: str = "compiled", tolerance: float = 1e-5) -> None:
    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    found, expected = [event.metrics for event in trained.all(EpochEnded)], fitted(model)
    assert len(found) == PLAN.epochs
    for name, values in expected.items():
        if name == "loss" and model == "with_own_step":
            continue  # no metric: fit has the last step's
        assert [each[name] for each in found] == pytest.approx(values, rel=tolerance, abs=tolerance), name


@pytest.mark.share(4)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"xla": "on"},
        {"micro_batches": 4},
        {"strategy": "mirrored", "virtual_cpus": 2},
    ],
    ids=str,
)
def test_they_are_those_of_fit(gym: Gym, changes: dict[str, Any]) -> None:
    trained = gym.train(PLAN.replace(**changes))
    check(trained)
    assert "auc" not in trained.series, "a large state is for epochs, not for steps"
    assert np.mean(trained.series["recall"][:11]) != pytest.approx(fitted("compiled")["recall"][0], rel=0.05)


@pytest.mark.parametrize("replicas", [pytest.param(1, marks=pytest.mark.campaign), 2])
def test_those_of_an_own_train_step_too(gym: Gym, replicas: int) -> None:
    strategy = "mirrored" if replicas == 2 else "default"
    check(gym.train(OWN.replace(strategy=strategy, virtual_cpus=replicas)), "with_own_step")


@pytest.mark.parametrize("plan", [PLAN, pytest.param(OWN, marks=pytest.mark.campaign)], ids=["compiled", "own step"])
def test_a_run_that_continues_in_mid_epoch_has_those_of_the_whole_epoch(gym: Gym, plan: Plan) -> None:
    stopped = gym.train(plan, at={16: [("stop",)]})
    assert stopped.ended.outcome is Outcome.STOPPED
    trained = gym.train(plan, run=stopped.directory)
    check(trained, plan.model.rpartition(":")[2])
    assert not [each for each in trained.all(Warned) if each.message.startswith("the metrics of epoch")]


def test_a_metric_that_is_no_mean_decides_about_the_end(gym: Gym) -> None:
    plan = PLAN.replace(monitor="auc", patience=1, epochs=12, learning_rate=1e-9, min_delta=0.5)
    trained = gym.train(plan)
    assert "auc" in trained.ended.reason
    assert [event.waited for event in trained.all(EpochEnded)] == [0, 1]


def test_a_metric_with_a_large_state_is_measured_of_validations_only(gym: Gym) -> None:
    trained = gym.train(
        PLAN.replace(model=f"{FILE}:many_classes", data=f"{FILE}:classes", validation="epoch", epochs=1)
    )

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    assert set(trained.all(EpochEnded)[0].metrics) == {"loss", "right", "accuracy"}
    assert {"loss", "right", "iou"} <= set(trained.all(Validated)[0].metrics)
    notes = [event.message for event in trained.all(Warned)]
    assert "measured of validations only, as their states are large: iou" in notes
