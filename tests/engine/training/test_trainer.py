"""Events of a run from start to end."""

import math
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import tensorflow as tf

from accel_engine import clock
from accel_engine.events import (
    CheckpointSaved,
    DevicesFound,
    EpochEnded,
    LearningRateChanged,
    ModelBuilt,
    Outcome,
    Phase,
    PhaseChanged,
    RunEnded,
    TimeMeasured,
    Validated,
    Warned,
    WorkCounted,
)
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.run.directory.run_paths import MODEL
from accel_engine.run.history.history import Session
from accel_engine.run.writing.writer import RunWriter
from accel_engine.training import trainer as trainer_module
from accel_engine.training.checkpoints import run_saver
from accel_engine.training.commands.command_mailbox import CommandMailbox
from accel_engine.training.preparation import Preparation
from accel_engine.training.trainer import Trainer

from .conftest import MACHINE, Gym

PLAN = Plan(model="mlp", epochs=2, batch_size=256, last_batch="drop")
"""Ten steps."""


def test_a_run_writes_all_events(gym: Gym) -> None:
    trained = gym.train_once(PLAN)

    built = trained.only(ModelBuilt)
    assert (built.steps_per_epoch, built.global_batch, built.dropped_examples) == (5, 256, 1437 - 5 * 256)
    ends = [Phase.TRAINING, EpochEnded, Phase.VALIDATING, Validated, Phase.CHECKPOINTING, CheckpointSaved]
    written = [event for event in trained.events if not isinstance(event, TimeMeasured)]  # which come by the clock
    assert [event.phase if isinstance(event, PhaseChanged) else type(event) for event in written] == [
        *(Phase.BUILDING, DevicesFound, ModelBuilt, LearningRateChanged),
        *(Phase.TRACING, WorkCounted, *ends, *ends, RunEnded),
    ]
    for kind in (EpochEnded, Validated, CheckpointSaved):
        assert [(event.epoch, event.step) for event in trained.all(kind)] == [(1, 5), (2, 10)]
    assert not any(event.by_command for event in trained.all(Validated))
    ended = trained.ended
    assert (ended.outcome, ended.reason, ended.hint, ended.model_step) == (Outcome.FINISHED, "", "", None)
    assert (ended.steps, ended.epochs, len(trained.series["loss"])) == (10, 2, 10)
    steps = sum(event.seconds for event in trained.all(EpochEnded))
    assert ended.seconds > steps + sum(event.seconds for event in trained.all(Validated)) > steps
    later = trained.chunks[1:]  # the first one is a warm-up
    seconds = sum(chunk.ended - chunk.started for chunk in later)
    assert ended.steps_per_second == pytest.approx(sum(chunk.count for chunk in later) / seconds, rel=1e-2)


def test_the_time_of_a_run_is_measured_from_its_first_to_its_last_step(gym: Gym) -> None:
    measured = gym.train_once(PLAN).all(TimeMeasured)

    assert measured[0].first_step == 0
    assert measured[-1].step == 10
    assert all(before.step == after.first_step for before, after in pairwise(measured))
    assert all(sum(event.spent.values()) - event.spent.get("input", 0) <= event.seconds for event in measured)
    assert {"steps", "validation", "checkpoints", "tracing"} <= {what for event in measured for what in event.spent}


@pytest.mark.parametrize(("share", "steps"), [(math.inf, [5, 10, 15, 20]), (1e-9, [5, 20])])
def test_short_epochs_have_no_checkpoint(
    gym: Gym, monkeypatch: pytest.MonkeyPatch, share: float, steps: list[int]
) -> None:
    monkeypatch.setattr(run_saver, "MAX_CHECKPOINT_TIME_SHARE", share)
    trained = gym.train(PLAN.replace(epochs=4))

    assert [event.step for event in trained.all(EpochEnded)] == [5, 10, 15, 20]
    assert [event.step for event in trained.all(CheckpointSaved)] == steps


def test_an_epochs_metrics_are_the_means_of_its_steps(gym: Gym) -> None:
    trained = gym.train_once(PLAN)

    first, second = trained.all(EpochEnded)
    assert first.metrics["loss"] == pytest.approx(float(trained.series["loss"][:5].mean()), rel=1e-6)
    assert second.metrics["accuracy"] == pytest.approx(float(trained.series["accuracy"][5:].mean()), rel=1e-6)
    assert trained.ended.metrics["loss"] == second.metrics["loss"]


def test_a_nan_loss_causes_one_warning_and_no_checkpoint(gym: Gym) -> None:
    trained = gym.train(PLAN.replace(optimizer="sgd", learning_rate=1e20, validation="off", on_nan="continue"))

    assert trained.ended.outcome is Outcome.FINISHED
    of_loss, of_checkpoint, of_model = (warning.message for warning in trained.all(Warned))
    assert "is NaN or infinite" in of_loss
    assert "no checkpoint is saved, as " in of_checkpoint
    assert "are not finite after step 5: there is none to continue from" in of_checkpoint
    assert "is not finite after step 10: the model is not saved" in of_model
    assert trained.all(CheckpointSaved) == []
    assert not (trained.directory / MODEL).exists()
    assert math.isnan(trained.series["loss"][-1])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"batch_size": 8, "data": "synthetic:6x6x1:2:3", "strategy": "mirrored", "virtual_cpus": 4},
            "4 replicas need at least 4 training examples; there are 3",
        ),
        ({"batch_size": 1, "strategy": "mirrored", "virtual_cpus": 2}, "at least 2, one example per replica"),
        ({"model": "MobileNetV2"}, "takes images of at least 32x32"),
    ],
)
def test_impossible_plans_fail_with_the_reason(gym: Gym, changes: dict[str, object], words: str) -> None:
    trained = gym.train(PLAN.replace(**changes))

    assert trained.ended.outcome is Outcome.FAILED
    assert words in trained.ended.reason
    assert trained.series == {}


