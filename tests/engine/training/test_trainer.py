import math
from pathlib import Path

import numpy as np
import pytest

from accel_engine.errors import PlanError
from accel_engine.events import (
    CheckpointSaved,
    CommandAnswered,
    EpochEnded,
    LearningRateChanged,
    ModelBuilt,
    Outcome,
    Phase,
    PhaseChanged,
    RunEnded,
    Validated,
    Warned,
)
from accel_engine.plan import Plan
from accel_engine.run import RunReader

from .conftest import Gym

PLAN = Plan(model="cnn", epochs=2, batch_size=256)
"""Ten steps; batch normalisation and, in the catalogue's cnn, whatever else makes resuming hard."""

STEPS = 10


def test_a_run_tells_its_whole_story(gym: Gym) -> None:
    trained = gym.train(PLAN)

    built = trained.only(ModelBuilt)
    assert (built.steps_per_epoch, built.global_batch, built.dropped_examples) == (5, 256, 1437 - 5 * 256)
    assert [event.phase for event in trained.all(PhaseChanged)][:3] == [Phase.BUILDING, Phase.TRACING, Phase.TRAINING]
    assert [event.step for event in trained.all(EpochEnded)] == [5, 10]
    assert [event.step for event in trained.all(Validated)] == [5, 10]
    assert [event.step for event in trained.all(CheckpointSaved)] == [5, 10]
    assert trained.ended.outcome is Outcome.FINISHED
    assert trained.ended.steps == len(trained.series["loss"]) == STEPS
    assert isinstance(trained.events[-1], RunEnded)


def test_an_epochs_means_are_those_of_its_steps(gym: Gym) -> None:
    trained = gym.train(PLAN)

    first, second = trained.all(EpochEnded)
    assert first.metrics["loss"] == pytest.approx(float(trained.series["loss"][:5].mean()), rel=1e-6)
    assert second.metrics["accuracy"] == pytest.approx(float(trained.series["accuracy"][5:].mean()), rel=1e-6)
    assert trained.ended.metrics["loss"] == second.metrics["loss"]


def test_a_stopped_and_resumed_run_is_the_same_run(gym: Gym) -> None:
    whole = gym.train(PLAN)
    stopped = gym.train(PLAN, at={7: [("stop",)]})
    assert stopped.ended.outcome is Outcome.STOPPED
    assert 7 <= stopped.ended.steps < STEPS

    resumed = gym.train(PLAN, run=stopped.reader.directory)

    np.testing.assert_array_equal(resumed.series["loss"], whole.series["loss"])
    assert resumed.ended.metrics == pytest.approx(whole.ended.metrics)
    assert resumed.all(EpochEnded)[-1].metrics == pytest.approx(whole.all(EpochEnded)[-1].metrics)


def test_a_paused_run_is_the_same_run(gym: Gym) -> None:
    whole = gym.train(PLAN)
    paused = gym.train(PLAN, at={3: [("pause",), ("pause",), ("checkpoint",), ("resume",)]})

    np.testing.assert_array_equal(paused.series["loss"], whole.series["loss"])
    answers = [(event.command, event.obeyed) for event in paused.all(CommandAnswered)]
    assert answers == [("pause", True), ("pause", False), ("checkpoint", True), ("resume", True)]
    assert Phase.PAUSED in [event.phase for event in paused.all(PhaseChanged)]


def test_stopping_now_leaves_no_checkpoint(gym: Gym) -> None:
    trained = gym.train(PLAN, at={2: [("stop_now",)]})

    assert trained.ended.outcome is Outcome.STOPPED
    assert trained.all(CheckpointSaved) == []
    assert not (trained.reader.directory / "model.keras").exists()


def test_a_paused_run_can_be_stopped(gym: Gym) -> None:
    trained = gym.train(PLAN, at={2: [("pause",), ("stop",)]})

    assert trained.ended.outcome is Outcome.STOPPED
    assert "somebody@here" in trained.ended.reason
    assert len(trained.all(CheckpointSaved)) == 1


def test_resuming_what_is_not_paused_is_refused(gym: Gym) -> None:
    (answer,) = gym.train(PLAN, at={2: [("resume",)]}).all(CommandAnswered)

    assert not answer.obeyed
    assert "not paused" in answer.answer


