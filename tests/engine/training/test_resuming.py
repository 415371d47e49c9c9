"""Continuing from a checkpoint gives the same run as training without a break."""

from typing import NoReturn

import numpy as np
import pytest

from accel_engine.errors import DataError, PlanError
from accel_engine.events import (
    CheckpointSaved,
    EpochEnded,
    LearningRateChanged,
    ModelBuilt,
    Outcome,
    Phase,
    Validated,
    Warned,
)
from accel_engine.plan import Plan
from accel_engine.training import preparation
from accel_engine.training.checkpoints import run_saver
from accel_engine.training.core import feed
from damaged_runs import change

from .conftest import Gym

PLAN = Plan(model="mlp", epochs=2, batch_size=256, last_batch="drop")
"""Ten steps."""

UNVALIDATED = PLAN.replace(validation="off")
"""The same where no validation is looked at, which takes a third of the time."""


@pytest.mark.parametrize("kind", ["resident", "streamed"])
def test_stopping_and_continuing_does_not_change_the_run(
    gym: Gym, monkeypatch: pytest.MonkeyPatch, random_model: str, kind: str
) -> None:
    plan = PLAN.replace(model=random_model)
    whole = gym.train_once(plan)
    if kind == "streamed":
        monkeypatch.setattr(feed, "CACHE_SHARE", 0.0)
    stopped = gym.train(plan, at={7: [("stop",)]})
    assert (stopped.ended.outcome, stopped.ended.steps) == (Outcome.STOPPED, 7)

    resumed = gym.train(plan, run=stopped.directory)

    assert {built.feed for built in resumed.all(ModelBuilt)} == {kind}
    np.testing.assert_array_equal(resumed.series["loss"], whole.series["loss"])
    assert resumed.ended.metrics == pytest.approx(whole.ended.metrics)
    assert resumed.all(EpochEnded)[-1].metrics == pytest.approx(whole.all(EpochEnded)[-1].metrics)


@pytest.mark.share(8)
@pytest.mark.parametrize("steps", [5, 6, 8, 11])
@pytest.mark.parametrize("kind", ["resident", "streamed"])
def test_epochs_with_a_smaller_last_batch_continue_anywhere(
    gym: Gym, monkeypatch: pytest.MonkeyPatch, random_model: str, kind: str, steps: int
) -> None:
    """The epochs have seven steps: one of 157 examples ends a pass over the data, and another pass begins."""
    gym.steps = 1
    plan = UNVALIDATED.replace(model=random_model, last_batch="keep", steps_per_epoch=7)
    whole = gym.train_once(plan)
    if kind == "streamed":
        monkeypatch.setattr(feed, "CACHE_SHARE", 0.0)
    stopped = gym.train(plan, at={steps: [("stop",)]})
    assert stopped.ended.steps == steps

    resumed = gym.train(plan, run=stopped.directory)

    assert len(whole.series["loss"]) == 14
    np.testing.assert_array_equal(resumed.series["loss"], whole.series["loss"])
    for ours, theirs in zip(resumed.all(EpochEnded)[-2:], whole.all(EpochEnded)[-2:], strict=True):
        assert ours.metrics == pytest.approx(theirs.metrics)


def test_a_run_stopped_at_an_epochs_last_step_has_ended_the_epoch(gym: Gym) -> None:
    stopped = gym.train(PLAN, at={5: [("stop",)]})

    assert (stopped.ended.steps, stopped.ended.epochs) == (5, 1)
    assert [event.step for event in stopped.all(EpochEnded)] == [5]
    assert stopped.all(Validated) == []
    resumed = gym.train(PLAN, run=stopped.directory)
    np.testing.assert_array_equal(resumed.series["loss"], gym.train_once(PLAN).series["loss"])