def test_a_batch_that_is_not_divisible_causes_a_note(gym: Gym) -> None:
    trained = gym.train(PLAN.replace(batch_size=255, strategy="mirrored", virtual_cpus=2))

    assert trained.only(ModelBuilt).global_batch == 254
    assert "each takes 127" in trained.all(Warned)[0].message


def test_steps_per_epoch_may_exceed_the_data(gym: Gym) -> None:
    trained = gym.train(PLAN.replace(steps_per_epoch=7, epochs=1))

    assert trained.ended.steps == 7


@pytest.mark.parametrize("replicas", [2, pytest.param(1, marks=pytest.mark.campaign)])
def test_an_epoch_takes_its_last_smaller_batch(gym: Gym, replicas: int) -> None:
    """1437 examples are five steps of 256 and one of 157, which two replicas cannot divide evenly."""
    plan = PLAN.replace(last_batch="keep")
    trained = gym.train(plan if replicas == 1 else plan.replace(strategy="mirrored", virtual_cpus=2))

    built = trained.only(ModelBuilt)
    assert (built.steps_per_epoch, built.global_batch) == (6, 256)
    assert built.dropped_examples == 0
    assert [event.step for event in trained.all(EpochEnded)] == [6, 12]
    sizes = [256] * 5 + [157]
    for epoch, ended in enumerate(trained.all(EpochEnded)):
        for name, value in ended.metrics.items():
            steps = trained.series[name][6 * epoch : 6 * epoch + 6]
            assert value == pytest.approx(float(np.average(steps, weights=sizes)), rel=1e-5), name
    # Nothing but the last steps differs from a run that leaves them out.
    whole = gym.train_once(PLAN) if replicas == 1 else None
    if whole is not None:
        np.testing.assert_array_equal(trained.series["loss"][:5], whole.series["loss"][:5])


def test_an_epoch_of_several_passes_has_a_smaller_batch_in_each(gym: Gym) -> None:
    """Passes of three steps of 80, 80 and 40 examples; an epoch ends within one, and the next goes on with it."""
    plan = PLAN.replace(last_batch="keep", data="synthetic:6x6x1:2:200", batch_size=80, steps_per_epoch=7)
    trained = gym.train(plan)

    sizes = np.resize([80, 80, 40], 7 * plan.epochs)
    for epoch, ended in enumerate(trained.all(EpochEnded)):
        own = slice(7 * epoch, 7 * epoch + 7)
        expected = float(np.average(trained.series["loss"][own], weights=sizes[own]))
        assert ended.metrics["loss"] == pytest.approx(expected, rel=1e-5)
    assert trained.only(ModelBuilt).dropped_examples == 0


@pytest.mark.parametrize("last_batch", ["keep", "drop"])
def test_a_batch_larger_than_the_data_takes_all_examples(gym: Gym, last_batch: str) -> None:
    plan = PLAN.replace(data="synthetic:6x6x1:2:50", batch_size=64, epochs=3, last_batch=last_batch)
    trained = gym.train(plan)

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    built = trained.only(ModelBuilt)
    assert (built.steps_per_epoch, built.global_batch, built.dropped_examples) == (1, 50, 0)
    assert trained.ended.steps == 3
    expected = "the batch size 64 is larger than the data: a step takes all 50 examples"
    assert expected in [event.message for event in trained.all(Warned)]


def test_a_single_example_is_enough(gym: Gym) -> None:
    trained = gym.train(PLAN.replace(data="synthetic:6x6x1:2:1", epochs=2))

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    assert trained.ended.steps == 2
    assert gym.trainer is not None
    assert gym.trainer.allocated_memory is not None


@pytest.mark.parametrize(
    ("processes", "error", "lost"),
    [
        (True, tf.errors.UnavailableError(None, None, "no answer"), True),
        (True, ValueError("it rains"), False),
        (False, tf.errors.UnavailableError(None, None, "no answer"), False),
    ],
)
def test_only_with_other_processes_is_a_connection_lost(
    monkeypatch: pytest.MonkeyPatch, processes: bool, error: Exception, lost: bool
) -> None:
    resolved = cast(ResolvedPlan, SimpleNamespace(plan=PLAN, strategy=SimpleNamespace(processes=processes)))
    session = Session()
    monkeypatch.setattr(trainer_module, "read_session", lambda _: session)
    trainer = Trainer(resolved, cast(RunWriter, SimpleNamespace(directory=Path())), CommandMailbox(), MACHINE)

    def fail(_: Preparation) -> None:
        raise error

    monkeypatch.setattr(Preparation, "prepare", fail)

    ended = trainer.train()

    assert (ended.outcome, ended.steps, ended.mfu, ended.model_step) == (Outcome.FAILED, 0, None, None)
    assert str(error) in ended.reason
    assert trainer.lost_connection is lost


def test_a_restarted_engine_counts_its_own_time_and_the_time_limit_that_of_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolved = cast(ResolvedPlan, SimpleNamespace(plan=PLAN, strategy=SimpleNamespace(processes=False)))
    session = Session(began=clock.now() - 1e6, engines=2)
    monkeypatch.setattr(trainer_module, "read_session", lambda _: session)
    since: list[float] = []
    monkeypatch.setattr(trainer_module, "Preparation", lambda *arguments: since.append(arguments[-1]))

    began = time.monotonic()
    trainer = Trainer(resolved, cast(RunWriter, SimpleNamespace(directory=Path())), CommandMailbox(), MACHINE)

    assert trainer.ended(Outcome.FAILED).seconds < 1e6
    assert since == [pytest.approx(began - 1e6, abs=1000.0)]
