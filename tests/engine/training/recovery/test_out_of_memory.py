"""A run that is out of memory trains on by itself; the errors are TensorFlow's own."""

import weakref
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from accel_engine.events import CommandAnswered, Outcome, Recovered, RunStarted, Validated, Warned
from accel_engine.keep_alive.memory_restart import adapted
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, create
from accel_engine.training import preparation
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.recovery.out_of_memory import has_parts, splitting_changes

from ..conftest import Gym, Trained
from .hungry_models import write_models

ENOUGH = 1 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hungry")


def plan_of(folder: Path, model: str, fits: int, **values: object) -> Plan:
    """A plan of 50 steps, whose model can take ``fits`` examples at a time."""
    path = write_models(folder, fits=fits)
    plan = {
        "batch_size": 64,
        "epochs": 2,
        "steps_per_epoch": 25,
        "last_batch": "drop",
        "xla": "off",
        "validation": "off",
    }
    recipe = {"optimizer": "sgd", "learning_rate": 0.05}
    return Plan.from_mapping({"model": f"{path}:{model}", **plan, **recipe, **values})


def assert_same_losses(trained: Trained, whole: Trained) -> None:
    """The losses of 50 steps equal a run's without trouble."""
    assert trained.ended.outcome is Outcome.FINISHED, trained.ended
    assert len(trained.series["loss"]) == len(whole.series["loss"]) == 50
    assert np.abs(trained.series["loss"] - whole.series["loss"]).max() < 1e-5


def test_the_first_step_is_taken_in_micro_batches(gym: Gym, folder: Path) -> None:
    whole = gym.train_once(plan_of(folder, "plain", ENOUGH))
    trained = gym.train(plan_of(folder, "tensors", 32))

    recovered = trained.only(Recovered)
    assert (recovered.trouble, recovered.step, recovered.failed_step) == ("out of memory", 0, 0)
    assert recovered.reason == "out of memory after step 0, allocating a float tensor of 33554432x4194304"
    assert recovered.action == "the run takes each step in 2 micro-batches of 32 examples"
    assert recovered.changes == {"micro_batches": 2}
    assert_same_losses(trained, whole)
    with closing(RunReader(trained.directory)) as reader:
        assert reader.info().plan_values["micro_batches"] == 2


def test_a_later_step_is_taken_again_from_the_last_checkpoint(gym: Gym, folder: Path) -> None:
    whole = gym.train_once(plan_of(folder, "later", ENOUGH))
    trained = gym.train(plan_of(folder, "later", 32, checkpoint_every="10 steps"))

    recovered = trained.only(Recovered)
    assert (recovered.step, recovered.failed_step) == (30, 30)
    assert_same_losses(trained, whole)


def test_the_learning_rate_of_a_command_after_the_checkpoint_stays(gym: Gym, folder: Path) -> None:
    plan = plan_of(folder, "later", 32, checkpoint_every="20 steps")
    directory = create(plan)
    with closing(RunWriter(directory)) as writer:
        started = RunStarted(time=1.0, run="r", name="", plan={}, first_step=0, pid=1, host="h", versions={}, worker="")
        writer.begin(started)
    trained = gym.train(plan, at={24: [("learning_rate", 0.0125)]}, run=directory)

    assert trained.ended.seconds <= trained.ended.time - trained.all(RunStarted)[-1].time  # the others count before it
    recovered = trained.only(Recovered)
    assert (recovered.step, recovered.failed_step) in ((20, 29), (20, 30))
    assert len(trained.series["learning_rate"]) == 50
    np.testing.assert_allclose(trained.series["learning_rate"][20:], 0.0125)


def test_without_a_checkpoint_training_starts_again(gym: Gym, folder: Path) -> None:
    in_one_epoch = {"epochs": 1, "steps_per_epoch": 50}
    whole = gym.train_once(plan_of(folder, "later", ENOUGH, **in_one_epoch))
    trained = gym.train(plan_of(folder, "later", 32, **in_one_epoch))

    recovered = trained.only(Recovered)
    assert (recovered.step, recovered.failed_step) == (0, 30)
    assert_same_losses(trained, whole)


def test_rematerialization_gives_the_losses_of_batch_normalization_and_dropout(gym: Gym, folder: Path) -> None:
    whole = gym.train_once(plan_of(folder, "random", ENOUGH))
    trained = gym.train(plan_of(folder, "random", 16))

    recovered = trained.only(Recovered)
    assert recovered.changes == {"remat": "on"}
    assert recovered.action == "the run computes parts of the model again for the gradients (--remat on)"
    assert_same_losses(trained, whole)


def test_batch_normalization_is_computed_again_before_it_sees_less(gym: Gym, folder: Path) -> None:
    trained = gym.train(plan_of(folder, "normalized", 32))

    assert trained.ended.outcome is Outcome.FINISHED
    first, second = trained.all(Recovered)
    assert first.changes == {"remat": "on"}
    assert second.changes == {"micro_batches": 2}
    assert second.action.endswith("which changes the losses: batch normalization see one of them at a time")


def test_on_oom_fail_ends_the_run(gym: Gym, folder: Path) -> None:
    trained = gym.train(plan_of(folder, "plain", 16, on_oom="fail"))

    assert not trained.all(Recovered)
    assert (trained.ended.outcome, trained.ended.reason) == (Outcome.FAILED, "out of memory")
    assert "--on-oom adapt" in trained.ended.hint


