"""A run that is out of memory trains on by itself; the errors are TensorFlow's own."""

from pathlib import Path

import numpy as np

from accel_engine.events import Outcome, Recovered
from accel_engine.plan import Plan

from ..conftest import Gym, Trained
from .hungry_models import write_models

ENOUGH = 1 << 20


def plan_of(folder: Path, model: str, fits: int, **values: object) -> Plan:
    """A plan of 50 steps, whose model can take ``fits`` examples at a time."""
    path = write_models(folder, fits=fits)
    plan = {"batch_size": 64, "epochs": 2, "steps_per_epoch": 25, "xla": "off"}
    return Plan.from_mapping({"model": f"{path}:{model}", **plan, **values})


def assert_same_losses(trained: Trained, whole: Trained) -> None:
    """The losses of 50 steps are those of a run without trouble."""
    assert trained.ended.outcome is Outcome.FINISHED, trained.ended
    assert len(trained.series["loss"]) == len(whole.series["loss"]) == 50
    assert np.abs(trained.series["loss"] - whole.series["loss"]).max() < 1e-5


def test_the_first_step_is_taken_in_micro_batches(gym: Gym, tmp_path: Path) -> None:
    whole = gym.train(plan_of(tmp_path, "plain", ENOUGH))
    trained = gym.train(plan_of(tmp_path, "plain", 16))

    first, second = trained.all(Recovered)
    assert (first.trouble, first.step, first.failed_step, first.changes) == (
        "out of memory",
        0,
        0,
        {"micro_batches": 2},
    )
    assert second.changes == {"micro_batches": 4}
    assert_same_losses(trained, whole)