def test_a_run_that_ends_before_it_trains_again_has_its_epochs(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = gym.train(PLAN, at={5: [("stop",)]}).directory
    stopped = gym.train(PLAN, run=directory, when={Phase.BUILDING: [("stop",)]})
    assert (stopped.ended.steps, stopped.ended.epochs, stopped.all(CheckpointSaved)[-1].epoch) == (5, 1, 1)

    def fail(*_: object) -> NoReturn:
        raise DataError("the data is gone")

    monkeypatch.setattr(preparation, "assemble", fail)
    failed = gym.train(PLAN, run=directory)
    assert (failed.ended.reason, failed.ended.steps, failed.ended.epochs) == ("the data is gone", 5, 1)


def test_layers_without_a_seed_continue_their_random_state(gym: Gym, random_model: str) -> None:
    plan = UNVALIDATED.replace(model=random_model.replace(":build", ":unseeded"))
    stopped = gym.train(plan, at={7: [("stop",)]})

    resumed = gym.train(plan, run=stopped.directory)

    np.testing.assert_array_equal(resumed.series["loss"], gym.train_once(plan).series["loss"])


def test_a_run_continues_from_the_last_checkpoint_before_it(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_saver, "MAX_CHECKPOINT_TIME_SHARE", 1e-9)
    plan = PLAN.replace(epochs=4)
    whole = gym.train_once(plan)
    broken = gym.train(plan, at={12: [("stop_now",)]})
    assert [event.step for event in broken.all(CheckpointSaved)] == [5]

    resumed = gym.train(plan, run=broken.directory)

    assert [event.epoch for event in resumed.all(EpochEnded)] == [1, 2, 2, 3, 4]
    np.testing.assert_array_equal(resumed.series["loss"], whole.series["loss"])
    assert resumed.ended.metrics == pytest.approx(whole.ended.metrics)


def test_a_run_continues_whose_last_steps_a_power_failure_has_taken(gym: Gym) -> None:
    directory = gym.train(UNVALIDATED, at={3: [("stop",)]}).directory  # after 4 steps, of which the database loses 2
    change(directory, "DELETE FROM chunk WHERE first_step = 2")

    resumed = gym.train(UNVALIDATED, run=directory)

    whole = gym.train_once(UNVALIDATED)
    np.testing.assert_array_equal(resumed.series["loss"], np.delete(whole.series["loss"], [2, 3]))
    assert resumed.ended.metrics == pytest.approx(whole.ended.metrics)
    assert "the metrics of epoch 1 are of the last 1 of 5 steps" in [event.message for event in resumed.all(Warned)]


def test_a_run_stopped_before_its_last_validation_validates_on_continue(gym: Gym) -> None:
    stopped = gym.train(PLAN, at={10: [("stop",)]})
    assert stopped.ended.epochs == 2

    resumed = gym.train(PLAN, run=stopped.directory)

    assert resumed.ended.outcome is Outcome.FINISHED
    assert resumed.ended.metrics["validation_accuracy"] == resumed.all(Validated)[-1].metrics["accuracy"]


def test_a_finished_run_continues_with_more_epochs(gym: Gym) -> None:
    finished = gym.train(UNVALIDATED)
    with pytest.raises(PlanError, match="already trained; increase --epochs"):
        gym.train(UNVALIDATED, run=finished.directory)

    longer = gym.train(UNVALIDATED.replace(epochs=3), run=finished.directory)

    assert longer.ended.steps == 15
    np.testing.assert_array_equal(longer.series["loss"], gym.train(UNVALIDATED.replace(epochs=3)).series["loss"])


def test_a_continued_epoch_has_the_seconds_of_all_its_steps(gym: Gym) -> None:
    stopped = gym.train(UNVALIDATED, at={2: [("stop",)]})

    resumed = gym.train(UNVALIDATED, run=stopped.directory)

    chunks = [chunk for chunk in resumed.chunks if chunk.first_step < 5]
    assert resumed.all(EpochEnded)[0].seconds == pytest.approx(sum(c.ended - c.started for c in chunks), abs=1e-5)


@pytest.mark.parametrize(
    ("precision", "before"),
    [
        ("float32", [("checkpoint",)]),
        ("mixed_float16", []),
        pytest.param("float32", [], marks=pytest.mark.campaign),
        pytest.param("mixed_float16", [("checkpoint",)], marks=pytest.mark.campaign),
    ],
)
def test_a_changed_learning_rate_is_kept_on_continue(gym: Gym, precision: str, before: list[tuple[str]]) -> None:
    plan = UNVALIDATED.replace(optimizer="sgd", learning_rate=0.1, precision=precision)
    changes = [*before, ("learning_rate", 0.4)]
    whole = gym.train(plan, at={4: changes})
    stopped = gym.train(plan, at={4: [*changes, ("stop",)]})

    resumed = gym.train(plan, run=stopped.directory)

    assert resumed.all(LearningRateChanged)[-1].learning_rate == 0.4
    np.testing.assert_array_equal(resumed.series["loss"], whole.series["loss"])


def test_a_new_learning_rate_is_used_on_continue(gym: Gym) -> None:
    plan = UNVALIDATED.replace(optimizer="sgd", learning_rate=0.1)
    stopped = gym.train(plan, at={4: [("learning_rate", 0.4), ("stop",)]})

    resumed = gym.train(plan.replace(learning_rate=0.2), run=stopped.directory)

    assert resumed.all(LearningRateChanged)[-1].learning_rate == 0.2


def test_a_new_learning_rate_is_scaled_once_and_replaces_only_the_planned_one(gym: Gym) -> None:
    plan = PLAN.replace(
        optimizer="sgd", learning_rate=0.1, strategy="mirrored", virtual_cpus=2, rate_scaling="linear", validation="off"
    )
    directory = gym.train(plan, at={2: [("stop",)]}).directory
    changed = plan.replace(learning_rate=0.2)
    commands = ({4: [("stop",)]}, {6: [("stop",)]}, {8: [("learning_rate", 0.3), ("stop",)]}, {})

    continued = [gym.train(changed, at=some, run=directory).all(LearningRateChanged)[-1] for some in commands]

    assert [event.learning_rate for event in continued] == [0.4, 0.4, 0.3, 0.3]


@pytest.mark.parametrize("precision", ["mixed_float16", pytest.param("float32", marks=pytest.mark.campaign)])
def test_a_run_continues_under_another_strategy(gym: Gym, precision: str) -> None:
    plan = UNVALIDATED.replace(precision=precision)
    stopped = gym.train(plan, at={6: [("stop",)]})

    resumed = gym.train(plan.replace(strategy="mirrored", virtual_cpus=2), run=stopped.directory)

    assert resumed.ended.outcome is Outcome.FINISHED, resumed.ended.reason
    tolerance = 1e-5 if precision == "float32" else 2e-3
    np.testing.assert_allclose(resumed.series["loss"], gym.train_once(plan).series["loss"], atol=tolerance)


def test_a_run_with_changed_steps_cannot_continue(gym: Gym) -> None:
    plan = UNVALIDATED.replace(batch_size=255)
    stopped = gym.train(plan, at={6: [("stop",)]})

    resumed = gym.train(plan.replace(strategy="mirrored", virtual_cpus=2), run=stopped.directory)

    assert resumed.ended.outcome is Outcome.FAILED
    assert "5 steps of 255 examples from 1437 and is now 5 steps of 254" in resumed.ended.reason
