"""What a run does between two chunks: each planned validation once, and checkpoints of which the best is kept."""

from collections.abc import Sequence
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path

import pytest

from accel_engine.events import CheckpointSaved, EpochEnded, Outcome, RunStarted, Validated, Warned
from accel_engine.plan import Plan
from accel_engine.run import RunWriter
from accel_engine.run.directory.run_paths import checkpoint_steps
from accel_engine.training.checkpoints.run_saver import RunSaver
from accel_engine.training.evaluation.validation import Validation
from accel_engine.training.progress import due_actions
from accel_engine.training.progress.due_actions import DueActions, EndTraining
from accel_engine.training.progress.timetable import Timetable
from accel_engine.training.reporting.run_reporter import RunReporter

from .. import conftest
from ..conftest import Gym

UNKNOWN_LENGTH = """
import numpy as np
import tensorflow as tf

def examples(seed, count):
    x = np.random.default_rng(seed).normal(size=(count, 6)).astype("float32")
    return x, x[:, :1] - x[:, 1:2]

def data():
    def batches():
        x, y = examples(1, 240)
        for first in range(0, 240, 24):
            yield x[first : first + 24], y[first : first + 24]
    return {"train": batches, "validation": examples(2, 50)}
"""

MLP = Plan(
    model="mlp",
    epochs=4,
    steps_per_epoch=12,
    batch_size=64,
    last_batch="drop",
    optimizer="sgd",
    checkpoint_every="12 steps",
    keep_checkpoints=1,
)
"""48 steps, 12 an epoch."""