def test_a_learning_rate_takes_effect_at_the_step_it_names(gym: Gym) -> None:
    plan = PLAN.replace(model="mlp", optimizer="sgd", learning_rate=0.1)
    whole = gym.train(plan)
    changed = gym.train(plan, at={4: [("learning_rate", 0.4)]})

    first, second = changed.all(LearningRateChanged)
    assert (first.step, first.learning_rate) == (0, 0.1)
    assert second.learning_rate == 0.4
    same = second.step + 1  # the loss of a step is taken before its update
    np.testing.assert_array_equal(changed.series["loss"][:same], whole.series["loss"][:same])
    assert changed.series["loss"][same] != whole.series["loss"][same]


def test_a_loss_that_is_not_a_number_is_said_once(gym: Gym) -> None:
    trained = gym.train(PLAN.replace(model="mlp", optimizer="sgd", learning_rate=1e20, validation="off"))

    assert trained.ended.outcome is Outcome.FINISHED
    (warning,) = trained.all(Warned)
    assert "not a number" in warning.message
    assert math.isnan(trained.series["loss"][-1])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"batch_size": 2000}, "batch_size = 2000: must be at most 1437"),
        ({"batch_size": 1, "strategy": "mirrored", "virtual_cpus": 2}, "at least 2, one example a replica"),
        ({"xla": "on", "strategy": "mirrored", "virtual_cpus": 2}, "XLA cannot compile"),
        ({"model": "MobileNetV2"}, "takes images of at least 32x32"),
    ],
)
def test_what_cannot_be_trained_fails_with_the_reason(gym: Gym, changes: dict[str, object], words: str) -> None:
    trained = gym.train(PLAN.replace(**changes))

    assert trained.ended.outcome is Outcome.FAILED
    assert words in trained.ended.reason
    assert trained.series == {}


def test_a_batch_that_replicas_cannot_share_evenly_is_said(gym: Gym) -> None:
    trained = gym.train(PLAN.replace(model="mlp", batch_size=255, strategy="mirrored", virtual_cpus=2))

    assert trained.only(ModelBuilt).global_batch == 254
    assert "each takes 127" in trained.all(Warned)[0].message


def test_steps_per_epoch_may_exceed_the_data(gym: Gym) -> None:
    trained = gym.train(PLAN.replace(model="mlp", steps_per_epoch=7, epochs=1))

    assert trained.ended.steps == 7


def test_a_finished_run_goes_on_when_more_epochs_are_asked_for(gym: Gym) -> None:
    finished = gym.train(PLAN)
    with pytest.raises(PlanError, match="were trained already; ask for more"):
        gym.train(PLAN, run=finished.reader.directory)

    longer = gym.train(PLAN.replace(epochs=3), run=finished.reader.directory)

    assert longer.ended.steps == 15
    np.testing.assert_array_equal(longer.series["loss"], gym.train(PLAN.replace(epochs=3)).series["loss"])


OWN_MODELS = """
import keras

def softmax(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(),
                             keras.layers.Dense(classes, activation="softmax")])

def compiled(input_shape, classes):
    model = softmax(input_shape, classes)
    model.compile(optimizer=keras.optimizers.SGD(0.5), loss="categorical_crossentropy",
                  metrics=[keras.metrics.TopKCategoricalAccuracy(3, name="top3")])
    return model

class Halved(keras.Model):
    def __init__(self):
        super().__init__()
        self.flat = keras.layers.Flatten()
        self.dense = keras.layers.Dense(10)

    def call(self, x):
        return self.dense(self.flat(x))

    def train_step(self, batch):
        logs = super().train_step(batch)
        return {"loss": logs["loss"] * 0.0 + 7.0, "mine": logs["loss"], "Top@1": 1.0, "count": 2.0}

def own_step():
    model = Halved()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model

def broken():
    raise RuntimeError("no such weather")

class Silent(Halved):
    def train_step(self, batch):
        return {"mine": super().train_step(batch)["mine"]}

def silent_step():
    model = Silent()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model

def penalised(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(),
                             keras.layers.Dense(classes, kernel_regularizer=keras.regularizers.L2(0.1))])

class Weather(keras.layers.Layer):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def call(self, x, training=False):
        if training:
            raise self.error
        return x

def exiting(input_shape, classes):
    return keras.Sequential([softmax(input_shape, classes), Weather(SystemExit(7))])

def raising(input_shape, classes):
    return keras.Sequential([softmax(input_shape, classes), Weather(ValueError("it rains"))])
"""


@pytest.fixture
def own_models(tmp_path: Path) -> str:
    path = tmp_path / "models.py"
    path.write_text(OWN_MODELS)
    return str(path)


