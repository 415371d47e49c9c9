"""Effects of commands on a run."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from accel_engine.events import (
    CheckpointSaved,
    CommandAnswered,
    LearningRateChanged,
    Outcome,
    Phase,
    PhaseChanged,
    PlanChanged,
    TimeMeasured,
    Validated,
)
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter
from accel_engine.training.commands.command_mailbox import CommandMailbox

from ..conftest import Gym

PLAN = Plan(model="mlp", epochs=2, batch_size=256, last_batch="drop", optimizer="sgd", learning_rate=0.05)
"""Ten steps."""

RAINING = """
import keras

class Raining(keras.Model):
    def train_step(self, data):
        return super().train_step(data)

    def test_step(self, data):
        raise ValueError("it rains")

def build(input_shape, classes):
    inputs = keras.Input(input_shape)
    outputs = keras.layers.Dense(classes, activation="softmax")(keras.layers.Flatten()(inputs))
    model = Raining(inputs, outputs)
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model
"""


def test_pausing_does_not_change_the_run(gym: Gym, random_model: str) -> None:
    plan = PLAN.replace(model=random_model)  # whose dropout goes on in the middle of its random numbers
    whole = gym.train_once(plan)
    paused = gym.train(plan, at={3: [("pause",), ("pause",), ("checkpoint",), ("resume",)]})

    np.testing.assert_array_equal(paused.series["loss"], whole.series["loss"])
    answers = [(event.command, event.obeyed) for event in paused.all(CommandAnswered)]
    assert answers == [("pause", True), ("pause", False), ("checkpoint", True), ("resume", True)]
    assert Phase.PAUSED in [event.phase for event in paused.all(PhaseChanged)]


def test_a_user_makes_a_timed_pause_one_for_any_time(gym: Gym) -> None:
    paused = gym.train(PLAN, at={4: [("pause", 90.0), ("pause",), ("pause", 90.0), ("resume", 7.0), ("resume",)]})
    answers = [(event.command, event.obeyed, event.answer) for event in paused.all(CommandAnswered)]
    assert answers == [
        ("pause", True, "paused after step 4 for at most 90 s"),
        ("pause", True, "paused after step 4"),
        ("pause", False, "the run is already paused"),
        ("resume", False, "somebody else has paused the run"),
        ("resume", True, "resumed at step 4"),
    ]


def test_a_paused_run_can_be_stopped(gym: Gym) -> None:
    trained = gym.train(PLAN, at={2: [("pause",), ("stop",)]})

    assert trained.ended.outcome is Outcome.STOPPED
    assert "somebody@here" in trained.ended.reason
    assert len(trained.all(CheckpointSaved)) == 1


def test_a_stop_that_its_sender_has_withdrawn_is_not_obeyed(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunWriter, "is_withdrawn", lambda _, command: command.name == "stop")
    assert gym.train(PLAN, at={2: [("stop",)]}).ended.outcome is Outcome.FINISHED

    monkeypatch.setattr(CommandMailbox, "is_shared", True)  # as all workers have got it, none may leave it out
    assert gym.train(PLAN, at={2: [("stop",)]}).ended.outcome is Outcome.STOPPED


def test_resuming_a_run_that_is_not_paused_is_rejected(gym: Gym) -> None:
    (answer,) = gym.train(PLAN, at={2: [("resume",)]}).all(CommandAnswered)

    assert not answer.obeyed
    assert "not paused" in answer.answer


def test_stop_now_writes_no_checkpoint(gym: Gym) -> None:
    trained = gym.train(PLAN, at={2: [("stop_now",)]})

    assert trained.ended.outcome is Outcome.STOPPED
    assert trained.all(CheckpointSaved) == []
    assert not (trained.directory / "model.keras").exists()


def test_a_checkpoint_before_the_first_step_is_rejected(gym: Gym) -> None:
    trained = gym.train(
        PLAN, when={Phase.BUILDING: [("checkpoint",), ("learning_rate", -1.0), ("learning_rate",), ("dance",)]}
    )

    assert [(event.obeyed, event.answer) for event in trained.all(CommandAnswered)] == [
        (False, "no step has completed yet"),
        (False, "the learning rate must be greater than 0"),
        (False, "the learning rate must be greater than 0"),
        (False, "unknown command dance"),
    ]


def test_a_learning_rate_takes_effect_at_the_reported_step(gym: Gym) -> None:
    plan = PLAN.replace(optimizer="sgd", learning_rate=0.1)
    whole = gym.train_once(plan)
    changed = gym.train(plan, at={4: [("learning_rate", 0.4)]})

    first, second = changed.all(LearningRateChanged)
    assert (first.step, first.learning_rate) == (0, 0.1)
    assert (second.step, second.learning_rate) == (4, 0.4)
    same = second.step + 1  # the loss of a step is taken before its update
    np.testing.assert_array_equal(changed.series["loss"][:same], whole.series["loss"][:same])
    assert changed.series["loss"][same] != whole.series["loss"][same]


@pytest.mark.parametrize("command", ["pause", pytest.param("stop", marks=pytest.mark.campaign)])
def test_commands_are_handled_during_validation(gym: Gym, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setattr("accel_engine.training.evaluation.validation.MAX_BATCH", 64)
    plan = PLAN.replace(batch_size=64, steps_per_epoch=4, epochs=1)

    trained = gym.train(plan, at={}, when={Phase.VALIDATING: [(command,), ("resume",)]})

    phases = [event.phase for event in trained.all(PhaseChanged)]
    asked = phases.index(Phase.VALIDATING)
    if command == "pause":
        assert phases[asked:] == [Phase.VALIDATING, Phase.PAUSED, Phase.VALIDATING, Phase.CHECKPOINTING]
        assert trained.ended.metrics == pytest.approx(gym.train_once(plan).ended.metrics)
    else:
        assert trained.ended.outcome is Outcome.STOPPED
        assert trained.all(Validated) == []


def test_validation_runs_on_request_but_not_during_another(gym: Gym) -> None:
    trained = gym.train(PLAN, at={1: [("validate",)], 3: [("pause",), ("validate",), ("resume",)]})

    assert [event.step for event in trained.all(Validated)] == [2, 4, 5, 10]
    answers = [(event.obeyed, event.answer) for event in trained.all(CommandAnswered) if event.command == "validate"]
    assert answers == [(True, "validated at step 2"), (True, "validated at step 4")]
    np.testing.assert_array_equal(trained.series["loss"], gym.train_once(PLAN).series["loss"])

    within = gym.train(PLAN, when={Phase.VALIDATING: [("validate",), ("pause",), ("validate",), ("resume",)]})
    refused = [event.answer for event in within.all(CommandAnswered) if event.command == "validate"]
    assert refused == ["a validation is already running"] * 2
    assert [event.step for event in within.all(Validated)] == [5, 10]


def test_a_pause_within_a_validation_and_a_validation_by_command_are_measured_as_commands(gym: Gym) -> None:
    trained = gym.train(PLAN, at={7: [("validate",)]}, when={Phase.VALIDATING: [("pause", 0.3)]})

    first, by_command, *_ = trained.all(Validated)
    assert by_command.by_command
    measured = trained.all(TimeMeasured)
    spent = [sum(event.spent.get(what, 0.0) for event in measured) for what in ("commands", "validation")]
    assert spent[0] >= 0.3 + by_command.seconds
    assert spent[1] >= first.seconds
    assert all(sum(event.spent.values()) - event.spent.get("input", 0) <= event.seconds for event in measured)


def test_why_there_is_no_validation_is_answered(gym: Gym, tmp_path: Path) -> None:
    trained = gym.train(PLAN.replace(validation="off"), when={Phase.BUILDING: [("validate",)]}, at={2: [("validate",)]})
    assert [(event.obeyed, event.answer) for event in trained.all(CommandAnswered)] == [
        (False, "no step has completed yet"),
        (False, "the run has --validation off: stop it, and continue it with --validation epoch"),
    ]

    np.savez(tmp_path / "data.npz", x=np.zeros((512, 4), np.float32), y=np.arange(512) % 2)
    plan = PLAN.replace(data=str(tmp_path / "data.npz"), split="none")
    (answer,) = gym.train(plan, at={2: [("validate",)]}).all(CommandAnswered)
    assert (answer.obeyed, answer.answer) == (False, "there is no validation data")

    (tmp_path / "raining.py").write_text(RAINING)
    plan = PLAN.replace(model=f"{tmp_path / 'raining.py'}:build")
    (answer,) = gym.train(plan, at={2: [("validate",)]}).all(CommandAnswered)
    assert (answer.obeyed, answer.answer) == (False, "the model's test_step cannot run: ValueError: it rains")


def test_a_pause_may_end_by_itself(gym: Gym) -> None:
    trained = gym.train(PLAN, at={3: [("pause", 0.05)]})

    assert trained.ended.outcome is Outcome.FINISHED
    assert Phase.PAUSED in [event.phase for event in trained.all(PhaseChanged)]
    (answer,) = trained.all(CommandAnswered)
    assert answer.answer == "paused after step 4 for at most 0 s"
    np.testing.assert_array_equal(trained.series["loss"], gym.train_once(PLAN).series["loss"])


def test_intervals_change_at_once_and_stay_in_the_plan(gym: Gym) -> None:
    plan = PLAN.replace(checkpoint_every="1 epoch", keep_checkpoints=9)
    gym.steps = 1
    trained = gym.train(
        plan, at={2: [("validation_every", 3), ("checkpoint_every", 4.0)], 7: [("validation_every", 4)]}
    )

    assert [event.step for event in trained.all(Validated)] == [3, 6, 8, 10]
    assert [event.step for event in trained.all(CheckpointSaved)] == [4, 8, 10]
    changes = [(event.step, event.changes, event.before) for event in trained.all(PlanChanged)]
    assert changes == [
        (2, {"validation_every": "3 steps"}, {"validation_every": "1 epoch"}),
        (2, {"checkpoint_every": "4 steps"}, {"checkpoint_every": "1 epoch"}),
        (7, {"validation_every": "4 steps"}, {"validation_every": "3 steps"}),
    ]
    np.testing.assert_array_equal(trained.series["loss"], gym.train_once(plan).series["loss"])
    with closing(RunReader(trained.directory)) as reader:
        stored = reader.info().plan_values
    assert (stored["validation_every"], stored["checkpoint_every"]) == ("4 steps", "4 steps")


def test_an_interval_must_be_possible(gym: Gym) -> None:
    trained = gym.train(
        PLAN.replace(validation="end"),
        at={2: [("validation_every", 3), ("checkpoint_every", 0), ("checkpoint_every",)]},
    )

    assert [(event.obeyed, event.answer) for event in trained.all(CommandAnswered)] == [
        (False, "the run does not validate before its end"),
        (False, "the number of steps must be at least 1"),
        (False, "the number of steps must be at least 1"),
    ]
    assert trained.all(PlanChanged) == []