@pytest.fixture
def unknown_length(tmp_path: Path) -> str:
    """Data of ten batches, whose number the program does not know before the end of an epoch."""
    path = tmp_path / "unknown_length.py"
    path.write_text(UNKNOWN_LENGTH)
    return f"{path}:data"


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The losses of the validations to come."""
    losses: list[float] = []
    monkeypatch.setattr(Validation, "run", lambda *_: {"loss": losses.pop(0)})
    monkeypatch.setattr(Validation, "report", lambda _: ())
    monkeypatch.setattr(Validation, "baseline", lambda _: None)
    return losses


def plan_of(data: str, **values: object) -> Plan:
    recipe = {"task": "regression", "optimizer": "sgd", "monitor": "validation_loss"}
    return Plan.from_mapping({"data": data, "model": "linear", "epochs": 3, **recipe, **values})


def validated(events: Sequence[Validated]) -> list[tuple[int, bool]]:
    return [(event.step, event.by_command) for event in events]


@pytest.mark.parametrize(("every", "steps"), [("5 steps", [5, 10, 15, 20, 25, 30]), ("1 epoch", [10, 20, 30])])
def test_a_step_at_the_end_of_an_epoch_of_unknown_length_is_validated_once(
    gym: Gym, unknown_length: str, every: str, steps: list[int]
) -> None:
    gym.steps = 1
    trained = gym.train(plan_of(unknown_length, validation_every=every, patience=1, learning_rate=0.001))

    assert (trained.ended.outcome, trained.ended.reason) == (Outcome.FINISHED, "")
    assert [event.step for event in trained.all(EpochEnded)] == [10, 20, 30]
    assert validated(trained.all(Validated)) == [(step, False) for step in steps]


@pytest.mark.parametrize(
    "step", [15, pytest.param(10, marks=pytest.mark.campaign), pytest.param(20, marks=pytest.mark.campaign)]
)
def test_patience_ends_a_continued_run_where_it_would_have_ended(
    gym: Gym, unknown_length: str, scripted: list[float], step: int
) -> None:
    gym.steps = 1
    plan = plan_of(unknown_length, validation_every="5 steps", checkpoint_every="5 steps", patience=3)
    losses = [0.9, 0.5, 0.7, 0.6, 0.8]
    scripted += losses
    whole = gym.train(plan)
    assert whole.ended.steps == 25
    scripted += losses
    stopped = gym.train(plan, at={step + 1: [("stop_now",)]})
    assert checkpoint_steps(stopped.directory)[-1] == step

    resumed = gym.train(plan, run=stopped.directory)

    assert (resumed.ended.steps, resumed.ended.reason) == (whole.ended.steps, whole.ended.reason)
    assert resumed.ended.metrics == whole.ended.metrics
    assert not scripted
    assert [event.waited for event in whole.all(Validated)] == [0, 0, 1, 2, 3]
    assert {event.waited for event in whole.all(EpochEnded)} == {None}


@pytest.mark.parametrize(
    "fields",
    [{"validation": "end"}, pytest.param({"validation_every": "5 epochs"}, marks=pytest.mark.campaign)],
    ids=str,
)
def test_a_run_that_stops_early_by_a_metric_of_training_is_validated_at_its_end(
    gym: Gym, fields: dict[str, str]
) -> None:
    plan = MLP.replace(checkpoint_every="auto", monitor="loss", min_delta=100, patience=1, **fields)
    trained = gym.train(plan.replace(epochs=6, steps_per_epoch=2))

    assert (trained.ended.outcome, trained.ended.epochs) == (Outcome.FINISHED, 2)
    assert trained.ended.reason.startswith("early stopping: no better loss in 1 epoch; best: ")
    assert validated(trained.all(Validated)) == [(trained.ended.steps, False)]
    assert checkpoint_steps(trained.directory)[-1] == trained.ended.steps


@pytest.mark.parametrize("step", [10, 12])
def test_workers_decide_as_the_chief_where_their_events_and_clocks_differ(gym: Gym, step: int) -> None:
    plan = MLP.replace(validation_every="5 steps", patience=1, restore_best="on", monitor="validation_loss")
    directory = gym.train(plan, at={13: [("stop_now",)]}).directory
    with closing(RunWriter(directory)) as writer:
        for answer in (False, True):
            progress = DueActions(
                plan,
                "validation_loss",
                ("loss",),
                ("loss",),
                RunReporter(writer, step),
                lambda _, answer=answer: answer,
            )
            assert progress.validation_is_missing(None) is (step == 10 and not answer)
            assert progress.must_save_best() is answer
            with pytest.raises(EndTraining) if answer else nullcontext():
                progress.raise_if_over()


def test_a_validation_that_was_discarded_is_missing(gym: Gym) -> None:
    plan = MLP.replace(validation_every="5 steps")
    directory = gym.train(plan, at={13: [("stop_now",)]}).directory  # validated after 5 and 10 steps
    with closing(RunWriter(directory)) as writer:
        writer.write_event(RunStarted(time=0.0, run="r", name="", plan={}, first_step=5, pid=1, host="", versions={}))
        progress = DueActions(plan, "validation_loss", ("loss",), ("loss",), RunReporter(writer, 10))

        assert progress.validation_is_missing(None)


def test_nothing_is_missing_by_the_clock(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = gym.train(MLP, at={13: [("stop_now",)]}).directory
    seconds = [0.0]
    made = partial(Timetable, now=lambda: seconds[0])
    monkeypatch.setattr(due_actions, "Timetable", made)
    timed = MLP.replace(validation_every="1 minute")
    with closing(RunWriter(directory)) as writer:
        for validates in (True, False):
            seconds[0] = 0.0
            progress = DueActions(
                timed, "validation_loss", ("loss",), ("loss",), RunReporter(writer, 6), validates=validates
            )
            seconds[0] = 61.0
            assert not progress.validation_is_missing(None)
            assert progress.is_due_by_clock is progress.validation_is_due(None) is validates


def test_without_the_best_checkpoint_the_model_has_the_best_that_there_is(
    gym: Gym, scripted: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    save = RunSaver.save_checkpoint
    monkeypatch.setattr(
        RunSaver, "save_checkpoint", lambda self, *more: self._reporter.step != 24 and save(self, *more)
    )
    scripted += [0.3, 0.1, 0.5, 0.4]
    trained = gym.train(MLP.replace(restore_best="on", monitor="validation_loss"))

    message = "the checkpoint of the best step, 24, is missing or damaged: the model has the weights of step 12"
    assert message in [event.message for event in trained.all(Warned)]


def test_a_validation_by_command_that_is_the_best_is_saved_and_restored(gym: Gym, scripted: list[float]) -> None:
    scripted += [0.9, 0.1, 0.8, 0.7, 0.6]
    plan = MLP.replace(restore_best="on", monitor="validation_loss")
    trained = gym.train(plan, at={18: [("validate",)]})

    assert validated(trained.all(Validated)) == [(12, False), (18, True), (24, False), (36, False), (48, False)]
    assert [event.step for event in trained.all(CheckpointSaved) if event.best] == [12, 18]
    assert checkpoint_steps(trained.directory) == [18, 48]
    assert "the model has the weights of its best step, 18" in [event.message for event in trained.all(Warned)]


def test_the_best_checkpoint_that_exists_is_kept(gym: Gym, scripted: list[float]) -> None:
    scripted += [0.2, 0.5, 0.1, 0.4, 0.3]  # the best one, by command, has no checkpoint
    trained = gym.train(MLP.replace(monitor="validation_loss"), at={30: [("validate",)]})

    assert (30, True) in validated(trained.all(Validated))
    assert checkpoint_steps(trained.directory) == [12, 48]


def test_an_improvement_within_an_epoch_is_saved(gym: Gym, scripted: list[float]) -> None:
    scripted += [0.9, 0.5, 0.7, 0.6, 0.8, 0.9, 0.9, 0.9]
    plan = MLP.replace(checkpoint_every="auto", validation_every="7 steps", monitor="validation_loss")
    trained = gym.train(plan)

    assert trained.all(CheckpointSaved)[0].step == 7
    assert trained.all(CheckpointSaved)[0].best


def test_checkpoints_after_the_one_that_training_continues_from_are_deleted(
    gym: Gym, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = gym.train(MLP.replace(keep_checkpoints=3, validation="off"), at={37: [("stop_now",)]})
    assert checkpoint_steps(stopped.directory) == [12, 24, 36]
    monkeypatch.setattr(conftest, "latest_checkpoint", lambda _: 12)

    gym.train(MLP.replace(keep_checkpoints=3, validation="off"), run=stopped.directory, at={20: [("stop_now",)]})

    assert checkpoint_steps(stopped.directory) == [12]