def test_a_compiled_model_keeps_its_loss_metrics_and_optimizer(gym: Gym, own_models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{own_models}:compiled"))

    built = trained.only(ModelBuilt)
    assert (built.optimizer, built.loss) == ("SGD", "categorical_crossentropy")
    assert trained.all(LearningRateChanged)[0].learning_rate == 0.5
    metrics = trained.all(Validated)[-1].metrics
    assert 0.0 < metrics["accuracy"] <= metrics["top3"] <= 1.0


def test_a_plans_optimizer_replaces_a_compiled_models_and_says_so(gym: Gym, own_models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{own_models}:compiled", optimizer="adam"))

    assert trained.only(ModelBuilt).optimizer == "Adam"
    assert "replaces the model's own SGD" in trained.all(Warned)[0].message


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_models_own_train_step_is_respected(gym: Gym, own_models: str, replicas: int) -> None:
    strategy = "mirrored" if replicas == 2 else "default"
    trained = gym.train(PLAN.replace(model=f"{own_models}:own_step", strategy=strategy, virtual_cpus=replicas))

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    assert set(trained.series["loss"]) == {7.0}
    assert set(trained.series) == {"loss", "mine", "top_1", "metric_count"}
    assert trained.series["mine"][-1] < trained.series["mine"][0]
    assert math.isfinite(trained.all(Validated)[-1].metrics["loss"])


def test_a_train_step_without_a_loss_fails_with_the_reason(gym: Gym, own_models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{own_models}:silent_step"))

    assert trained.ended.outcome is Outcome.FAILED
    assert "train_step returns mine, but no loss" in trained.ended.reason


def test_a_model_whose_function_raises_fails_before_training(gym: Gym, own_models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{own_models}:broken"))

    assert trained.ended.outcome is Outcome.FAILED
    assert "no such weather" in trained.ended.reason
    assert trained.series == {}


def test_validation_counts_every_example_once(gym: Gym) -> None:
    import keras

    from accel_engine import data

    plan = PLAN.replace(model="mlp", data="synthetic:6x6x1:3:700", epochs=1, batch_size=100)
    trained = gym.train(plan)
    shared = gym.train(plan.replace(strategy="mirrored", virtual_cpus=2))

    dataset = data.load(plan.data, image_size=None, seed=plan.seed)
    model = keras.models.load_model(trained.reader.directory / "model.keras")
    model.compile(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    loss, accuracy = model.evaluate(dataset.validation.x * dataset.scale, dataset.validation.y, verbose=0)
    for metrics in (trained.only(Validated).metrics, shared.only(Validated).metrics):
        assert metrics["loss"] == pytest.approx(loss, rel=1e-4)
        assert metrics["accuracy"] == pytest.approx(accuracy, abs=1e-6)


def test_validation_waits_for_the_end_when_asked_to(gym: Gym) -> None:
    assert [event.step for event in gym.train(PLAN.replace(validation="end")).all(Validated)] == [STEPS]
    assert gym.train(PLAN.replace(validation="off")).all(Validated) == []


def test_a_run_stopped_at_an_epochs_last_step_has_ended_the_epoch(gym: Gym) -> None:
    stopped = gym.train(PLAN, at={5: [("stop",)]})

    assert (stopped.ended.steps, stopped.ended.epochs) == (5, 1)
    assert [event.step for event in stopped.all(EpochEnded)] == [5]
    assert stopped.all(Validated) == []
    resumed = gym.train(PLAN, run=stopped.reader.directory)
    np.testing.assert_array_equal(resumed.series["loss"], gym.train(PLAN).series["loss"])


def test_a_run_stopped_before_its_last_validation_makes_up_for_it(gym: Gym) -> None:
    stopped = gym.train(PLAN, at={10: [("stop",)]})
    assert stopped.ended.epochs == 2

    resumed = gym.train(PLAN, run=stopped.reader.directory)

    assert resumed.ended.outcome is Outcome.FINISHED
    assert resumed.ended.metrics["validation_accuracy"] == resumed.all(Validated)[-1].metrics["accuracy"]


@pytest.mark.parametrize("command", ["pause", "stop"])
def test_commands_are_obeyed_while_validating(gym: Gym, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setattr("accel_engine.training.validation.LARGEST_BATCH", 64)
    plan = PLAN.replace(batch_size=64, steps_per_epoch=4, epochs=1)

    trained = gym.train(plan, at={}, when={Phase.VALIDATING: [(command,), ("resume",)]})

    phases = [event.phase for event in trained.all(PhaseChanged)]
    asked = phases.index(Phase.VALIDATING)
    if command == "pause":
        assert phases[asked:] == [Phase.VALIDATING, Phase.PAUSED, Phase.VALIDATING, Phase.CHECKPOINTING]
        assert trained.ended.metrics == pytest.approx(gym.train(plan).ended.metrics)
    else:
        assert trained.ended.outcome is Outcome.STOPPED
        assert trained.all(Validated) == []


def test_a_checkpoint_before_the_first_step_is_refused(gym: Gym) -> None:
    trained = gym.train(PLAN, when={Phase.BUILDING: [("checkpoint",), ("learning_rate", -1.0), ("dance",)]})

    assert [(event.obeyed, event.answer) for event in trained.all(CommandAnswered)] == [
        (False, "no step has been taken yet"),
        (False, "a learning rate must be a number above 0"),
        (False, "this engine knows no command dance"),
    ]


def test_a_learning_rate_that_was_set_survives_a_resume(gym: Gym) -> None:
    plan = PLAN.replace(model="mlp", optimizer="sgd", learning_rate=0.1)
    changes = [("learning_rate", 0.4)]
    whole = gym.train(plan, at={4: changes})
    stopped = gym.train(plan, at={4: [*changes, ("stop",)]})

    resumed = gym.train(plan, run=stopped.reader.directory)

    assert resumed.all(LearningRateChanged)[-1].learning_rate == 0.4
    np.testing.assert_array_equal(resumed.series["loss"], whole.series["loss"])


def test_a_learning_rate_that_the_resume_asks_for_is_taken(gym: Gym) -> None:
    plan = PLAN.replace(model="mlp", optimizer="sgd", learning_rate=0.1)
    stopped = gym.train(plan, at={4: [("learning_rate", 0.4), ("stop",)]})

    resumed = gym.train(plan.replace(learning_rate=0.2), run=stopped.reader.directory)

    assert resumed.all(LearningRateChanged)[-1].learning_rate == 0.2


def test_a_resumed_epoch_has_the_seconds_of_all_its_steps(gym: Gym) -> None:
    stopped = gym.train(PLAN, at={2: [("stop",)]})

    resumed = gym.train(PLAN, run=stopped.reader.directory)

    with_reader = RunReader(stopped.reader.directory)
    chunks = [chunk for chunk in with_reader.poll().chunks if chunk.first_step < 5]
    with_reader.close()
    assert resumed.all(EpochEnded)[0].seconds == pytest.approx(sum(c.ended - c.started for c in chunks), abs=1e-5)


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_a_run_goes_on_under_another_strategy(gym: Gym, precision: str) -> None:
    plan = PLAN.replace(model="mlp", precision=precision)
    stopped = gym.train(plan, at={6: [("stop",)]})

    resumed = gym.train(plan.replace(strategy="mirrored", virtual_cpus=2), run=stopped.reader.directory)

    assert resumed.ended.outcome is Outcome.FINISHED, resumed.ended.reason
    tolerance = 1e-5 if precision == "float32" else 2e-3
    np.testing.assert_allclose(resumed.series["loss"], gym.train(plan).series["loss"], atol=tolerance)


def test_a_run_does_not_go_on_when_its_steps_would_be_others(gym: Gym) -> None:
    plan = PLAN.replace(model="mlp", batch_size=255)
    stopped = gym.train(plan, at={6: [("stop",)]})

    resumed = gym.train(plan.replace(strategy="mirrored", virtual_cpus=2), run=stopped.reader.directory)

    assert resumed.ended.outcome is Outcome.FAILED
    assert "5 steps of 255 out of 1437 examples, and would now be 5 steps of 254" in resumed.ended.reason


def test_penalties_count_once_in_validation_however_many_replicas(gym: Gym, own_models: str) -> None:
    plan = PLAN.replace(model=f"{own_models}:penalised", epochs=1, optimizer="sgd", learning_rate=1e-9)

    alone = gym.train(plan)
    shared = gym.train(plan.replace(strategy="mirrored", virtual_cpus=2))

    assert shared.ended.metrics["validation_loss"] == pytest.approx(alone.ended.metrics["validation_loss"], rel=1e-5)
    np.testing.assert_allclose(shared.series["loss"], alone.series["loss"], rtol=1e-5)


def test_a_layer_that_exits_fails_the_run(gym: Gym, own_models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{own_models}:exiting"))

    assert trained.ended.outcome is Outcome.FAILED
    assert "SystemExit: 7" in trained.ended.reason


def test_a_layer_that_raises_is_told_without_what_surrounds_it(gym: Gym, own_models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{own_models}:raising"))

    assert trained.ended.outcome is Outcome.FAILED
    assert "it rains" in trained.ended.reason
    assert "models.py, line" in trained.ended.reason
    assert "in user code" not in trained.ended.reason