def test_a_run_fails_once_nothing_is_left(gym: Gym, folder: Path) -> None:
    trained = gym.train(plan_of(folder, "plain", 0, batch_size=4))

    assert [each.changes for each in trained.all(Recovered)] == [
        {"remat": "on"},
        {"micro_batches": 2},
        {"micro_batches": 4},
    ]
    assert (trained.ended.outcome, trained.ended.reason) == (Outcome.FAILED, "out of memory")
    assert "4 micro-batches and rematerialization did not help; try keep activations" in trained.ended.hint
    assert adapted(trained.directory) is None


def test_what_failed_is_released_before_the_next_try(gym: Gym, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the frames of the exception nor graphs keep the model, its data and its optimizer."""
    models: list[weakref.ref[Any]] = []
    alive: list[int] = []
    assemble = preparation.assemble

    def noted(*arguments: Any) -> Assembly:
        alive.append(sum(model() is not None for model in models))
        made = assemble(*arguments)
        models.append(weakref.ref(made.model))
        models.append(weakref.ref(made.feed))
        models.extend(weakref.ref(variable.value) for variable in made.model.optimizer.variables)
        return made

    monkeypatch.setattr(preparation, "assemble", noted)
    trained = gym.train(plan_of(folder, "plain", 16))

    assert trained.ended.outcome is Outcome.FINISHED
    assert alive == [0, 0, 0]


def test_smaller_batches_that_may_change_a_metric_say_so(gym: Gym, tmp_path: Path) -> None:
    """Nobody knows what a layer of one's own computes: it gets the plan's batches, unless memory is short."""
    plan = plan_of(tmp_path, "validating", 40, validation="epoch", epochs=1, steps_per_epoch=1)
    write_models(tmp_path, fits=40, keras_own=False)
    trained = gym.train(plan)

    said = (
        "the run validates in batches of 32 examples on each replica, with which its loss or metrics may be other ones"
    )
    assert trained.only(Recovered).action == said
    assert np.isfinite(trained.only(Validated).metrics["loss"])


def test_validation_takes_smaller_batches_and_measures_the_same(gym: Gym, folder: Path) -> None:
    whole = gym.train_once(plan_of(folder, "validating", ENOUGH, validation="epoch"))
    trained = gym.train(plan_of(folder, "validating", 70, validation="epoch"))

    first, second = trained.all(Recovered)
    assert first.reason == "out of memory in validation"
    assert first.action == "the run validates in batches of 128 examples on each replica"
    assert second.action == "the run validates in batches of 64 examples on each replica"
    assert (second.step, second.failed_step, second.changes) == (25, 25, {})
    assert_same_losses(trained, whole)
    for measured, expected in zip(trained.all(Validated), whole.all(Validated), strict=True):
        assert measured.step == expected.step
        assert measured.metrics == pytest.approx(expected.metrics, abs=1e-6)


def test_validation_that_is_impossible_does_not_end_training(gym: Gym, folder: Path) -> None:
    trained = gym.train(plan_of(folder, "validating", 0, validation="end"), at={2: [("validate",)]})

    assert trained.ended.outcome is Outcome.FINISHED
    assert trained.ended.steps == 50
    assert not trained.all(Validated)
    answered = trained.only(CommandAnswered)
    reason = "out of memory in validation, although it takes one example at a time"
    assert (answered.obeyed, answered.answer) == (False, reason)
    warned = [event.message for event in trained.all(Warned) if "validation" in event.message]
    assert warned == [f"{reason}: it is left out"] * 2


def test_with_on_oom_fail_validation_ends_the_run(gym: Gym, folder: Path) -> None:
    trained = gym.train(plan_of(folder, "validating", 50, validation="epoch", on_oom="fail"))

    assert (trained.ended.outcome, trained.ended.reason, trained.ended.steps) == (Outcome.FAILED, "out of memory", 25)


def model_of(*inside: layers.Layer) -> keras.Model:
    return keras.Sequential([keras.Input((8, 4)), *inside, layers.Dense(2)])


class Own(layers.Layer):
    def call(self, x: object) -> object:
        return x


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (lambda: [layers.Conv1D(2, 3), layers.LayerNormalization(), layers.ReLU()], ()),
        (lambda: [layers.LSTM(4), layers.Dropout(0.0)], ()),
        (lambda: [layers.BatchNormalization(), layers.BatchNormalization()], ("batch normalization",)),
        (lambda: [layers.TimeDistributed(layers.BatchNormalization())], ("batch normalization",)),
        (lambda: [layers.LSTM(4, dropout=0.2)], ("random layers such as dropout",)),
        (
            lambda: [keras.Sequential([layers.BatchNormalization(), layers.Dropout(0.2)])],
            ("batch normalization", "random layers such as dropout"),
        ),
        (lambda: [Own(name="mine")], ("the code of mine",)),
        (lambda: [layers.Lambda(lambda x: x, name="any")], ("the code of any",)),
        (lambda: [layers.Dense(3, activation=lambda x: x, name="last")], ("the code of last",)),
    ],
)
def test_what_micro_batches_change_is_named(make: Callable[[], list[layers.Layer]], changes: tuple[str, ...]) -> None:
    assert splitting_changes(model_of(*make())) == changes


def test_operations_between_layers_may_mix_examples() -> None:
    inputs = keras.Input((4,))
    outputs = layers.Dense(2)(inputs - keras.ops.mean(inputs, axis=0))
    assert splitting_changes(keras.Model(inputs, outputs, name="centered")) == ("the operations of centered",)


def test_a_model_of_one_layer_has_no_parts_to_compute_again() -> None:
    assert not has_parts(model_of())
    assert has_parts(model_of(layers.Dense(64), layers.ReLU(), layers.Dense(64), layers.ReLU(), layers.Dense(64)))
